/// An embedded queue: a durable log of messages in files, without a broker, a socket or (unless asked for) a
/// thread. Link `lightq::log`. What survives what: docs/log_format.md, "What is promised". Layer: queue.
///
///     auto queue = lightq::Queue::open("orders").value_or_throw();
///     queue.enqueue("first").value_or_throw();
///     while (auto message = queue.dequeue().value_or_throw()) use(message->text());
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

/// One message as a reader gives it. A view: valid until the reader's next call, or as long as a Pin of it.
struct QueuedMessage {
  Offset offset;
  Timestamp time;  ///< of its batch's append
  ByteView payload;
  AttributeKinds kinds = {};           ///< see `attributes`
  std::uint16_t attributes_bytes = 0;  ///< right before the payload

  [[nodiscard]] std::string_view text() const { return as_text(payload); }
  /// Key, headers and time, of a message that was packed with them (BatchBuilder) or sent to a topic so.
  [[nodiscard]] AttributesView attributes() const {
    return AttributesView::trusted(kinds, payload.data() - attributes_bytes);
  }

  /// Of a message's bytes in a batch.
  static QueuedMessage of(Offset offset, Timestamp time, AttributeKinds kinds, ByteView message) {
    if (!kinds.any()) return {offset, time, message};
    const std::size_t bytes = attributes_bytes_of(kinds, message.data());
    return {offset, time, message.subspan(bytes), kinds, static_cast<std::uint16_t>(bytes)};
  }

 private:
  // Not inlined: a walk over messages without attributes keeps all it needs in registers.
  [[gnu::noinline]]
  static std::size_t attributes_bytes_of(AttributeKinds kinds, const std::byte* message) {
    return AttributesView::trusted(kinds, message).bytes();
  }
};

/// Messages of one batch, decoded as they are walked over: nothing is copied, no array made. A view, valid as
/// its messages are. `for (const QueuedMessage& message : messages) …`
class QueuedMessages {
 public:
  /// Walks over the records; each message is made where it is looked at.
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
  /// `count` whole records from `first` on; queues make these.
  QueuedMessages(const std::byte* first, std::size_t count, Offset offset, Timestamp time,
                 AttributeKinds kinds)
      : first_(first), count_(count), offset_(offset), time_(time), kinds_(kinds) {}
  [[nodiscard]] Iterator begin() const { return {first_, offset_, time_, kinds_}; }
  [[nodiscard]] Iterator end() const { return {nullptr, offset_ + count_, time_, kinds_}; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// Not of an empty one.
  [[nodiscard]] QueuedMessage front() const { return *begin(); }

 private:
  const std::byte* first_ = nullptr;
  std::size_t count_ = 0;
  Offset offset_;
  Timestamp time_;
  AttributeKinds kinds_;
};

/// Keeps the memory of the messages that a reader has given last valid, whatever the reader or the queue does
/// afterwards. Copyable; any thread.
class Pin {
 public:
  Pin() = default;

 private:
  friend class QueueReader;
  explicit Pin(std::shared_ptr<const void> kept) : kept_(std::move(kept)) {}
  std::shared_ptr<const void> kept_;
};

/// Reads a queue from any offset on; does not change it, and does not keep anything from being dropped (but
/// what it stands in stays readable to it). Takes no lock while it reads within a segment. Move-only; one
/// thread at a time, any number of readers beside each other and the writer. The queue must outlive it.
///
/// Errors of all reads: `corrupt`, naming file and position, for damage; the reader then stands behind it, at
/// `position()`, and the next call goes on there. `io_error` where the system refused.
class QueueReader {
 public:
  QueueReader(QueueReader&& other) noexcept;
  QueueReader& operator=(QueueReader&& other) noexcept;
  ~QueueReader();

  /// The next message, or nothing at the end.
  Result<std::optional<QueuedMessage>> next();
  /// As next, without moving on.
  Result<std::optional<QueuedMessage>> peek();
  /// Up to `max` messages at once, fewer at the end of a batch; none at the end of the log. The quickest way
  /// to read.
  Result<QueuedMessages> next_batch(std::size_t max = limits::batch_records_max);
  /// The messages from `first` up to, not including, `last`, as far as they are kept, and up to the first
  /// damage behind the first of them; the reader then stands behind them. Copies nothing: the views are
  /// pinned until the next call.
  Result<std::span<const QueuedMessage>> range(Offset first, Offset last);
  /// Waits until there is a message to read, without polling. False after `timeout`. The reader of a
  /// QueueView waits for what a refresh on another thread shows.
  bool wait(std::chrono::milliseconds timeout);

  /// The offset of the message that next() would give.
  [[nodiscard]] Offset position() const;
  /// Goes elsewhere; O(log n). An offset before the oldest message kept counts as that, one past the end as
  /// the end. Errors: io_error.
  Result<void> seek(const Start& start);
  /// Keeps what was read last valid beyond the next call.
  [[nodiscard]] Pin pin() const;

 private:
  friend class Queue;
  friend class QueueCursor;
  friend class QueueView;
  explicit QueueReader(std::unique_ptr<queue::ReaderState> state);
  std::unique_ptr<queue::ReaderState> state_;
};

/// A reader with a name, whose committed offset is on disk: it survives the process at once, and a power cut
/// with the next flush. Opening it again goes on at what was committed. One at a time of a name.
class QueueCursor {
 public:
  QueueCursor(QueueCursor&& other) noexcept;
  QueueCursor& operator=(QueueCursor&& other) noexcept;
  ~QueueCursor();

  /// Reads; see QueueReader. Moving this reader changes what was delivered, never what is committed.
  [[nodiscard]] QueueReader& reader() { return reader_; }
  Result<std::optional<QueuedMessage>> next();
  Result<std::optional<QueuedMessage>> peek() { return reader_.peek(); }
  Result<QueuedMessages> next_batch(std::size_t max = limits::batch_records_max);
  bool wait(std::chrono::milliseconds timeout) { return reader_.wait(timeout); }
  /// Everything that was read so far is done with.
  void commit() { commit(reader_.position()); }
  /// Everything before `offset` is done with. Clamped to what is in the log.
  void commit(Offset offset);
  /// Goes back (or on) to `start`, and commits that.
  Result<void> rewind(const Start& start);
  /// next() and commit() in one.
  Result<std::optional<QueuedMessage>> dequeue();

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] Offset committed() const;
  /// One past the last message that was read, also by an earlier process.
  [[nodiscard]] Offset delivered() const;

 private:
  friend class Queue;
  QueueCursor(QueueReader reader, std::unique_ptr<queue::CursorHandle> handle);
  QueueReader reader_;
  std::unique_ptr<queue::CursorHandle> handle_;
};

/// The queue itself, and its writer. One process at a time has a directory open for writing. Move-only.
/// A child that is forked later is another process: there all calls of the queue, its readers and cursors,
/// and of a QueueView, answer `closed`; those without a Result do nothing, and statistics are empty. The
/// child may destroy them, which changes nothing on disk, and keeps the lock of the directory until it does.
/// Threads: appends, flush, wait_durable and close from one thread at a time (with
/// QueueOptions::many_writers: from any);
/// dequeue, peek and is_empty from one thread at a time; everything else from any.
class Queue {
 public:
  /// Opens the queue in `directory`, made if it is not there, and recovers what an earlier process left. A
  /// relative path counts from the process's directory of now.
  /// Errors: `in_use` (another process, or this one, has it open), `foreign_format`, `corrupt`, `io_error`,
  /// `no_space`, each naming the file; `invalid_argument`.
  static Result<Queue> open(const std::string& directory, const QueueOptions& options = {});
  Queue(Queue&& other) noexcept;
  Queue& operator=(Queue&& other) noexcept;
  /// Closes as close() does, without a word of what failed.
  ~Queue();
  /// Makes everything durable and marks the queue as cleanly closed. Readers, cursors and views of it must be
  /// gone. Nothing but destruction may follow. Errors: those of flush.
  Result<void> close();

  /// Appends one message: its offset. Errors: `limit_reached` (capacity, Overflow::reject), `timeout`
  /// (Overflow::block), `no_space`, `too_large`, `io_error`; nothing was appended then. (But under
  /// FlushPolicy::every_append the first `io_error` of a sync says that what was appended may or may not
  /// last; from then on appends are refused.)
  Result<Offset> enqueue(ByteView payload);
  Result<Offset> enqueue(std::string_view payload) { return enqueue(as_byte_view(payload)); }
  Result<Offset> enqueue(const char* payload) { return enqueue(std::string_view(payload)); }
  /// Appends all of them or none, as one batch; the first one's offset. At most 65,536, together below 4 GiB.
  Result<Offset> enqueue(std::span<const ByteView> payloads);
  Result<Offset> enqueue(std::span<const std::string_view> payloads);
  /// Appends a packed batch (not empty, not compressed) without packing it again; the quickest way, and the
  /// one for messages with attributes. Then clear() it.
  Result<Offset> enqueue(BatchBuilder& batch);

  /// Of the cursor named "default", made at the first call where the oldest message is: the next message,
  /// which is committed at once; nothing where there is none. The view is valid until the next dequeue or
  /// peek.
  Result<std::optional<QueuedMessage>> dequeue();
  Result<std::optional<QueuedMessage>> peek();
  Result<bool> is_empty();

  /// A reader without a name.
  Result<QueueReader> reader(const Start& start = Start::first());
  /// The cursor of this name (the rule of topic names); `start` counts if there is none yet. Errors: `in_use`
  /// (it is open already), `not_found` words of Start::copy_of as `invalid_argument`, `limit_reached` (1,024
  /// cursors), io_error.
  Result<QueueCursor> cursor(std::string_view name, const Start& start = Start::first());
  /// Forgets a cursor. Errors: `invalid_argument` (there is none), `in_use`, io_error.
  Result<void> remove_cursor(std::string_view name);

  /// Makes everything appended and committed so far durable. Errors: io_error; after one that came from a
  /// sync nothing more becomes durable until the queue is opened again (the system may have dropped the
  /// pages), and flush says so each time.
  Result<void> flush();
  [[nodiscard]] Offset first_offset() const;
  [[nodiscard]] Offset next_offset() const;
  [[nodiscard]] Offset durable_offset() const;
  /// Waits until everything before `offset` is durable; flushes at once if no rule would. False after
  /// `timeout`. Errors: those of flush.
  Result<bool> wait_durable(Offset offset, std::chrono::milliseconds timeout);
  /// Ready when everything before `offset` is durable, or cannot become so.
  std::future<Result<void>> durable(Offset offset);
  /// Calls `done` once with the same, from the thread that synced (in order of offsets); at once if it is
  /// durable already. It must not call the queue.
  void on_durable(Offset offset, std::function<void(const Result<void>&)> done);

  /// Drops the segments that hold nothing at or past `before`, whatever retention says.
  Result<void> trim(Offset before);
  /// Applies retention by time, and what is due without `background`.
  void maintain();
  [[nodiscard]] QueueStats stats() const;
  [[nodiscard]] const QueueRecovery& recovery() const;

 private:
  struct Parts;
  explicit Queue(std::unique_ptr<Parts> parts);
  Result<QueueCursor*> default_cursor();
  std::unique_ptr<Parts> parts_;
};

/// A queue opened to be read beside the process that writes it, or while nobody does. Changes nothing on
/// disk. Shows the batches that are complete: under FlushPolicy::none() single messages show up when their
/// batch is closed (64 KiB, a flush). A reader that comes to a segment which was dropped since the last
/// refresh answers `closed`, and goes on after the next, at the oldest message kept. One thread at a time;
/// its readers may be on others.
class QueueView {
 public:
  /// Errors: `foreign_format`, `corrupt`, `io_error`, each naming the file.
  static Result<QueueView> open(const std::string& directory);
  QueueView(QueueView&& other) noexcept;
  QueueView& operator=(QueueView&& other) noexcept;
  ~QueueView();

  /// Looks for what was appended and dropped since. Errors: as open.
  Result<void> refresh();
  Result<QueueReader> reader(const Start& start = Start::first());
  [[nodiscard]] QueueStats stats() const;

 private:
  explicit QueueView(std::unique_ptr<queue::ViewEngine> engine);
  std::unique_ptr<queue::ViewEngine> engine_;
};

}  // namespace lightq::inline v1
