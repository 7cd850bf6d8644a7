/// Uses a durable topic as producers, consumers and administrators do, and compares it with its history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/delivery/broker_life.hpp"
#include "explorer/delivery/delivery_history.hpp"
#include "explorer/small_random.hpp"

namespace lightq::test {

/// The way in which a life has ended.
enum class LifeEnd : std::uint8_t { kill, power_cut };

/// Runs the lives of a broker on one disk after another. `violation` gets the first broken promise. Thread:
/// one.
class DeliveryClient {
 public:
  DeliveryClient() = default;

  TopicMix mix;
  DeliveryHistory history;
  Timestamp now;            ///< the wall clock, while no life runs
  bool calls_fail = false;  ///< the disk fails on purpose: calls without a promise may fail
  std::optional<std::string> violation;

  /// Starts a life on the disk after the last one has ended so. Compares the found state.
  void start(ExplorerStorage& storage, LifeEnd end);
  void stop();
  [[nodiscard]] bool is_open() const { return life_.is_open(); }
  [[nodiscard]] BrokerLife& life() { return life_; }
  /// Notes the promises of the topic at this moment, and the changes.
  void look();
  /// Notes the log's first offset and the states of messages, which may change in the middle of a call.
  void note_in_call();

  // Operations. Each is a turn of clients; none of them waits for the disk.

  void publish(std::size_t messages, std::uint32_t bytes) {
    call([&] { do_publish(messages, bytes); });
  }
  void publish_delayed(SmallRandom& random, std::size_t messages, std::uint32_t bytes) {
    call([&] { do_publish_delayed(random, messages, bytes); });
  }
  void consume(SmallRandom& random, bool acknowledges_all = false) {
    call([&] { do_consume(random, acknowledges_all); });
  }
  void save() {
    call([&] { do_save(); });
  }
  void change_delayed(SmallRandom& random) {
    call([&] { do_change_delayed(random); });
  }
  void act_on_dead(SmallRandom& random) {
    call([&] { do_act_on_dead(random); });
  }
  void give_back() {
    call([&] { do_give_back(); });
  }
  void turn(std::int64_t us);
  bool run_job(SmallRandom& random);
  void step_clock(std::int64_t us) {
    history.passed_us += us > 0 ? us : 0;
    life_.step_clock(us);
  }
  /// A time passes while no life runs.
  void wait_stopped(std::int64_t us) {
    history.passed_us += us;
    now.us += us;
  }
  /// Runs until nothing more happens, with a consumer that acknowledges everything. Checks that nothing was
  /// lost.
  void finish(SmallRandom& random);

 private:
  struct Found;
  class DelayedProducer final : public broker::SessionProducer {
   public:
    [[nodiscard]] std::uint64_t producer_id() const override { return identity.id; }
    [[nodiscard]] bool needs_durable() const override { return false; }
    void admitted() override { is_admitted = true; }
    bool resume() override { return true; }
    bool durable_moved() override { return false; }
    void end(broker::ClientError /*code*/, const std::string& /*why*/) override { is_open = false; }
    broker::ProducerIdentity identity;
    std::uint64_t sequence = 0;
    bool is_admitted = false;
    bool is_open = false;
  };

  void fail(std::string what) {
    if (!violation) violation = std::move(what);
  }
  template <typename Operation>
  void call(Operation&& operation) {
    ++history.passed_us;
    life_.call([&operation] { operation(); });
    look();
  }
  void do_publish(std::size_t messages, std::uint32_t bytes);
  void do_publish_delayed(SmallRandom& random, std::size_t messages, std::uint32_t bytes);
  void do_consume(SmallRandom& random, bool acknowledges_all);
  void do_save();
  void do_change_delayed(SmallRandom& random);
  void do_act_on_dead(SmallRandom& random);
  void do_give_back();
  [[nodiscard]] std::string name(std::int32_t number) const { return "message " + std::to_string(number); }
  void compare(LifeEnd end);
  void read_log(LifeEnd end, Found& found);
  bool is_back_beside_its_letter(std::int32_t number, const Found& found);
  void read_schedule(Found& found);
  void read_letters(LifeEnd end, Found& found);
  void compare_group(LifeEnd end, Found& found);
  void compare_messages(LifeEnd end, const Found& found);
  void adopt(LifeEnd end, const Found& found);
  [[nodiscard]] std::uint8_t state_at(Offset offset);
  void note_durable();
  void look_at_log();
  void excuse_dropped();
  void look_at_group();
  void look_at_schedule();
  void look_at_letters();
  std::int32_t add_message(std::uint32_t bytes, bool delayed);
  void detach_producer();

  DelayedProducer producer_;  // the topics of life_ use it until their end
  BrokerLife life_;
  std::vector<OffsetRange> held_;  // delivered, and not answered
};

}  // namespace lightq::test
