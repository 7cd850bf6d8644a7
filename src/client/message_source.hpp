/// Where `lightq produce` takes its messages from: lines of files, or made up. Layer: cli.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// A sequence of messages. One thread.
class MessageSource {
 public:
  MessageSource() = default;
  MessageSource(const MessageSource&) = delete;
  MessageSource& operator=(const MessageSource&) = delete;
  virtual ~MessageSource() = default;
  /// Moves on to the next message; false at the end (also when a signal came). Errors: io_error.
  virtual Result<bool> next() = 0;
  /// A descriptor that `next` may wait for, or -1: it will not, as far as is known.
  [[nodiscard]] virtual int awaited() const { return -1; }
  /// From the next message on, no more than `bytes` of one are kept, or the hard limit of messages if that is
  /// less: of a longer one only the length is known.
  virtual void keep_at_most(std::uint64_t /*bytes*/) {}
  /// The present message, or the begin of one that is too long; valid until the next call of next().
  [[nodiscard]] virtual std::string_view message() const = 0;
  /// How long it is, what is not kept included.
  [[nodiscard]] virtual std::uint64_t message_bytes() const { return message().size(); }
  [[nodiscard]] bool is_too_long() const { return message_bytes() > message().size(); }
};

/// The lines of files, one after the other, without their line ends; `-` is standard input, and so are no
/// files at all. An empty line is an empty message; a last line needs no end. `count`: at most so many; 0:
/// all.
std::unique_ptr<MessageSource> lines_of(std::vector<std::string> files, std::uint64_t count);

/// `count` messages (0: without end) of `size_bytes` that begin with their number, as far as it fits.
std::unique_ptr<MessageSource> generated(std::uint64_t count, std::uint64_t size_bytes);

}  // namespace lightq::cli
