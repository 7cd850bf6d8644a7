/// Messages with content that a reader can verify. Layer: bench support.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::bench {

/// Throws `what` unless `good`: for a wrong or missing message.
inline void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// Makes numbered messages. Message i contains its number in its first eight bytes (little-endian), then
/// bytes that depend only on their position. The Go driver makes the same messages.
class NumberedMessages {
 public:
  /// `bytes`: at least eight.
  explicit NumberedMessages(std::size_t bytes) : expected_(bytes) {
    check(bytes >= sizeof(std::uint64_t), "messages of less than eight bytes cannot carry their number");
    for (std::size_t i = 0; i < bytes; ++i) expected_[i] = static_cast<std::byte>(i * 131 + (i >> 8));
  }
  /// Returns a message. Valid until the next call.
  [[nodiscard]] ByteView at(std::uint64_t number) {
    std::memcpy(expected_.data(), &number, sizeof number);
    return expected_;
  }
  /// Throws unless `message` is exactly message `number`. The comparison writes nothing: a load that is wider
  /// than the store before it must wait for that store, which would take a large part of a fast queue's time.
  void check_is(std::uint64_t number, ByteView message) const {
    if (message.size() != expected_.size()) throw_altered(number);
    std::uint64_t found = 0;
    std::memcpy(&found, message.data(), sizeof found);
    if (found != number || std::memcmp(message.data() + sizeof found, expected_.data() + sizeof found,
                                       expected_.size() - sizeof found) != 0)
      throw_altered(number);
  }

 private:
  [[noreturn]] static void throw_altered(std::uint64_t number) {
    throw std::runtime_error("message " + std::to_string(number) + " came back altered");
  }
  std::vector<std::byte> expected_;
};

/// Returns the sum of 64-bit words and remaining bytes: reads each byte once. Not inlined, so that all
/// callers run the same machine code: compiled into two loops, one of them was up to a third slower. Aligned
/// to a cache line, because otherwise changes of the code before it made its loop up to a fifth faster or
/// slower.
[[gnu::noinline, gnu::aligned(64)]] inline std::uint64_t sum_of(ByteView bytes) {
  std::uint64_t sum = 0;
  std::size_t at = 0;
  for (; at + sizeof sum <= bytes.size(); at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum += word;
  }
  for (; at < bytes.size(); ++at) sum += std::to_integer<std::uint64_t>(bytes[at]);
  return sum;
}

}  // namespace lightq::bench
