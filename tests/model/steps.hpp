/// Random operations on a broker and its model.
#pragma once

#include <cstdint>
#include <string>

#include "model/world.hpp"

namespace lightq::model {

/// Each step is one operation of a client, a command, a change of the clocks, a restart or a crash.
class Steps final : public World {
 public:
  /// `has_ttl`: messages and the topic may have a time to live.
  /// `has_plain`: there may be plain consumers and subscribers.
  Steps(test::Random& random, const BrokerUnderTest::Catalogue& catalogue, bool has_ttl, bool has_plain)
      : World(random, catalogue), has_plain_(has_plain) {
    if (may_drop()) next_content_ = Content::large_from;
    if (has_ttl) next_content_ = Content::ttl_from;
  }

  /// Does one random operation, and compares everything.
  void step();

  /// Returns the settings of the topics of a run.
  static BrokerUnderTest::Catalogue catalogue_of(std::uint64_t run);

 private:
  void operate();

  // Producers: producer_steps.cpp.
  void publish();
  void publish_delayed();
  void change_delayed();

  // Recurring schedules: recurring_steps.cpp.
  void change_recurring();
  void create_recurring(const std::string& name);
  void put_recurring(const std::string& name);

  // Consumers: consumer_steps.cpp.
  void join();
  void leave();
  void start_some();
  void extend_some();
  void acknowledge_some();
  void reject_some();
  void give_credit();
  void turn_silent();
  [[nodiscard]] ModelGroup* some_group();
  [[nodiscard]] ModelMember* some_member(ModelGroup*& group);
  [[nodiscard]] OffsetRange some_range(const ModelGroup& group);
  [[nodiscard]] std::uint32_t some_hand_out(const ModelMember& member);

  // Plain consumers and subscribers: plain_steps.cpp.
  void change_sink(PlainSink& sink);
  void change_pullers();
  void join_plainly(bool is_first);
  void change_subscribers();

  // Commands and time: command_steps.cpp.
  void pass_time();
  void step_wall();
  void change_settings();
  [[nodiscard]] bool has_ttl() const { return next_content_ >= Content::ttl_from; }
  void set_ttl();
  void pause_group();
  void pause_topic();
  void seek_group();
  void purge_group();
  void act_on_dead();
  void act_on_letters();
  void end_process();

  int last_client_ = 0;
  broker::ProduceTarget* target_ = nullptr;  // of delayed messages, in this process
  class Producer;
  std::shared_ptr<Producer> producer_;
  std::uint64_t sequence_ = 0;
  std::uint64_t next_schedule_ = 1;
  std::uint64_t next_endpoint_ = 1;
  const bool has_plain_;
  int end_in_ = 0;  // steps until the process is ended
};

}  // namespace lightq::model
