/// The messages that a benchmark sends, and the check that all came, unharmed and in order. Layer: bench
/// support.
///
/// A message is a header of 32 bytes (run, kind, sequence, time of sending) and a window of a fixed random
/// pattern that depends on the sequence, so that a message's bytes cannot pass for another's.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::bench {

enum class MessageKind : std::uint64_t {
  probe = 1,  ///< before the run: opens the path; not counted
  data = 2,
  end = 3,  ///< after the last data message; its sequence is the number of data messages
};

struct MessageHeader {
  std::uint64_t run = 0;  ///< differs from run to run: a leftover is recognised
  MessageKind kind = MessageKind::data;
  std::uint64_t sequence = 0;
  std::uint64_t sent_ns = 0;  ///< CLOCK_MONOTONIC; 0 where latency is not measured
};

inline constexpr std::size_t message_bytes_min = sizeof(MessageHeader);

/// Writes messages and recognises their content. Immutable once made; `message_bytes` >= message_bytes_min.
class MessagePattern {
 public:
  explicit MessagePattern(std::size_t message_bytes);
  [[nodiscard]] std::size_t message_bytes() const { return message_bytes_; }
  /// Fills `to`, which has message_bytes() bytes.
  void write(const MessageHeader& header, std::byte* to) const {
    // Field by field: they were stored so just before, and a wider load would wait until that has reached the
    // cache.
    const std::uint64_t fields[] = {header.run, static_cast<std::uint64_t>(header.kind), header.sequence,
                                    header.sent_ns};
    static_assert(sizeof fields == sizeof header);
    for (std::size_t i = 0; i < std::size(fields); ++i) {
      std::uint64_t field = fields[i];
      asm volatile("" : "+r"(field));  // else the compiler makes the wider load all the same
      std::memcpy(to + i * sizeof field, &field, sizeof field);
    }
    std::memcpy(to + sizeof header, window(header.sequence), message_bytes_ - sizeof header);
  }
  /// Whether the bytes behind the header are what `write` puts there for that sequence.
  [[nodiscard]] bool content_matches(std::uint64_t sequence, ByteView message) const {
    const ByteView content = message.subspan(sizeof(MessageHeader));
    return std::memcmp(content.data(), window(sequence), content.size()) == 0;
  }

 private:
  // A prime number of windows, so that messages packed in powers of two never line up with the pattern.
  static constexpr std::size_t windows = 251;
  [[nodiscard]] const std::byte* window(std::uint64_t sequence) const {
    return pattern_.data() + sequence % windows;
  }
  std::size_t message_bytes_;
  std::vector<std::byte> pattern_;
};

/// Watches one run at its consumer. One thread.
class StreamCheck {
 public:
  StreamCheck(std::uint64_t run, std::uint64_t message_count, const MessagePattern& pattern)
      : run_(run), message_count_(message_count), pattern_(pattern) {}

  /// What a message turned out to be.
  enum class Verdict {
    probe,
    data,   ///< the next one, unharmed; its header is `header()`
    end,    ///< all data messages came, and the end after them
    fault,  ///< anything else; `fault()` says what
  };
  Verdict accept(ByteView message) {
    if (message.size() == pattern_.message_bytes()) [[likely]] {
      std::memcpy(&header_, message.data(), sizeof header_);
      if (header_.run == run_ && header_.kind == MessageKind::data && header_.sequence == next_ &&
          pattern_.content_matches(next_, message)) [[likely]] {
        ++next_;
        return Verdict::data;
      }
    }
    return accept_other(message);
  }
  [[nodiscard]] const MessageHeader& header() const { return header_; }
  [[nodiscard]] std::uint64_t received() const { return next_; }
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  Verdict accept_other(ByteView message);
  Verdict refuse(const std::string& why);
  std::uint64_t run_;
  std::uint64_t message_count_;
  const MessagePattern& pattern_;
  MessageHeader header_;
  std::uint64_t next_ = 0;
  std::string fault_;
};

}  // namespace lightq::bench
