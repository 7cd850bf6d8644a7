/// Reads a topic's messages by their offsets, without a group or a cursor. A read leaves no trace in the
/// broker. docs/session.md, "read". Layer: client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>
#include <lightq/delivered.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/options.hpp>
#include <lightq/reader_options.hpp>

namespace lightq::inline v1 {

/// Reads ranges of messages by offset over a session. Made by Client::reader. Move-only. It has no thread of
/// its own. Thread: one at a time.
///
///     auto reader = client.reader("orders").value_or_throw();
///     auto next = reader.read({{0}, {100}}, [](const Delivered& order) { … }, 5s).value_or_throw();
///
/// If the connection breaks during a read, the reader connects again and continues behind the last message
/// received. If the broker restarts, the offsets of a topic in memory then refer to different messages.
class Reader {
 public:
  /// Called for each message in the order of offsets. The message is valid during the call. The callback must
  /// not use the reader.
  using Handle = std::function<void(const Delivered&)>;

  /// Makes a reader that connects in its first calls. The reader calls `join` within its calls whenever it
  /// needs an address. Errors: invalid_argument.
  static Result<Reader> open(std::string topic, SessionJoin join, ReaderOptions options = {});
  /// After a move, calls of the reader that was moved from return `closed`. It may be assigned to and
  /// destroyed.
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  /// Waits until there is a connection. Errors: timeout, or the error that ended the reader.
  Result<void> wait_open(Timeout timeout);

  /// Reads the stored messages of `range` and calls `handle` for each. Stops at `bytes_max` bytes (attributes
  /// and payload; at most limits::read_bytes_max), but reads at least one message. Returns the offset at
  /// which to continue: the end of the range or of the log, or the first message that did not fit. Messages
  /// that are no longer stored are skipped; Delivered::lost counts them. Errors: timeout (messages may have
  /// been handled before it), too_large (a message longer than frame_bytes_max), limit_reached, or the error
  /// that ended the reader.
  Result<Offset> read(OffsetRange range, std::uint64_t bytes_max, const Handle& handle, Timeout timeout);
  /// Reads `range` with the largest possible `bytes_max`.
  Result<Offset> read(OffsetRange range, const Handle& handle, Timeout timeout);

  [[nodiscard]] const std::string& topic() const;
  /// Returns why the last connection or attempt ended.
  [[nodiscard]] const Error& last_error() const;
  [[nodiscard]] bool connected() const;

 private:
  class Parts;

  Reader(std::string topic, SessionJoin join, const ReaderOptions& options);

  std::unique_ptr<Parts> parts_;  // null after a move
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/reader.hpp>  // IWYU pragma: export
#endif
