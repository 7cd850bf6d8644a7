/// Two topics at work on one reactor, without sockets: "orders", and "letters", which receives its dead
/// messages.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "explorer/delivery/simulated_threads.hpp"
#include "log/drop_guard.hpp"
#include "model/client.hpp"
#include "model/plain_endpoints.hpp"
#include "plain/endpoint_set.hpp"
#include "support/faulty_storage.hpp"
#include "topic/dead/letter_office.hpp"
#include "topic/reactor/topic_opener.hpp"
#include "topic/recurring/recurring_office.hpp"
#include "topic/runtime/member_acks.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::model {

using broker::TopicRuntime;
using std::chrono::milliseconds;

/// Runs topics as a reactor does: their real parts, on a disk in memory, with clocks that stand still until a
/// test moves them. The process and the power can end at any call of the disk.
class BrokerUnderTest final : public broker::LetterPost, public broker::TopicTicker {
 public:
  static constexpr TopicId orders_id{1};
  static constexpr TopicId letters_id{2};
  static constexpr TopicId deleted_id{99};  ///< a topic that does not exist any more
  static constexpr std::int64_t flush_interval_ms = 200;

  /// The settings of the catalogue, which survive everything.
  struct Catalogue {
    protocol::TopicSettings orders;
    protocol::TopicSettings letters;
    bool is_paused = false;
    std::map<std::string, broker::GroupSetup, std::less<>> groups;
    std::map<std::string, broker::RecurringSchedule, std::less<>> schedules;
    std::set<std::uint64_t> subscribers;  ///< their endpoints
  };

  explicit BrokerUnderTest(Catalogue catalogue);
  ~BrokerUnderTest() override;

  // The process.

  /// Stops cleanly and starts again, `down` later.
  void restart(milliseconds down);
  /// Ends the process now, and starts it again `down` later. With `cut` the power fails too; `keeps` says
  /// which of the bytes that were not synced stay.
  void crash(bool cut, const std::function<bool()>& keeps, milliseconds down);
  /// Lets the process end before call number `call` of the disk from now on that changes anything: from then
  /// on all fail. 0: never.
  void end_before(std::uint64_t call);
  [[nodiscard]] bool is_dead() const { return is_dead_; }

  // Time.

  /// Lets time pass, in steps of at most 100 ms with a tick after each; a long time ends with one long step.
  void pass(milliseconds time);
  /// Sets the wall clock.
  void step_wall(std::chrono::microseconds by);
  [[nodiscard]] broker::SteadyTime now() const { return std::chrono::steady_clock::now(); }
  [[nodiscard]] Timestamp wall() const { return {wall_us_}; }
  /// Returns the time that has passed in steps with ticks, in milliseconds.
  [[nodiscard]] std::int64_t ticked_ms() const { return ticked_ms_; }
  /// Runs turns until nothing happens any more without time.
  void settle();

  // Its parts.

  [[nodiscard]] TopicRuntime& orders() { return *orders_.runtime; }
  [[nodiscard]] TopicRuntime& letters() { return *letters_.runtime; }
  [[nodiscard]] broker::TopicStore& orders_store() { return *orders_.store; }
  [[nodiscard]] broker::TopicStore& letters_store() { return *letters_.store; }
  [[nodiscard]] broker::LetterOffice& office() { return *office_; }
  [[nodiscard]] broker::RecurringOffice& recurring() { return *recurring_; }
  /// Returns the plain endpoints of "orders".
  [[nodiscard]] PlainEndpoints& plain() { return *plain_; }
  [[nodiscard]] Catalogue& catalogue() { return catalogue_; }
  [[nodiscard]] broker::ReactorContext& context() { return context_; }
  Journal& journal() { return journal_; }

  // Implements LetterPost.
  [[nodiscard]] std::optional<TopicId> find(const std::string& name) const override {
    if (name == "orders") return orders_id;
    return name == "letters" ? std::optional(letters_id) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> name_of(TopicId id) const override {
    if (id == orders_id) return "orders";
    return id == letters_id ? std::optional<std::string>("letters") : std::nullopt;
  }
  [[nodiscard]] bool send(TopicId, Task task) override {
    answer({}, std::move(task));
    return true;
  }
  void answer(TopicId, Task task) override { post_.push_back(std::move(task)); }
  // Implements TopicTicker.
  void tick_wanted(TopicRuntime& topic) override { (&topic == orders_.at ? orders_ : letters_).ticks = true; }
  void letters_wait(TopicRuntime& topic) override {
    if (office_ != nullptr) office_->wake(topic.definition().id);
  }

  test::FaultyStorage storage;
  /// Called whenever nothing happens any more without time.
  std::function<void()> settled;
  std::function<void()> turned;  ///< called after every few turns
  /// Called before the log of "orders" drops messages, which can still be read, while the broker is at work.
  std::function<void()> dropping;

 private:
  using TopicStore = broker::TopicStore;
  struct Hosted {
    TopicId id;
    std::string name;
    std::unique_ptr<TopicRuntime> runtime;
    TopicRuntime* at = nullptr;  // also while it is made
    TopicStore* store = nullptr;
    bool ticks = false;
  };
  /// Tells `dropping`, and then asks the guard of the topic.
  struct DropWatch final : log::DropGuard {
    Offset before_drop(OffsetRange range, Reason reason) override;
    BrokerUnderTest* broker = nullptr;  // null: it does not work
    log::DropGuard* asked = nullptr;    // null: the topic has none
  };
  class Sink final : public broker::LogSink {
   public:
    void write(broker::LogLevel, std::string_view) override {}
  };
  /// Counts turns of the loop.
  class Turns final : public broker::EventLoop::Source {
   public:
    explicit Turns(broker::EventLoop& loop) : loop_(loop) {}
    void run(int turns);
    void on_ready() override;

   private:
    broker::EventLoop& loop_;
    int left_ = 0;
    std::stop_source stop_;
  };

  void start();
  void stay_down(milliseconds time);
  Result<void> open(Hosted& hosted, const protocol::TopicSettings& settings);
  void drop(bool cleanly);
  void run_turns(int turns);
  void tick(Hosted& hosted);
  [[nodiscard]] bool is_idle() const;

  Catalogue catalogue_;
  Journal journal_;
  DropWatch drops_;
  bool is_dead_ = false;
  std::uint64_t calls_ = 0;
  std::uint64_t end_at_ = 0;
  std::int64_t wall_us_ = 4'000'000'000'000'000;  // later than the system's: its timers never fire
  std::int64_t ticked_ms_ = 0;
  const broker::WallClock wall_clock_ = [this] { return Timestamp{wall_us_}; };
  std::optional<log::SegmentPool> pool_;
  Sink sink_;
  broker::EventLoop loop_;
  broker::DiskThread disk_;  // its jobs run between turns
  broker::PortBook ports_{"127.0.0.1", std::nullopt, std::chrono::hours(1)};
  broker::EndpointSettings settings_;
  std::atomic<std::uint64_t> next_id_ = 1;
  const broker::TicketKey tickets_{broker::TicketKey::random_bytes()};
  std::optional<broker::TopicOpener> opener_;
  broker::ReactorContext context_;
  Turns turns_{loop_};
  std::deque<Task> post_;
  Hosted orders_{orders_id, "orders", nullptr};
  Hosted letters_{letters_id, "letters", nullptr};
  PlainEndpoints* plain_ = nullptr;  // owned by its topic
  std::unique_ptr<broker::LetterOffice> office_;
  std::unique_ptr<broker::RecurringOffice> recurring_;
};

}  // namespace lightq::model
