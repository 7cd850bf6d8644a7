/// An embedded queue: a durable log of messages in files, without a broker or a socket. It starts a thread
/// only on request. Link `lightq::log`. docs/log_format.md, "What is promised", states which messages survive
/// a crash. Layer: queue.
///
///     auto queue = lightq::Queue::open("orders").value_or_throw();
///     queue.enqueue("first").value_or_throw();
///     while (auto message = queue.dequeue().value_or_throw()) use(message->text());
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch_builder.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/queue_options.hpp>

namespace lightq::queue {
class Engine;
class ReaderState;
class CursorHandle;
class ViewEngine;
}  // namespace lightq::queue

namespace lightq::inline v1 {

/// One message as a reader returns it. Lifetime: a view, valid until the reader's next call, or as long as a
/// Pin of it exists.
struct QueuedMessage {
  Offset offset;
  Timestamp time;  ///< when its batch was appended
  ByteView payload;
  AttributeKinds kinds = {};           ///< see `attributes`
  std::uint16_t attributes_bytes = 0;  ///< right before the payload

  [[nodiscard]] std::string_view text() const { return as_text(payload); }
  /// Returns the key, headers and time that the message was packed with (BatchBuilder) or sent with.
  [[nodiscard]] AttributesView attributes() const {
    return AttributesView::trusted(kinds, payload.data() - attributes_bytes);
  }

  /// Makes one from a message's bytes in a batch.
  static QueuedMessage of(Offset offset, Timestamp time, AttributeKinds kinds, ByteView message) {
    if (!kinds.any()) return {offset, time, message};
    const std::size_t bytes = attributes_bytes_of(kinds, message.data());
    return {offset, time, message.subspan(bytes), kinds, static_cast<std::uint16_t>(bytes)};
  }

 private:
  // Not inlined, so that a loop over messages without attributes keeps its variables in registers.
  [[gnu::noinline]]
  static std::size_t attributes_bytes_of(AttributeKinds kinds, const std::byte* message) {
    return AttributesView::trusted(kinds, message).bytes();
  }
};

/// The messages of one batch. Decodes each message when the iterator reaches it, without copying. Lifetime: a
/// view, valid as long as its messages. `for (const QueuedMessage& message : messages) …`
class QueuedMessages {
 public:
  /// Iterates over the records; operator* decodes the message.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = QueuedMessage;
    using difference_type = std::ptrdiff_t;
    using pointer = const QueuedMessage*;
    using reference = QueuedMessage;

    Iterator() = default;
    Iterator(const std::byte* record, Offset offset, Timestamp time, AttributeKinds kinds)
        : record_(record), offset_(offset), time_(time), kinds_(kinds) {}
    QueuedMessage operator*() const {
      return QueuedMessage::of(offset_, time_, kinds_,
                               {record_ + sizeof(std::uint32_t), load_little_endian<std::uint32_t>(record_)});
    }
    Iterator& operator++() {
      const std::size_t bytes = record_bytes(load_little_endian<std::uint32_t>(record_));
      record_ += bytes;
      offset_ = offset_ + 1;
      read_ahead(record_, bytes);
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.offset_ == b.offset_; }

   private:
    const std::byte* record_ = nullptr;
    Offset offset_;
    Timestamp time_;
    AttributeKinds kinds_;
  };

  QueuedMessages() = default;
  /// Requires: `count` whole records at `first`. Called by queues.
  QueuedMessages(const std::byte* first, std::size_t count, Offset offset, Timestamp time,
                 AttributeKinds kinds)
      : first_(first), count_(count), offset_(offset), time_(time), kinds_(kinds) {}
  [[nodiscard]] Iterator begin() const { return {first_, offset_, time_, kinds_}; }
  [[nodiscard]] Iterator end() const { return {nullptr, offset_ + count_, time_, kinds_}; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// Requires: not empty.
  [[nodiscard]] QueuedMessage front() const { return *begin(); }

 private:
  const std::byte* first_ = nullptr;
  std::size_t count_ = 0;
  Offset offset_;
  Timestamp time_;
  AttributeKinds kinds_;
};

/// Keeps the last messages that a reader returned valid after later calls of the reader or the queue.
/// Copyable. Thread: any.
class Pin {
 public:
  Pin() = default;

 private:
  friend class QueueReader;
  explicit Pin(std::shared_ptr<const void> kept) : kept_(std::move(kept)) {}
  std::shared_ptr<const void> kept_;
};

/// Reads a queue from any offset on, without changing it. Retention may drop segments that a reader has not
/// reached; the reader's current segment stays readable. Takes no lock while it reads within a segment.
/// Move-only. Thread: one at a time; any number of readers may work beside each other and the writer.
/// Lifetime: the queue must outlive the reader.
///
/// Errors of all reads: `corrupt` for damage, with file and position, and `io_error` from the system. After
/// `corrupt` the reader's `position()` is behind the damage, and the next call continues there.
class QueueReader {
 public:
  QueueReader(QueueReader&& other) noexcept;
  QueueReader& operator=(QueueReader&& other) noexcept;
  ~QueueReader();

  /// Returns the next message, or nothing at the end.
  Result<std::optional<QueuedMessage>> next();
  /// Returns the next message without moving past it.
  Result<std::optional<QueuedMessage>> peek();
  /// Returns up to `max` messages of one batch, none at the end of the log. The fastest way to read.
  Result<QueuedMessages> next_batch(std::size_t max = limits::batch_records_max);
  /// Returns the messages in [first, last) that are still kept, up to the first damage after the first of
  /// them, and moves past them. Copies nothing: the views are pinned until the next call.
  Result<std::span<const QueuedMessage>> range(Offset first, Offset last);
  /// Waits until there is a message to read, without polling. Returns false after `timeout`. The reader of a
  /// QueueView waits until a refresh on another thread finds messages.
  bool wait(std::chrono::milliseconds timeout);

  /// Returns the offset of the message that next() would return.
  [[nodiscard]] Offset position() const;
  /// Moves the reader, in O(log n). An offset before the oldest message moves it there; an offset past the
  /// end moves it to the end. Errors: io_error.
  Result<void> seek(const Start& start);
  /// Returns a pin that keeps the messages read last valid beyond the next call.
  [[nodiscard]] Pin pin() const;

 private:
  friend class Queue;
  friend class QueueCursor;
  friend class QueueView;
  explicit QueueReader(std::unique_ptr<queue::ReaderState> state);
  std::unique_ptr<queue::ReaderState> state_;
};

/// A reader with a name and a committed offset on disk. A commit survives the end of the process immediately,
/// and a power cut after the next flush. A cursor that is opened again continues at its committed offset.
/// Only one cursor of a name can be open at a time.
class QueueCursor {
 public:
  QueueCursor(QueueCursor&& other) noexcept;
  QueueCursor& operator=(QueueCursor&& other) noexcept;
  ~QueueCursor();

  /// Returns the reader, see QueueReader. Moving it changes delivered(), never committed().
  [[nodiscard]] QueueReader& reader() { return reader_; }
  Result<std::optional<QueuedMessage>> next();
  Result<std::optional<QueuedMessage>> peek() { return reader_.peek(); }
  Result<QueuedMessages> next_batch(std::size_t max = limits::batch_records_max);
  bool wait(std::chrono::milliseconds timeout) { return reader_.wait(timeout); }
  /// Commits everything that was read so far.
  void commit() { commit(reader_.position()); }
  /// Commits everything before `offset`, which is limited to the offsets in the log.
  void commit(Offset offset);
  /// Moves the cursor to `start`, and commits that offset.
  Result<void> rewind(const Start& start);
  /// Returns the next message and commits it.
  Result<std::optional<QueuedMessage>> dequeue();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] Offset committed() const;
  /// Returns one past the last message that was read, by this process or an earlier one.
  [[nodiscard]] Offset delivered() const;

 private:
  friend class Queue;
  QueueCursor(QueueReader reader, std::unique_ptr<queue::CursorHandle> handle);
  QueueReader reader_;
  std::unique_ptr<queue::CursorHandle> handle_;
};

/// The queue and its writer. Only one process at a time can open a directory for writing. Move-only.
///
/// After a fork the child process cannot use the queue, its readers and cursors, or a QueueView. All calls
/// return `closed` there; calls without a Result do nothing, and statistics are empty. The child may destroy
/// them, which changes nothing on disk; until it does, it keeps the lock of the directory.
///
/// The same holds after a move for a queue, reader, cursor or QueueView that was moved from. All its calls
/// return `closed`; calls without a Result do nothing, and return empty or 0. It may be assigned to and
/// destroyed.
///
/// Thread: appends, flush, wait_durable and close from one thread at a time (with QueueOptions::many_writers
/// from any); dequeue, peek and is_empty from one thread at a time; everything else from any.
class Queue {
 public:
  /// Opens the queue in `directory`, and recovers it if the last process did not close it. Makes the
  /// directory if it does not exist. A relative path is resolved in this call: changing the working directory
  /// later has no effect. Errors: `in_use` (another process, or this one, has it open), `foreign_format`,
  /// `corrupt`, `io_error`, `no_space`, each with the file's name; `invalid_argument`.
  static Result<Queue> open(const std::string& directory, const QueueOptions& options = {});
  Queue(Queue&& other) noexcept;
  Queue& operator=(Queue&& other) noexcept;
  /// Closes as close() does, and ignores errors.
  ~Queue();
  /// Makes everything durable and marks the queue as cleanly closed. Requires: its readers, cursors and views
  /// are destroyed. Only the destructor may be called afterwards. Errors: those of flush.
  Result<void> close();

  /// Appends one message and returns its offset. Errors: `limit_reached` (capacity with Overflow::reject, or
  /// the queue has used up its offsets), `timeout` (Overflow::block), `no_space`, `too_large`, `io_error`;
  /// then nothing was appended. Exception: under FlushPolicy::every_append an `io_error` of the first failed
  /// sync means that the message was appended and may or may not survive; later appends are refused.
  Result<Offset> enqueue(ByteView payload);
  Result<Offset> enqueue(std::string_view payload) { return enqueue(as_byte_view(payload)); }
  Result<Offset> enqueue(const char* payload) { return enqueue(std::string_view(payload)); }
  /// Appends all messages or none, as one batch. Returns the first one's offset. At most 65,536 messages,
  /// together less than 4 GiB.
  Result<Offset> enqueue(std::span<const ByteView> payloads);
  Result<Offset> enqueue(std::span<const std::string_view> payloads);
  /// Appends a packed batch without packing it again: the fastest way, and the only one for messages with
  /// attributes. Requires: not empty, not compressed. Call clear() on the batch afterwards to use it again.
  Result<Offset> enqueue(BatchBuilder& batch);

  /// Returns the next message of the cursor "default" and commits it, or nothing at the end. The first call
  /// makes that cursor at the oldest message. The view is valid until the next dequeue or peek.
  Result<std::optional<QueuedMessage>> dequeue();
  Result<std::optional<QueuedMessage>> peek();
  Result<bool> is_empty();

  /// Makes a reader without a name.
  Result<QueueReader> reader(const Start& start = Start::first());
  /// Opens the cursor of this name (by the rule of topic names), and makes it at `start` if there is none.
  /// Errors: `in_use` (it is open already), `invalid_argument` (also if Start::copy_of names a cursor that
  /// does not exist), `limit_reached` (1,024 cursors), io_error.
  Result<QueueCursor> cursor(std::string_view name, const Start& start = Start::first());
  /// Deletes a cursor. Errors: `invalid_argument` (there is none), `in_use`, io_error.
  Result<void> remove_cursor(std::string_view name);

  /// Makes everything appended and committed so far durable. Errors: io_error. After a failed sync nothing
  /// becomes durable until the queue is opened again, because the system may have dropped the pages; flush
  /// then fails each time.
  Result<void> flush();
  [[nodiscard]] Offset first_offset() const;
  [[nodiscard]] Offset next_offset() const;
  [[nodiscard]] Offset durable_offset() const;
  /// Waits until everything before `offset` is durable; flushes at once if the flush policy would not.
  /// Returns false after `timeout`. Errors: those of flush.
  Result<bool> wait_durable(Offset offset, std::chrono::milliseconds timeout);
  /// Returns a future that is ready when everything before `offset` is durable, or cannot become durable.
  std::future<Result<void>> durable(Offset offset);
  /// Calls `done` once when everything before `offset` is durable, or cannot become durable: at once, or
  /// later on the thread that syncs, in the order of offsets. `done` must not call the queue.
  void on_durable(Offset offset, std::function<void(const Result<void>&)> done);

  /// Drops the segments with only offsets below `before`, independent of retention.
  Result<void> trim(Offset before);
  /// Applies retention by time and does other due work. Needed only without `background`.
  void maintain();
  [[nodiscard]] QueueStats stats() const;
  [[nodiscard]] const QueueRecovery& recovery() const;

 private:
  struct Parts;
  explicit Queue(std::unique_ptr<Parts> parts);
  Result<QueueCursor*> default_cursor();
  std::unique_ptr<Parts> parts_;
};

/// A queue opened only for reading, with or without another process that writes it. Changes nothing on disk.
/// It shows complete batches: under FlushPolicy::none() single messages appear when their batch is closed (at
/// 64 KiB, or by a flush). A reader that reaches a segment dropped since the last refresh returns `closed`;
/// after the next refresh it continues at the oldest message kept. Thread: one at a time; its readers may be
/// on other threads.
class QueueView {
 public:
  /// Opens the queue in `directory`. If it does not exist yet, the view is empty. Errors: `foreign_format`,
  /// `corrupt`, `io_error`, each with the file's name.
  static Result<QueueView> open(const std::string& directory);
  QueueView(QueueView&& other) noexcept;
  QueueView& operator=(QueueView&& other) noexcept;
  ~QueueView();

  /// Makes appends and removals since the last refresh visible. Errors: as open; `io_error` also if the
  /// directory has disappeared.
  Result<void> refresh();
  Result<QueueReader> reader(const Start& start = Start::first());
  [[nodiscard]] QueueStats stats() const;

 private:
  explicit QueueView(std::unique_ptr<queue::ViewEngine> engine);
  std::unique_ptr<queue::ViewEngine> engine_;
};

}  // namespace lightq::inline v1
