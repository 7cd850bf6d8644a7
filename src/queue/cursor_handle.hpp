/// An open named cursor: what it has committed, and whom that concerns. Layer: queue.
#pragma once

#include "queue/engine.hpp"

namespace lightq::queue {

/// Commits are a few stores; the queue hears of one only where it may have to act: at a segment's end, or
/// when a writer waits for room. One thread; the engine must outlive it.
class CursorHandle {
 public:
  CursorHandle(Engine& engine, log::TableCursor& cursor) : engine_(engine), cursor_(cursor) {}
  CursorHandle(const CursorHandle&) = delete;
  CursorHandle& operator=(const CursorHandle&) = delete;
  ~CursorHandle() {
    if (engine_.home().is_here()) engine_.give_back(cursor_);
  }

  void commit(Offset offset) {
    cursor_.commit(offset);
    if (tell_from_ <= offset || engine_.room_is_wanted()) tell_from_ = engine_.committed(cursor_);
  }
  /// As commit, for an offset that may lie further back; what it came to.
  Offset go_back(Offset offset) {
    tell_from_ = {};
    return engine_.go_back(cursor_, offset);
  }
  void note_delivered(Offset offset) { cursor_.note_delivered(offset); }
  [[nodiscard]] Offset committed() const { return cursor_.committed(); }
  [[nodiscard]] Offset delivered() const { return cursor_.delivered(); }
  [[nodiscard]] const std::string& name() const { return cursor_.name(); }

 private:
  Engine& engine_;
  log::TableCursor& cursor_;
  Offset tell_from_;
};

}  // namespace lightq::queue
