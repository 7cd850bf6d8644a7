/// A user of an embedded queue and its cursors on an explored disk. It checks the queue's promises.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "explorer/history.hpp"
#include "explorer/log_client.hpp"
#include "queue/engine.hpp"

namespace lightq::test {

/// The offsets at which a cursor may stand.
struct CursorHistory {
  bool certain = false;    ///< making it has returned
  bool in_memory = false;  ///< found after a kill during its making: a power cut may remove it
  std::uint64_t last = 0;  ///< the last commit; the position after a kill
  /// The last flushed commit and later ones; positions after a power cut.
  std::vector<std::uint64_t> allowed;
};

/// Enqueues, commits, flushes and trims. After each opening it reads everything through a reader and compares
/// it with its history. The life of a process lasts from `open` to `die`.
class QueueClient {
 public:
  static constexpr const char* directory = "/queues/1";
  static constexpr std::size_t cursors_max = 3;

  QueueClient(ExplorerStorage& storage, Payloads& payloads) : storage_(&storage), payloads_(payloads) {}
  ~QueueClient() { die(); }
  QueueClient(const QueueClient&) = delete;
  QueueClient& operator=(const QueueClient&) = delete;

  QueueOptions options;
  History history;
  std::array<CursorHistory, cursors_max> cursors;
  Timestamp now{1'000'000'000'000};
  std::optional<std::string> violation;
  bool died_opening = false;
  /// True while syncs are made to fail, and for the rest of the life in which one failed. Calls may then
  /// return errors. After a failed flush nothing more may become durable.
  bool calls_fail = false;
  bool opened = false;  ///< open has returned: the history is that of this life, not of the previous one

  /// Opens the queue that `ending` left and compares it. Continues with the messages that are there.
  void open(Ending ending);
  /// Ends this life as a kill would.
  void die();
  void move_to(ExplorerStorage& storage) { storage_ = &storage; }
  [[nodiscard]] ExplorerStorage& storage() { return *storage_; }
  [[nodiscard]] bool is_open() const { return engine_ != nullptr; }

  void enqueue(std::size_t bytes);
  void enqueue_batch(const std::vector<std::size_t>& sizes);
  void flush();
  void close();
  void trim(Offset before);
  void maintain();
  void commit(std::size_t cursor, std::uint64_t offset);
  /// Removes a cursor, so that a later commit makes it anew.
  void remove_cursor(std::size_t cursor);
  [[nodiscard]] bool has_cursor(std::size_t cursor) const { return taken_[cursor] != nullptr; }
  /// Updates history.first while a call is under way.
  void note_first();
  /// Reads everything and compares it.
  void compare(Ending ending);

 private:
  void complain(const std::string& what) {
    if (!violation) violation = what;
  }
  template <typename Append>
  void append(const std::vector<std::size_t>& sizes, Append&& call);
  void note();
  void note_durable();
  void take_cursor(std::size_t which);
  void settle_cursors();
  [[nodiscard]] Offset droppable() const;
  [[nodiscard]] std::string cursors_text() const;
  void compare_message(const QueuedMessage& message, Offset expected);
  void compare_error(Offset from, Offset next, Offset floor, const Error& error);
  void compare_cursors(Ending ending, bool was_opening);
  void compare_cursor(std::size_t which, const CursorState* state, Ending ending, bool was_opening);
  [[nodiscard]] Offset promised_from(Offset floor) const;

  ExplorerStorage* storage_;
  Payloads& payloads_;
  std::unique_ptr<queue::Engine> engine_;
  std::array<log::TableCursor*, cursors_max> taken_{};
  bool flush_failed_ = false;  // in this life
  bool log_failed_ = false;    // the log's sync failed: no message becomes durable any more
  Offset told_durable_;
  std::vector<Offset> damaged_now_;
};

}  // namespace lightq::test
