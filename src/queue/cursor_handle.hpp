/// An open named cursor of an embedded queue. Layer: queue.
#pragma once

#include "queue/engine.hpp"

namespace lightq::queue {

/// Commits for a cursor, with a few stores. It notifies the queue only if the queue may have to act: at a
/// segment's end, or if a writer waits for space. Thread: one. Lifetime: the engine must outlive it.
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
  /// Commits an offset that may be lower than before. Returns the committed offset, which is the nearest one
  /// that is kept.
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
