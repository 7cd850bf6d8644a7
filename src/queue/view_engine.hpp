/// A read-only view of a queue's files, which another process may be writing. Layer: queue.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "queue/segment_source.hpp"
#include "queue/waiters.hpp"

namespace lightq::queue {

/// Shows the segments as of the last refresh. Only complete batches are shown, and each is checked when it is
/// read; a file of another log is damage. Mapped files are locked, so that the writer does not recycle them.
/// Thread: one refreshes; readers may be on others.
class ViewEngine final : public SegmentSource {
 public:
  static Result<std::unique_ptr<ViewEngine>> open(const std::string& directory, log::Storage& storage);
  Result<void> refresh();
  [[nodiscard]] QueueStats stats() const;

  std::shared_ptr<log::SegmentNode> node_of(Offset offset) override;
  [[nodiscard]] Offset first_offset() const override;
  bool wait(Offset offset, std::chrono::milliseconds timeout) override;

 private:
  struct Seen {
    std::shared_ptr<log::SegmentNode> node;
    bool complete = false;  // sealed: its end is final
    Timestamp newest;
  };
  ViewEngine(std::string directory, log::Storage& storage)
      : SegmentSource(storage, 0, log::ViewedLog::of_another_process), directory_(std::move(directory)) {}
  Result<bool> find_new(const std::vector<Offset>& there);
  Result<bool> add(Offset name);
  Result<bool> look_on(Seen& seen);
  Result<Offset> offset_at_time(Timestamp time) override;
  Result<Offset> offset_of_cursor(const std::string& name) override;

  const std::string directory_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<Seen> seen_;
  std::uint64_t incarnation_ = 0;  // of the log, from its first sound file; 0: none was found yet
  Offset first_;                   // the oldest message as of the last refresh
  Waiters readers_;
};

}  // namespace lightq::queue
