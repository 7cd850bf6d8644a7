/// Implements the public interface of the embedded queue, include/lightq/queue.hpp. Layer: queue.
#include <lightq/queue.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include <lightq/base/batch.hpp>

#include "log/storage/posix_storage.hpp"
#include "queue/cursor_handle.hpp"
#include "queue/engine.hpp"
#include "queue/reader_state.hpp"
#include "queue/view_engine.hpp"

namespace lightq::inline v1 {

namespace {

log::Storage& file_system() {
  static log::PosixStorage storage;
  return storage;
}

constexpr std::string_view default_cursor = "default";

/// Makes a path absolute, because the process may change its working directory later.
Result<std::string> absolute_path(const std::string& directory) {
  std::error_code fault;
  const std::filesystem::path path = std::filesystem::absolute(directory, fault);
  if (fault)
    return Error{ErrorCode::io_error, "cannot find the absolute path of the directory " + directory,
                 fault.value()};
  return path.string();
}

/// Returns true if the calls of an object with this part may use it: neither after a move nor in a child
/// process.
template <typename Pointer>
bool is_usable(const Pointer& part) {
  return part != nullptr && part->home().is_here();
}

[[gnu::cold, gnu::noinline]] Error unusable(bool was_moved_from) {
  if (was_moved_from) return {ErrorCode::closed, "the queue, reader or cursor was moved from", 0};
  return {ErrorCode::closed,
          "the queue was opened before this process was forked: the child must open its own", 0};
}
/// Returns the error for a call that `is_usable` does not permit.
template <typename Pointer>
Error unusable(const Pointer& part) {
  return unusable(part == nullptr);
}

/// Returns the next message, and calls `done` with the offset behind it. Compiled into each caller: a message
/// costs a few loads and stores, and the search for the next batch is elsewhere.
template <typename Done>
Result<std::optional<QueuedMessage>> next_of(queue::ReaderState* state, Done&& done) {
  if (!is_usable(state)) [[unlikely]]
    return unusable(state);
  queue::ReaderState& reader = *state;
  if (!reader.has_message()) [[unlikely]] {
    const auto found = reader.find_message();
    if (!found) return found.error();
    if (!*found) return std::optional<QueuedMessage>();
  }
  // Built in place from values in registers, because copying would wait for stores just made.
  const auto [offset, time, payload, kinds, attributes_bytes] = reader.take_message();
  const std::byte* const data = payload.data();
  const std::size_t bytes = payload.size();
  done(offset + 1);
  return Result<std::optional<QueuedMessage>>(std::in_place, std::in_place, offset, time,
                                              ByteView(data, bytes), kinds, attributes_bytes);
}

}  // namespace

QueueReader::QueueReader(std::unique_ptr<queue::ReaderState> state) : state_(std::move(state)) {}
QueueReader::QueueReader(QueueReader&& other) noexcept = default;
QueueReader& QueueReader::operator=(QueueReader&& other) noexcept = default;
QueueReader::~QueueReader() = default;

Result<std::optional<QueuedMessage>> QueueReader::next() {
  return next_of(state_.get(), [](Offset) {});
}

Result<std::optional<QueuedMessage>> QueueReader::peek() {
  if (!is_usable(state_)) return unusable(state_);
  const auto found = state_->find_message();
  if (!found) return found.error();
  if (!*found) return std::optional<QueuedMessage>();
  return std::optional<QueuedMessage>(state_->message());
}

Result<QueuedMessages> QueueReader::next_batch(std::size_t max) {
  if (!is_usable(state_)) return unusable(state_);
  return state_->take(max);
}

Result<std::span<const QueuedMessage>> QueueReader::range(Offset first, Offset last) {
  if (!is_usable(state_)) return unusable(state_);
  return state_->range(first, last);
}

bool QueueReader::wait(std::chrono::milliseconds timeout) {
  return is_usable(state_) && state_->source().wait(state_->position(), timeout);
}

Offset QueueReader::position() const {
  return state_ != nullptr ? state_->position() : Offset();
}

Result<void> QueueReader::seek(const Start& start) {
  if (!is_usable(state_)) return unusable(state_);
  const auto offset = state_->source().resolve(start);
  if (!offset) return offset.error();
  state_->place(*offset);
  return {};
}

Pin QueueReader::pin() const {
  return state_ != nullptr ? Pin(state_->pinned()) : Pin();
}

QueueCursor::QueueCursor(QueueReader reader, std::unique_ptr<queue::CursorHandle> handle)
    : reader_(std::move(reader)), handle_(std::move(handle)) {}
QueueCursor::QueueCursor(QueueCursor&& other) noexcept = default;
QueueCursor& QueueCursor::operator=(QueueCursor&& other) noexcept = default;
QueueCursor::~QueueCursor() = default;

Result<std::optional<QueuedMessage>> QueueCursor::next() {
  return next_of(reader_.state_.get(), [&](Offset behind) { handle_->note_delivered(behind); });
}

Result<QueuedMessages> QueueCursor::next_batch(std::size_t max) {
  auto messages = reader_.next_batch(max);
  if (messages && !messages->empty()) handle_->note_delivered(reader_.position());
  return messages;
}

void QueueCursor::commit(Offset offset) {
  if (!is_usable(reader_.state_)) return;
  const queue::SegmentSource& source = reader_.state_->source();
  const Offset kept = source.clamped(offset);
  if (kept < handle_->committed()) {
    handle_->go_back(kept);
  } else {
    handle_->commit(kept);
  }
}

Result<void> QueueCursor::rewind(const Start& start) {
  if (auto found = reader_.seek(start); !found) return found;
  const Offset kept = handle_->go_back(reader_.position());
  if (kept != reader_.position()) reader_.state_->place(kept);
  handle_->note_delivered(kept);
  return {};
}

Result<std::optional<QueuedMessage>> QueueCursor::dequeue() {
  return next_of(reader_.state_.get(), [&](Offset behind) { handle_->commit(behind); });
}

const std::string& QueueCursor::name() const {
  static const std::string none;
  return handle_ != nullptr ? handle_->name() : none;
}
Offset QueueCursor::committed() const {
  return handle_ != nullptr ? handle_->committed() : Offset();
}
Offset QueueCursor::delivered() const {
  return handle_ != nullptr ? handle_->delivered() : Offset();
}

/// The parts of a Queue. The default cursor is destroyed before the engine.
struct Queue::Parts {
  /// Deletes the engine in the process that opened it. In a child process its memory is leaked: the
  /// destructor would wait for threads that do not exist there, and write to the parent's files.
  struct EngineEnd {
    void operator()(queue::Engine* ended) const {
      if (ended->home().is_here()) {
        std::default_delete<queue::Engine>()(ended);
      } else {
        ended->abandon();
      }
    }
  };
  [[nodiscard]] const HomeProcess& home() const { return engine->home(); }

  std::unique_ptr<queue::Engine, EngineEnd> engine;
  std::optional<QueueCursor> cursor;
};

Queue::Queue(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Queue::Queue(Queue&& other) noexcept = default;
Queue& Queue::operator=(Queue&& other) noexcept = default;
Queue::~Queue() = default;

Result<Queue> Queue::open(const std::string& directory, const QueueOptions& options) {
  const auto path = absolute_path(directory);
  if (!path) return path.error();
  auto engine = queue::Engine::open(*path, options, file_system());
  if (!engine) return engine.error();
  auto parts = std::make_unique<Parts>();
  parts->engine.reset(engine->release());
  return Queue(std::move(parts));
}

Result<void> Queue::close() {
  if (!is_usable(parts_)) return unusable(parts_);
  parts_->cursor.reset();
  return parts_->engine->close();
}

Result<Offset> Queue::enqueue(ByteView payload) {
  if (!is_usable(parts_)) [[unlikely]]
    return unusable(parts_);
#ifdef LIGHTQ_RECORD_SUM_WIDE
  if (log::RecordSum::may_be_wide(payload.size())) [[likely]]
    return parts_->engine->enqueue_wide(payload);
#endif
  return parts_->engine->enqueue(payload);
}

namespace {

template <typename Payload>
Result<Offset> pack_and_append(queue::Engine& engine, std::span<const Payload> payloads) {
  std::uint64_t bytes = batch_layout::header_bytes;
  for (const Payload& payload : payloads) {
    bytes += record_bytes(payload.size());
    if (payload.size() > engine.options().message_bytes_max) {
      return Error{ErrorCode::too_large,
                   "a message of " + std::to_string(payload.size()) + " bytes, above message_bytes_max of " +
                       std::to_string(engine.options().message_bytes_max),
                   0};
    }
  }
  if (payloads.empty() || payloads.size() > limits::batch_records_max || bytes > UINT32_MAX) {
    return Error{ErrorCode::invalid_argument,
                 "a batch of " + std::to_string(payloads.size()) + " messages and " + std::to_string(bytes) +
                     " bytes; it must have 1 to " + std::to_string(limits::batch_records_max) +
                     " messages and less than 4 GiB",
                 0};
  }
  BatchBuilder builder;
  for (const Payload& payload : payloads) builder.add(std::as_bytes(std::span(payload)));
  return engine.append(builder.finish());
}

std::size_t largest_message(BatchBuilder& builder) {
  std::size_t largest = 0;
  for (auto record = BatchView::trusted(builder.finish().data()).records(); !record.done(); record.next()) {
    largest = std::max(largest, record.message().size());
  }
  return largest;
}

}  // namespace

Result<Offset> Queue::enqueue(std::span<const ByteView> payloads) {
  if (!is_usable(parts_)) return unusable(parts_);
  return pack_and_append(*parts_->engine, payloads);
}

Result<Offset> Queue::enqueue(std::span<const std::string_view> payloads) {
  if (!is_usable(parts_)) return unusable(parts_);
  return pack_and_append(*parts_->engine, payloads);
}

Result<Offset> Queue::enqueue(BatchBuilder& batch) {
  if (!is_usable(parts_)) return unusable(parts_);
  if (!batch.is_sound())
    return Error{ErrorCode::invalid_argument,
                 "the batch is invalid, because adding a message to it has failed", 0};
  if (batch.empty()) return Error{ErrorCode::invalid_argument, "the batch is empty", 0};
  if (batch.codec() != Codec::none)
    return Error{ErrorCode::invalid_argument, "the batch is compressed, which a queue does not support", 0};
  const std::uint64_t bytes_max = parts_->engine->options().message_bytes_max;
  if (batch.message_bytes() > bytes_max && largest_message(batch) > bytes_max) {
    return Error{ErrorCode::too_large,
                 "a message of " + std::to_string(largest_message(batch)) +
                     " bytes in a batch, above message_bytes_max of " + std::to_string(bytes_max),
                 0};
  }
  return parts_->engine->append(batch.finish());
}

Result<QueueCursor*> Queue::default_cursor() {
  if (!is_usable(parts_)) return unusable(parts_);
  if (!parts_->cursor) {
    auto opened = cursor(lightq::default_cursor);
    if (!opened) return opened.error();
    parts_->cursor = std::move(*opened);
  }
  return &*parts_->cursor;
}

Result<std::optional<QueuedMessage>> Queue::dequeue() {
  if (parts_ == nullptr || !parts_->cursor) [[unlikely]] {
    if (const auto opened = default_cursor(); !opened) return opened.error();
  }
  QueueCursor& cursor = *parts_->cursor;
  return next_of(cursor.reader_.state_.get(), [&](Offset behind) { cursor.handle_->commit(behind); });
}

Result<std::optional<QueuedMessage>> Queue::peek() {
  const auto cursor = default_cursor();
  if (!cursor) return cursor.error();
  return (*cursor)->peek();
}

Result<bool> Queue::is_empty() {
  const auto cursor = default_cursor();
  if (!cursor) return cursor.error();
  const queue::Engine& engine = *parts_->engine;
  return engine.next_offset() <= std::max((*cursor)->reader().position(), engine.first_offset());
}

Result<QueueReader> Queue::reader(const Start& start) {
  if (!is_usable(parts_)) return unusable(parts_);
  QueueReader reader(std::make_unique<queue::ReaderState>(*parts_->engine));
  if (auto found = reader.seek(start); !found) return found.error();
  return reader;
}

Result<QueueCursor> Queue::cursor(std::string_view name, const Start& start) {
  if (!is_usable(parts_)) return unusable(parts_);
  const auto taken = parts_->engine->take_cursor(name, start);
  if (!taken) return taken.error();
  QueueReader reader(std::make_unique<queue::ReaderState>(*parts_->engine));
  reader.state_->place((*taken)->committed());
  return QueueCursor(std::move(reader), std::make_unique<queue::CursorHandle>(*parts_->engine, **taken));
}

Result<void> Queue::remove_cursor(std::string_view name) {
  if (!is_usable(parts_)) return unusable(parts_);
  if (parts_->cursor && name == lightq::default_cursor) parts_->cursor.reset();
  return parts_->engine->remove_cursor(name);
}

Result<void> Queue::flush() {
  if (!is_usable(parts_)) return unusable(parts_);
  return parts_->engine->flush();
}
Offset Queue::first_offset() const {
  return parts_ != nullptr ? parts_->engine->first_offset() : Offset();
}
Offset Queue::next_offset() const {
  return parts_ != nullptr ? parts_->engine->next_offset() : Offset();
}
Offset Queue::durable_offset() const {
  return parts_ != nullptr ? parts_->engine->durable_offset() : Offset();
}

Result<bool> Queue::wait_durable(Offset offset, std::chrono::milliseconds timeout) {
  if (!is_usable(parts_)) return unusable(parts_);
  return parts_->engine->wait_durable(offset, timeout);
}

std::future<Result<void>> Queue::durable(Offset offset) {
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto future = promise->get_future();
  on_durable(offset, [promise](const Result<void>& result) { promise->set_value(result); });
  return future;
}

void Queue::on_durable(Offset offset, std::function<void(const Result<void>&)> done) {
  if (!is_usable(parts_)) return done(unusable(parts_));
  parts_->engine->on_durable(offset, std::move(done));
}

Result<void> Queue::trim(Offset before) {
  if (!is_usable(parts_)) return unusable(parts_);
  return parts_->engine->trim(before);
}
void Queue::maintain() {
  if (is_usable(parts_)) parts_->engine->maintain();
}
QueueStats Queue::stats() const {
  return is_usable(parts_) ? parts_->engine->stats() : QueueStats{};
}
const QueueRecovery& Queue::recovery() const {
  static const QueueRecovery none;
  return parts_ != nullptr ? parts_->engine->recovery() : none;
}

QueueView::QueueView(std::unique_ptr<queue::ViewEngine> engine) : engine_(std::move(engine)) {}
QueueView::QueueView(QueueView&& other) noexcept = default;
QueueView& QueueView::operator=(QueueView&& other) noexcept {
  if (this == &other) return *this;
  const QueueView ended(std::move(*this));
  engine_ = std::move(other.engine_);
  return *this;
}
// In a child process the engine's memory is leaked, as for a Queue.
QueueView::~QueueView() {
  if (engine_ != nullptr && !engine_->home().is_here()) static_cast<void>(engine_.release());
}

Result<QueueView> QueueView::open(const std::string& directory) {
  const auto path = absolute_path(directory);
  if (!path) return path.error();
  auto engine = queue::ViewEngine::open(*path, file_system());
  if (!engine) return engine.error();
  return QueueView(std::move(*engine));
}

Result<void> QueueView::refresh() {
  if (!is_usable(engine_)) return unusable(engine_);
  return engine_->refresh();
}

Result<QueueReader> QueueView::reader(const Start& start) {
  if (!is_usable(engine_)) return unusable(engine_);
  QueueReader reader(std::make_unique<queue::ReaderState>(*engine_));
  if (auto found = reader.seek(start); !found) return found.error();
  return reader;
}

QueueStats QueueView::stats() const {
  return is_usable(engine_) ? engine_->stats() : QueueStats{};
}

}  // namespace lightq::inline v1
