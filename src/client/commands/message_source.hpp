/// The messages of `lightq produce`: lines of files, or generated ones. Layer: cli.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/attributes.hpp>
#include <lightq/base/result.hpp>

namespace lightq::cli {

/// A sequence of messages. For one thread.
class MessageSource {
 public:
  MessageSource() = default;
  MessageSource(const MessageSource&) = delete;
  MessageSource& operator=(const MessageSource&) = delete;
  virtual ~MessageSource() = default;
  /// Moves to the next message. Returns false at the end, also after a signal. Errors: io_error.
  virtual Result<bool> next() = 0;
  /// Returns the descriptor that next() may read and wait for. -1: next() needs no more bytes, or has no file
  /// open yet.
  [[nodiscard]] virtual int awaited() const { return -1; }
  /// Limits the bytes kept of each later message to `bytes`, or to the hard limit of messages if that is
  /// smaller. The source knows only the beginning and the length of a longer message.
  virtual void keep_at_most(std::uint64_t /*bytes*/) {}
  /// Returns the current message, or the beginning of one that is too long. Valid until the next call of
  /// next().
  [[nodiscard]] virtual std::string_view message() const = 0;
  /// Returns the length of the current message, including bytes that are not kept.
  [[nodiscard]] virtual std::uint64_t message_bytes() const { return message().size(); }
  /// Returns the attributes of the current message, or null if it has those of the command line. Valid as
  /// message() is.
  [[nodiscard]] virtual const Attributes* attributes() const { return nullptr; }
  /// Called at the end with the number of messages that the broker has confirmed.
  virtual void confirmed(std::uint64_t /*messages*/) {}
  [[nodiscard]] bool is_too_long() const { return message_bytes() > message().size(); }
};

/// Returns a source of the lines of files, in turn and without their line ends. `-`, or an empty list, means
/// standard input. An empty line is an empty message; the last line needs no line end. `count` is the most
/// messages; 0: all. `line_end`: the byte that ends a line.
std::unique_ptr<MessageSource> lines_of(std::vector<std::string> files, std::uint64_t count,
                                        char line_end = '\n');

/// Returns a source of whole files, each a message with any bytes. `files` and `count` are as for
/// lines_of.
std::unique_ptr<MessageSource> whole_files(std::vector<std::string> files, std::uint64_t count);

/// Returns a source of `count` messages of `size_bytes` (0: unlimited). Each message begins with its number,
/// cut to the message's size.
std::unique_ptr<MessageSource> generated(std::uint64_t count, std::uint64_t size_bytes);

}  // namespace lightq::cli
