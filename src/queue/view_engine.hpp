/// Somebody else's queue, or nobody's, to be read: looks at the files, changes none. Layer: queue.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "queue/segment_source.hpp"
#include "queue/waiters.hpp"

namespace lightq::queue {

/// Knows the segments as they were at the last refresh. What it shows are complete batches; every one is
/// checked when it is read, and a file of another log is damage. A file that it has mapped is locked, so that
/// its writer does not recycle it. Refreshes come from one thread; readers may be elsewhere.
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
      : SegmentSource(storage, 0, log::ViewedLog::of_a_stranger), directory_(std::move(directory)) {}
  Result<bool> find_new(const std::vector<Offset>& there);
  Result<bool> add(Offset name);
  Result<bool> look_on(Seen& seen);
  Result<Offset> offset_at_time(Timestamp time) override;
  Result<Offset> offset_of_cursor(const std::string& name) override;

  const std::string directory_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Seen> seen_;
  std::uint64_t incarnation_ = 0;  // of the log, as its first sound file said; 0: none was seen yet
  Offset first_;                   // kept, as of the last refresh
  Waiters readers_;
};

}  // namespace lightq::queue
