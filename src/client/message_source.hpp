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
  /// The present message; valid until the next call of next().
  [[nodiscard]] virtual std::string_view message() const = 0;
};

/// The lines of files, one after the other, without their line ends; `-` is standard input, and so are no
/// files at all. An empty line is an empty message; a last line needs no end. `count`: at most so many; 0:
/// all.
std::unique_ptr<MessageSource> lines_of(std::vector<std::string> files, std::uint64_t count);

/// `count` messages (0: without end) of `size_bytes` that begin with their number, as far as it fits.
std::unique_ptr<MessageSource> generated(std::uint64_t count, std::uint64_t size_bytes);

}  // namespace lightq::cli
