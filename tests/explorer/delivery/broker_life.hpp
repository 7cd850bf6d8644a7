/// A broker's process on a simulated disk: a topic with everything durable, its dead-letter topic, and the
/// office that carries letters between them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "delivery/fake_consumer.hpp"
#include "support/explorer_storage.hpp"
#include "topic/dead/letter_office.hpp"
#include "topic/reactor/topic_opener.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::test {

/// The topics of a broker.
struct TopicMix {
  protocol::TopicSettings source;
  std::uint32_t attempts_max = 0;
  bool letters = false;  ///< dead messages move to the topic "letters"
};

/// The broker's own sink: nobody reads it.
class NoSink final : public broker::LogSink {
 public:
  void write(broker::LogLevel /*level*/, std::string_view /*line*/) override {}
};

/// Opens the topics from a disk as the start of a broker does, and runs them on an event loop of its own. It
/// has no threads: disk jobs run when run_job() is called. An object is used for one life after the other.
class BrokerLife final : public broker::LetterPost {
 public:
  static constexpr TopicId source_id{2};
  static constexpr TopicId letters_id{1};
  static constexpr const char* group_name = "workers";

  BrokerLife() = default;
  ~BrokerLife() override { stop(); }

  /// Opens the topics. Errors: those of TopicOpener; then nothing is open. Requires: nothing is open.
  Result<void> start(ExplorerStorage& storage, const TopicMix& mix, Timestamp now);
  /// Ends the life without a clean stop. Jobs that wait still run.
  void stop();
  [[nodiscard]] bool is_open() const { return source != nullptr; }

  /// Runs a turn of the loop, and the upkeep of topics. `us` pass.
  void turn(std::int64_t us);
  /// Runs `task` as a call of the loop, as requests of clients are.
  void call(const std::function<void()>& task);
  /// Runs a job of a disk thread, or returns false if none waits. `letters_first`: of the dead-letter topic's
  /// thread if it has one.
  bool run_job(bool letters_first = false);
  void step_clock(std::int64_t us);
  [[nodiscard]] Timestamp wall() const { return {wall_us_}; }
  [[nodiscard]] broker::TopicStore& store() { return store_of(*source); }
  [[nodiscard]] static broker::TopicStore& store_of(broker::TopicRuntime& topic) {
    return const_cast<broker::TopicStore&>(topic.store());
  }
  [[nodiscard]] broker::ConsumerGroup* group() { return source->letters().groups().find(group_name); }
  /// Opens the consumer of the group.
  bool join();
  void leave();
  [[nodiscard]] bool is_quiet() const { return post_.empty(); }

  std::unique_ptr<broker::TopicRuntime> source;
  std::unique_ptr<broker::TopicRuntime> letters;  ///< null: there is no dead-letter topic
  std::unique_ptr<broker::LetterOffice> office;
  std::unique_ptr<FakeConsumer> consumer;

  // Implements LetterPost.
  [[nodiscard]] std::optional<TopicId> find(const std::string& name) const override;
  [[nodiscard]] std::optional<std::string> name_of(TopicId id) const override;
  [[nodiscard]] bool send(TopicId /*to*/, Task task) override {
    post_.push_back(std::move(task));
    return true;
  }
  void answer(TopicId /*to*/, Task task) override { post_.push_back(std::move(task)); }

 private:
  struct Ticker final : broker::TopicTicker {
    void tick_wanted(broker::TopicRuntime&) override { wanted = true; }
    void letters_wait(broker::TopicRuntime& waiting) override {
      if (office != nullptr) office->wake(waiting.definition().id);
    }
    bool wanted = false;
    broker::LetterOffice* office = nullptr;
  };
  /// The part of a reactor that a topic has for itself. Two topics of a broker may belong to two reactors, so
  /// that either disk thread may be the faster one.
  struct Reactor {
    explicit Reactor(BrokerLife& life)
        : context{life.loop_,    disk, life.ports_, life.sink_, life.tickets_, life.settings_, life.now_,
                  life.next_id_, {},   {},          {}} {}
    broker::DiskThread disk;
    broker::ReactorContext context;
    Ticker ticker;
  };
  Result<std::unique_ptr<broker::TopicRuntime>> open(const broker::TopicDefinition& definition,
                                                     Reactor& reactor);
  void run_loop();
  static void tick(broker::TopicRuntime* topic, Ticker& ticker);

  NoSink sink_;
  std::int64_t wall_us_ = 0;
  const broker::WallClock now_ = [this] { return Timestamp{wall_us_}; };
  broker::EventLoop loop_;
  broker::PortBook ports_{"127.0.0.1", std::nullopt, std::chrono::hours(1)};
  broker::EndpointSettings settings_;
  std::atomic<std::uint64_t> next_id_ = 1;
  const broker::TicketKey tickets_{broker::TicketKey::random_bytes()};
  Reactor source_reactor_{*this};
  Reactor letters_reactor_{*this};
  std::optional<log::SegmentPool> pool_;
  std::optional<broker::TopicOpener> opener_;
  std::deque<Task> post_;
};

}  // namespace lightq::test
