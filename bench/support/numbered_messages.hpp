/// Messages that tell a reader whether they are the right ones. Layer: bench support.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::bench {

/// Throws `what` unless `good`: a wrong message, a missing one.
inline void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// Number i has its number in its first eight bytes (little-endian), then bytes that depend on their place
/// alone. The Go driver makes the same.
class NumberedMessages {
 public:
  /// `bytes`: at least eight.
  explicit NumberedMessages(std::size_t bytes) : expected_(bytes) {
    check(bytes >= sizeof(std::uint64_t), "messages of less than eight bytes cannot carry their number");
    for (std::size_t i = 0; i < bytes; ++i) expected_[i] = static_cast<std::byte>(i * 131 + (i >> 8));
  }
  /// Valid until the next call.
  [[nodiscard]] ByteView at(std::uint64_t number) {
    std::memcpy(expected_.data(), &number, sizeof number);
    return expected_;
  }
  /// Throws unless `message` is exactly number `number`. Nothing is written to compare it with: a load that
  /// is larger than the store before it waits for that, which would be a good part of a fast queue's time.
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

/// The sum of 64-bit words and remaining bytes: touches each byte once. The same machine code for all who
/// call it: compiled into two loops it was up to a third slower in the one or in the other. At the same place
/// within a line in every build: elsewhere its loop was a fifth faster, or not, with each change of code
/// before it.
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
