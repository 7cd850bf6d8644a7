/// The messages of a benchmark, and the check that all arrive unaltered and in order. Layer: bench support.
///
/// A message is a header of 32 bytes (run, kind, sequence, time of sending) and a window of a fixed random
/// pattern. The window depends on the sequence, so that no message has the content of another.
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
  probe = 1,  ///< before the run: opens the route; not counted
  data = 2,
  end = 3,  ///< after the last data message; its sequence is the number of data messages
};

struct MessageHeader {
  std::uint64_t run = 0;  ///< differs from run to run, to recognise leftovers
  MessageKind kind = MessageKind::data;
  std::uint64_t sequence = 0;
  std::uint64_t sent_ns = 0;  ///< now_ns(), over sessions stamp_ns(); 0 if latency is not measured
};

inline constexpr std::size_t message_bytes_min = sizeof(MessageHeader);

/// Writes messages and checks their content. Immutable; `message_bytes` >= message_bytes_min.
class MessagePattern {
 public:
  explicit MessagePattern(std::size_t message_bytes);
  [[nodiscard]] std::size_t message_bytes() const { return message_bytes_; }
  /// Fills `to`, which has message_bytes() bytes.
  void write(const MessageHeader& header, std::byte* to) const {
    // Copy field by field: the fields were stored individually just before, and a wider load would wait until
    // those stores have reached the cache.
    const std::uint64_t fields[] = {header.run, static_cast<std::uint64_t>(header.kind), header.sequence,
                                    header.sent_ns};
    static_assert(sizeof fields == sizeof header);
    for (std::size_t i = 0; i < std::size(fields); ++i) {
      std::uint64_t field = fields[i];
      asm volatile("" : "+r"(field));  // prevents the compiler from merging the loads
      std::memcpy(to + i * sizeof field, &field, sizeof field);
    }
    std::memcpy(to + sizeof header, window(header.sequence), message_bytes_ - sizeof header);
  }
  /// Returns true if the bytes after the header are those that `write` makes for that sequence.
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

/// Checks one run at its consumer. One thread.
class StreamCheck {
 public:
  StreamCheck(std::uint64_t run, std::uint64_t message_count, const MessagePattern& pattern)
      : run_(run), message_count_(message_count), pattern_(pattern) {}

  /// The result of checking a message.
  enum class Verdict {
    probe,
    data,   ///< the next message, unaltered; its header is `header()`
    end,    ///< the end, after all data messages
    fault,  ///< anything else; `fault()` describes it
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
