/// Explores the states in which power cuts and kills may leave an embedded queue, at every step of random
/// programs.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "explorer/checkpoint_distances.hpp"
#include "explorer/crash_cuts.hpp"
#include "explorer/crash_explorer.hpp"
#include "explorer/queue_client.hpp"

namespace lightq::test {

/// Works like CrashExplorer, but with the queue above the log. Its programs pack single messages in place,
/// append batches and read. They create and remove three named cursors, trim, close, let syncs fail, and
/// append and commit while a job runs. One state of eight is that of a kill at that moment. Thread: one.
class QueueExplorer {
 public:
  explicit QueueExplorer(const ExplorerOptions& options);
  Exploration run();

 private:
  static constexpr std::size_t depth_max = 2;
  struct Level {
    Level(ExplorerWorld& world, Payloads& payloads) : disk(world), client(disk, payloads) {}
    ExplorerStorage disk;
    QueueClient client;
    std::vector<CutAtom> atoms;
    Cut cut;
  };

  void begin_program();
  void choose_options(QueueOptions& options);
  void operate(QueueClient& client);
  void restart(Ending ending);
  void with_others(const std::function<void()>& call);
  void act_meanwhile(QueueClient& client);
  void fail_a_sync();
  [[nodiscard]] std::size_t some_cursor();
  void cut_for_real();
  void explore(std::size_t depth, ExplorerStorage& from, QueueClient& owner);
  void explore_one(std::size_t depth, Ending ending);
  void watch(ExplorerStorage& disk, QueueClient& owner, std::size_t depth);
  void found(const QueueClient& client, const std::string& where);
  [[nodiscard]] std::size_t some_size();
  [[nodiscard]] std::string describe(const ExplorerStorage& from, const Level& level) const;
  [[nodiscard]] bool done() const { return result_.violation || result_.states >= options_.states_max; }

  CheckpointDistances checkpoints_;  // outlives the clients
  ExplorerOptions options_;
  SmallRandom random_;
  ExplorerWorld world_;
  Payloads payloads_;
  std::array<std::unique_ptr<ExplorerStorage>, 2> live_disks_;
  std::size_t live_ = 0;
  std::unique_ptr<QueueClient> live_client_;
  std::array<std::unique_ptr<Level>, depth_max> levels_;
  std::size_t size_ = 0;
  Exploration result_;
};

}  // namespace lightq::test
