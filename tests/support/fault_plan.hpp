/// The faults that befall a connection through the fault proxy, drawn from a seed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>

namespace lightq::test {

/// The faults of one direction. Positions count the bytes that were passed on.
struct FaultWay {
  static constexpr std::uint64_t never = UINT64_MAX;

  /// The largest piece that is passed on at a time, within the first `pieces_until` bytes.
  std::size_t piece_bytes_max = 64 * 1024;
  std::uint64_t pieces_until = 0;          ///< pieces after this position have up to 64 KiB
  std::chrono::microseconds delay_max{0};  ///< the wait before a piece; bytes that arrive meanwhile join it
  std::uint64_t cut_at = never;            ///< the connection ends at this position
  std::uint64_t stall_at = never;   ///< nothing passes from this position on, not even the end of either side
  bool stall_swallows = false;      ///< throws stalled bytes away; false: leaves them to the sender for 0.5 s
  std::uint64_t replay_at = never;  ///< at this position the last `replay_bytes` are sent once more
  std::size_t replay_bytes = 0;
  std::uint64_t flip_at = never;  ///< the byte at this position has one bit changed
  int flip_bit = -1;              ///< the number of the changed bit; -1: a random one
};

struct FaultPlan {
  FaultWay to_broker;
  FaultWay to_client;
  bool cut_resets = false;  ///< true: a cut sends an RST to both sides; false: a FIN
  std::uint64_t seed = 1;   ///< for the sizes of pieces and the delays
};

/// The frequency of each fault: on average one connection in this many has the fault; 0: none has it.
struct FaultMix {
  std::uint32_t cut = 0;
  std::uint32_t stall = 0;
  std::uint32_t replay = 0;
  std::uint32_t flip = 0;
  // Faults happen before these positions. Every order of magnitude is equally likely.
  std::uint64_t to_broker_max = 32 * 1024;
  std::uint64_t to_client_max = 32 * 1024;
  std::uint64_t connections_max = 1'000;  ///< later connections have no fault, so that a test terminates
};

/// Draws one plan after the other. Thread: one.
class FaultPlanner {
 public:
  FaultPlanner(std::uint64_t seed, const FaultMix& mix) : mix_(mix), random_(seed) {}

  FaultPlan next() {
    FaultPlan plan;
    plan.seed = random_();
    shape(plan.to_broker);
    shape(plan.to_client);
    if (connections_++ >= mix_.connections_max) return plan;
    if (one_in(mix_.cut)) {
      Place at = place(plan);
      at.way.cut_at = at.place;
      plan.cut_resets = one_in(2);
    }
    if (one_in(mix_.stall)) stall(plan);
    if (one_in(mix_.replay)) {
      plan.to_broker.replay_at = before(mix_.to_broker_max);
      plan.to_broker.replay_bytes = 1 + below(one_in(2) ? 64 : 4096);
    }
    if (one_in(mix_.flip)) {
      Place at = place(plan);
      at.way.flip_at = at.place;
    }
    return plan;
  }

 private:
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }
  bool one_in(std::uint64_t n) { return n != 0 && below(n) == 0; }

  struct Place {
    FaultWay& way;
    std::uint64_t place;
  };
  Place place(FaultPlan& plan) {
    if (one_in(2)) return {plan.to_broker, before(mix_.to_broker_max)};
    return {plan.to_client, before(mix_.to_client_max)};
  }
  std::uint64_t before(std::uint64_t end) {
    std::uint64_t magnitudes = 1;
    while ((std::uint64_t{1} << magnitudes) < end) ++magnitudes;
    return below(std::uint64_t{1} << (1 + below(magnitudes)));
  }
  /// Draws piece sizes and delays that a test can afford. Single bytes occur only at the start, during the
  /// handshake.
  void shape(FaultWay& way) {
    if (one_in(4)) way.delay_max = std::chrono::microseconds(1 + below(1'000));
    const bool is_slow = way.delay_max.count() > 0;
    if (one_in(2)) {
      way.piece_bytes_max = one_in(2) ? 1 : 1 + below(40);
      way.pieces_until = below(is_slow ? 40 : 200);
    } else if (one_in(2)) {
      way.piece_bytes_max = 1 + below(1500);
      way.pieces_until = is_slow ? 10'000 : 100'000;
    }
  }
  void stall(FaultPlan& plan) {
    const std::uint64_t which = below(3);  // 2: both directions; neither side learns of the other's end
    if (which != 0) plan.to_broker.stall_at = before(mix_.to_broker_max);
    if (which != 1) plan.to_client.stall_at = before(mix_.to_client_max);
    plan.to_broker.stall_swallows = plan.to_client.stall_swallows = one_in(2);
  }

  FaultMix mix_;
  std::mt19937_64 random_;
  std::uint64_t connections_ = 0;
};

}  // namespace lightq::test
