/// Explores the states in which power cuts may leave a log, at every step of random programs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "explorer/checkpoint_distances.hpp"
#include "explorer/crash_cuts.hpp"
#include "explorer/log_client.hpp"
#include "explorer/small_random.hpp"
#include "support/storage_keys.hpp"

namespace lightq::test {

struct ExplorerOptions {
  std::uint64_t seed = 1;
  std::uint64_t states_max = 250'000;  ///< stop after so many
  std::uint64_t segment_bytes = 8192;  ///< the size of the log's files
  std::size_t program_steps = 80;  ///< operations of a program, before the next program begins with a new log
  std::size_t cuts_per_step = 24;  ///< states explored at a step, or all if there are fewer
  std::size_t all_below = 64;      ///< if a step has at most so many states, all are explored
  bool mapped = false;             ///< the log is written through mappings
  bool small_checkpoints = true;   ///< half of the programs write a checkpoint every few messages
  bool encrypted = false;          ///< with keys; some restart adds a new key. Not together with `mapped`
};

/// The result of an exploration.
struct Exploration {
  std::uint64_t states = 0;  ///< disks on which the log was opened and compared
  std::uint64_t programs = 0;
  std::uint64_t steps = 0;               ///< calls of the programs after which power cuts were explored
  std::uint64_t in_recovery = 0;         ///< states that a cut during a recovery left
  std::optional<std::string> violation;  ///< the first broken promise, and how to reproduce it
};

/// Runs seeded programs on a log: appends, flushes, jobs, drops, recycling, commits, kills and power cuts.
/// After each call that changed the disk, it makes the disks that a power cut may leave. In each, every
/// 512-byte sector and every change of names since the last sync either survives or does not. It opens the
/// log on each such disk and compares it with the history. On some of them the program continues and the
/// power is cut again, during recovery or some appends later. The same options give the same exploration,
/// except for the bytes of encrypted batches. Thread: one.
class CrashExplorer {
 public:
  explicit CrashExplorer(const ExplorerOptions& options);
  Exploration run();

 private:
  static constexpr std::size_t depth_max = 3;
  struct Level {
    Level(ExplorerWorld& world, Payloads& payloads) : disk(world), client(disk, payloads) {}
    ExplorerStorage disk;
    LogClient client;
    const ExplorerStorage* from = nullptr;  // the disk that is being cut
    std::vector<CutAtom> atoms;             // the atoms of `from`
    Cut cut;
  };

  void begin_program();
  void operate();
  void append_some();
  void work_on_job();
  void look();
  void fail_a_sync();
  void kill_in_a_call();
  void restart(Ending ending);
  void cut_for_real();
  void explore(std::size_t depth, ExplorerStorage& from, LogClient& owner);
  void explore_one(std::size_t depth);
  void live_on(std::size_t depth);
  void watch(ExplorerStorage& disk, LogClient& owner, std::size_t depth, std::uint64_t one_in);
  void choose_options();
  void choose_sizes();
  void pack_some();
  void kill_in_a_store();
  void close_and_go_on();
  std::vector<std::size_t> some_sizes();
  void found(const LogClient& client, const std::string& where);
  [[nodiscard]] std::string describe_cuts(std::size_t depth) const;
  [[nodiscard]] bool done() const { return result_.violation || result_.states >= options_.states_max; }

  CheckpointDistances checkpoints_;  // outlives the clients
  ExplorerOptions options_;
  SmallRandom random_;
  ExplorerWorld world_;
  Payloads payloads_;
  std::array<std::unique_ptr<ExplorerStorage>, 2> live_disks_;
  std::size_t live_ = 0;
  std::unique_ptr<LogClient> live_client_;
  std::array<std::unique_ptr<Level>, depth_max> levels_;
  std::array<std::size_t, 3> sizes_{};  // sizes of this program's messages
  std::unique_ptr<rest::StorageKeys> keys_ = storage_keys({1});
  std::unique_ptr<rest::StorageKeys> newer_keys_ = storage_keys({2, 1});
  bool sync_has_failed_ = false;
  Exploration result_;
};

}  // namespace lightq::test
