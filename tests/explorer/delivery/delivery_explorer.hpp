/// Explores the disks that power cuts and kills may leave of a topic with everything durable, at every step
/// of random programs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explorer/crash_cuts.hpp"
#include "explorer/delivery/delivery_client.hpp"
#include "explorer/small_random.hpp"
#include "support/explorer_storage.hpp"

namespace lightq::test {

/// The part of delivery that the programs use most.
enum class DeliveryPart : std::uint8_t {
  schedule,    ///< delayed messages, commands on them, and moving them to the log
  letters,     ///< dead messages, their transfer to another topic, and giving them back
  carry_over,  ///< dead and delayed messages of a group while retention drops the others
  all,         ///< everything in one topic
};

struct DeliveryOptions {
  DeliveryPart part = DeliveryPart::all;
  std::uint64_t seed = 1;
  std::uint64_t states_max = 250'000;  ///< stop after so many
  /// The generator's state at the start of the first program, and that of the system's random numbers: a
  /// violation states them, so that its program alone is run again. `seed` if there are none.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> replayed;
  std::size_t program_steps = 150;  ///< operations of a program
  std::size_t cuts_per_step = 10;   ///< states explored at a step, or all if there are fewer
  std::size_t all_below = 12;       ///< if a step has at most so many states, all are explored
};

/// The result of an exploration.
struct DeliveryExploration {
  std::uint64_t states = 0;  ///< disks on which the topics were opened and compared
  std::uint64_t programs = 0;
  std::uint64_t steps = 0;               ///< calls of the programs after which power cuts were explored
  std::uint64_t in_recovery = 0;         ///< states that a cut after another cut left
  std::uint64_t finished = 0;            ///< states after which everything was delivered, and counted
  std::uint64_t carried = 0;             ///< states in which messages were carried over
  std::uint64_t waiting = 0;             ///< states in which delayed messages waited
  std::uint64_t letters = 0;             ///< states in which there were letters
  std::optional<std::string> violation;  ///< the first broken promise, and how to reproduce it
};

/// Works like CrashExplorer, but with whole topics. Its programs publish messages, delayed ones too, move,
/// deliver, acknowledge and reject them, give letters back, save, let syncs fail, step the clock, kill and
/// restart. At each call that changed the disk it opens the topics on disks that a power cut may leave, and
/// compares them with the history. On some of them the program continues and is cut again, or goes on until
/// all messages are acknowledged. Thread: one.
class DeliveryExplorer {
 public:
  explicit DeliveryExplorer(const DeliveryOptions& options);
  DeliveryExploration run();

 private:
  static constexpr std::size_t depth_max = 2;
  struct Level {
    explicit Level(ExplorerWorld& world) : disk(world) {}
    ExplorerStorage disk;
    DeliveryClient client;
    std::vector<CutAtom> atoms;
    Cut cut;
  };

  void begin_program();
  void choose_mix(TopicMix& mix);
  void operate(DeliveryClient& client);
  void work(DeliveryClient& client);
  void fail_a_sync();
  void kill_in_a_call();
  void restart(LifeEnd end);
  void cut_for_real();
  void live_shortly();
  void watch(ExplorerStorage& disk, DeliveryClient& owner, std::size_t depth);
  void explore(std::size_t depth, ExplorerStorage& from, DeliveryClient& owner);
  void explore_one(std::size_t depth, LifeEnd end);
  void found(const DeliveryClient& client, const std::string& where);
  [[nodiscard]] static std::string describe(const ExplorerStorage& from, const Level& level);
  [[nodiscard]] bool done() const { return result_.violation || result_.states >= options_.states_max; }
  [[nodiscard]] std::uint32_t some_bytes() {
    return static_cast<std::uint32_t>(random_.one_in(10) ? 900 : 20 + random_.below(bytes_));
  }

  DeliveryOptions options_;
  SmallRandom random_;
  ExplorerWorld world_;
  std::array<std::unique_ptr<ExplorerStorage>, 2> live_disks_;
  std::size_t live_ = 0;
  std::array<std::unique_ptr<Level>, depth_max> levels_;  // before the client: its disk steps use them
  std::unique_ptr<DeliveryClient> client_;
  std::uint64_t bytes_ = 200;
  std::string replay_;  // the states of the random numbers at the start of the program
  DeliveryExploration result_;
};

}  // namespace lightq::test
