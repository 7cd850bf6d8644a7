/// The interface through which readers get segments: from an open queue, or from a view of another process's
/// queue. Layer: queue.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include <lightq/base/home_process.hpp>
#include <lightq/queue_options.hpp>

#include "log/format/segment_node.hpp"
#include "queue/reader_feed.hpp"

namespace lightq::queue {

/// Provides segments. Readers call it when they begin, seek, or find no successor; within a chain of segments
/// they need only `next_offset`. Thread: any.
class SegmentSource {
 public:
  SegmentSource(log::Storage& storage, std::uint64_t mapped_bytes_max,
                log::ViewedLog viewed = log::ViewedLog::own)
      : storage_(storage), views_(storage, mapped_bytes_max, viewed) {}
  SegmentSource(const SegmentSource&) = delete;
  SegmentSource& operator=(const SegmentSource&) = delete;
  virtual ~SegmentSource() = default;

  /// Returns the segment that contains `offset`, or the nearest one; null if there is none.
  virtual std::shared_ptr<log::SegmentNode> node_of(Offset offset) = 0;
  [[nodiscard]] virtual Offset first_offset() const = 0;
  /// Returns the offset for `start`; see Start.
  Result<Offset> resolve(const Start& start);
  /// Waits until there is a message at `offset`. Returns false after `timeout`.
  virtual bool wait(Offset offset, std::chrono::milliseconds timeout) = 0;

  /// Returns one past the newest message: everything before it can be read.
  [[nodiscard]] Offset next_offset() const { return end_.value(); }
  /// Returns the nearest offset to `offset` that is kept, or next_offset.
  [[nodiscard]] Offset clamped(Offset offset) const {
    const Offset first = first_offset();  // read first, because it may grow past an earlier next offset
    return std::clamp(offset, first, next_offset());
  }
  /// Returns the process that opened the source.
  [[nodiscard]] const HomeProcess& home() const { return home_; }
  [[nodiscard]] log::SegmentViews& views() { return views_; }
  [[nodiscard]] const log::SegmentViews& views() const { return views_; }
  [[nodiscard]] log::Storage& storage() { return storage_; }

 protected:
  void publish(Offset next) { end_.publish(next); }
  [[nodiscard]] PublishedEnd& published_end() { return end_; }

 private:
  /// Returns the first message of the first batch appended at `time` or later.
  virtual Result<Offset> offset_at_time(Timestamp time) = 0;
  virtual Result<Offset> offset_of_cursor(const std::string& name) = 0;

  log::Storage& storage_;
  const HomeProcess home_;
  log::SegmentViews views_;
  PublishedEnd end_;
};

inline Result<Offset> SegmentSource::resolve(const Start& start) {
  switch (start.kind()) {
    case Start::Kind::first: return first_offset();
    case Start::Kind::next: return next_offset();
    case Start::Kind::offset: return clamped(start.offset());
    case Start::Kind::time: return offset_at_time(start.time());
    case Start::Kind::copy: break;
  }
  return offset_of_cursor(start.cursor());
}

}  // namespace lightq::queue
