/// A broker and the model of everything that its topics do, side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/broker_under_test.hpp"
#include "model/history.hpp"
#include "model/model_group.hpp"
#include "model/model_letters.hpp"
#include "model/model_recurring.hpp"
#include "model/model_schedule.hpp"
#include "model/model_subscriber.hpp"
#include "support/random.hpp"

namespace lightq::model {

/// How often something happened, so that a test can tell that it happened at all.
using Tally = std::map<std::string, std::uint64_t>;

/// Compares the broker with the model after everything that the broker does. The operations of the test
/// derive from it. Throws Disagreement.
class World {
 public:
  World(test::Random& random, const BrokerUnderTest::Catalogue& catalogue);

  /// Compares all states.
  void check();
  /// Returns true if the model cannot follow the broker any further.
  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] const History& history() const { return history_; }
  [[nodiscard]] const Tally& tally() const { return tally_; }

 protected:
  static constexpr std::int64_t save_ms_max = 1'300;  // the last second, and a tick or two

  // Acts of the broker: observation.cpp.

  /// Follows everything since the last call. Called whenever nothing happens any more without time.
  void observe();
  void observe_journal();
  void note_told(const Told& told, const std::string& group);
  void observe_log();
  void observe_pulled(const Told& told);
  [[nodiscard]] std::optional<std::uint64_t> content_of(const std::string& payload) const;
  [[nodiscard]] bool is_cut_off(log::ReadOutcome outcome);
  void observe_letters();
  void observe_outboxes();
  void observe_drops();
  /// Returns true if the log has dropped the message, and there is no copy.
  [[nodiscard]] bool is_dropped(std::uint64_t offset);
  /// Returns how many messages are lost to the group that it has not come to.
  [[nodiscard]] std::uint64_t lost_ahead(const ModelGroup& group);
  /// Returns true if the topic may drop messages that groups have not finished.
  [[nodiscard]] bool may_drop() {
    const protocol::TopicSettings& settings = broker_.catalogue().orders;
    return settings.overflow == protocol::Overflow::drop_oldest || has_retention();
  }
  [[nodiscard]] bool has_retention() {
    const protocol::TopicSettings& settings = broker_.catalogue().orders;
    return settings.retention_bytes != 0 || settings.retention_ms != 0;
  }
  /// Returns true if the log drops nothing that waits, without a copy.
  [[nodiscard]] bool keeps_waiting() {
    return has_retention() && !broker_.catalogue().orders.retention_over_pending;
  }
  /// Returns true if a message that fails for good is lost: the log has dropped it, and the group does not
  /// have it among its dead ones. It may have died, become a letter and been dropped since the model looked.
  [[nodiscard]] bool is_lost(const std::string& group, std::uint64_t offset);
  [[nodiscard]] bool has_new_letter(const std::string& group, std::uint64_t offset);
  /// The log has dropped messages by their age alone: none of them was younger.
  void check_ages(std::uint64_t first);
  void observe_returns();
  void observe_return(ModelGroup& group, const broker::ConsumerGroup& found, const ModelLetter& letter);
  /// Returns the time with ticks before which all changes of groups are saved, if the disk works.
  [[nodiscard]] std::int64_t oldest_unsaved_ms() const { return broker_.ticked_ms() - save_ms_max; }
  void observe_schedule();
  void observe_recurring();
  void observe_expired();
  void observe_expired(ModelGroup& group);
  /// Follows a message that is in the log now.
  void append(std::uint64_t content);
  void appended(std::uint64_t content);
  bool is_letter_anew(std::uint64_t content, std::uint64_t offset);
  void explain_appended();
  [[nodiscard]] bool has_expired(std::uint64_t offset);
  [[nodiscard]] bool may_have_expired(std::uint64_t offset);
  [[nodiscard]] bool was_given_back(const std::string& group, std::uint64_t offset);
  [[nodiscard]] std::set<std::uint64_t> under_way_of(const ModelGroup& group);

  // Subscribers: plain_deliveries.cpp.

  void observe_subscribers();
  void subscriber_got(std::uint64_t endpoint, const Told& told);
  void subscriber_skips(std::uint64_t endpoint, std::uint64_t to);
  void check_subscribers();
  void recover_subscribers(bool clean);

  // After starts: recovery.cpp.

  /// `down`: the time between the end and the start.
  void restart(milliseconds down);
  void crash(bool cut, milliseconds down);
  void recover(std::uint64_t log_least, std::uint64_t letters_least, bool cut, bool clean);
  void recover_memory();
  void recover_log(std::uint64_t least);
  void recover_letters(std::uint64_t least);
  void recover_half_made();
  void recover_groups(bool clean);
  void recover_schedule(bool cut);
  void recover_recurring();
  void check_letters_of(ModelGroup& group, bool clean);

  // Comparison: checks.cpp.

  void check(ModelGroup& group);
  void check_messages(ModelGroup& group);
  void check_recurring();
  [[nodiscard]] std::string difference_of(const ModelGroup& group, broker::ConsumerGroup& found) const;
  /// Returns false, and sets complaint_, if a consumer lacks a message that it could have.
  [[nodiscard]] bool is_live(ModelGroup& group);
  bool is_stuck(std::string complaint);
  [[nodiscard]] std::map<std::uint64_t, SavedView> views_of(broker::ConsumerGroup& group, bool keeps) const;

  [[nodiscard]] broker::ConsumerGroup* real(const ModelGroup& group) {
    return broker_.orders().letters().groups().find(group.name);
  }
  ModelGroup& add_group(const std::string& name, std::uint64_t next);
  [[nodiscard]] bool is_durable() { return protocol::has_files(broker_.catalogue().orders.broker_type); }
  void note(const std::string& what) { history_.add(std::to_string(step_) + " " + what); }

  test::Random& random_;
  History history_;
  Tally tally_;
  std::uint64_t step_ = 0;
  std::vector<std::uint64_t> log_;         // the contents by offset
  std::vector<std::int64_t> appended_us_;  // the wall times by offset
  std::vector<std::int64_t> dated_us_;     // the same; at most a time to which the clock was set back
  std::uint64_t aged_ = 0;                 // the log's first offset at the last check_ages()
  std::vector<std::uint64_t> alive_;       // offsets that have not expired, as far as is known
  std::vector<char> has_expired_;          // by offset: once expired they stay so
  std::map<std::uint64_t, std::int64_t> expired_ms_;  // since when, in time with ticks
  bool has_stepped_ = false;  // the wall clock went back, or the topic's time to live was raised
  std::map<std::string, std::unique_ptr<ModelGroup>> groups_;
  /// Groups that ended because the disk failed when they were made: name and start. A start may find them.
  std::set<std::pair<std::string, std::uint64_t>> half_made_;
  ModelSchedule schedule_;
  ModelRecurrings recurring_;
  std::map<std::uint64_t, ModelSubscriber> subscribers_;  // by their endpoints
  ModelLetters letters_;
  std::vector<GiveBackCommand> give_backs_;  // they run
  /// Contents and offsets of messages that are published anew, but their letters were not seen yet.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unexplained_;
  std::uint64_t next_content_ = 1;
  std::uint64_t ghosts_ = 0;  // delayed messages that a start has found waiting and in the log
  std::string complaint_;
  bool is_over_ = false;
  bool has_jumped_ = false;         // the wall clock, since the last start
  bool keeps_changes_ = false;      // the process has ended: later changes are not saved
  std::int64_t due_since_ms_ = -1;  // since when a delayed message is due that has not left
  std::vector<std::shared_ptr<broker::SessionProducer>> producers_;  // also of ended processes
  BrokerUnderTest broker_;  // last, because its end calls the clients of the groups
};

}  // namespace lightq::model
