/// Writes and checks benchmark messages. Layer: bench support.
#include "support/test_message.hpp"

#include <cassert>
#include <cstring>
#include <random>

namespace lightq::bench {
namespace {

// A prime number of windows, so that messages packed in powers of two never line up with the pattern.
constexpr std::size_t windows = 251;

}  // namespace

MessagePattern::MessagePattern(std::size_t message_bytes)
    : message_bytes_(message_bytes), pattern_(message_bytes + windows) {
  assert(message_bytes >= message_bytes_min);
  std::mt19937 random(20151);
  for (std::byte& byte : pattern_) byte = static_cast<std::byte>(random());
}

const std::byte* MessagePattern::window(std::uint64_t sequence) const {
  return pattern_.data() + sequence % windows;
}

// Field by field: they were stored so just before, and a wider load would wait until that has reached the
// cache.
void MessagePattern::write(const MessageHeader& header, std::byte* to) const {
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

bool MessagePattern::content_matches(std::uint64_t sequence, ByteView message) const {
  const ByteView content = message.subspan(sizeof(MessageHeader));
  return std::memcmp(content.data(), window(sequence), content.size()) == 0;
}

StreamCheck::Verdict StreamCheck::refuse(const std::string& why) {
  fault_ = why + " (after " + std::to_string(next_) + " of " + std::to_string(message_count_) + " messages)";
  return Verdict::fault;
}

StreamCheck::Verdict StreamCheck::accept(ByteView message) {
  if (message.size() != pattern_.message_bytes()) {
    return refuse("a message of " + std::to_string(message.size()) + " bytes instead of " +
                  std::to_string(pattern_.message_bytes()));
  }
  std::memcpy(&header_, message.data(), sizeof header_);
  if (header_.run != run_) return refuse("a message of another run");
  if (!pattern_.content_matches(header_.sequence, message)) return refuse("a message with damaged content");
  switch (header_.kind) {
    case MessageKind::probe: return next_ == 0 ? Verdict::probe : refuse("a probe among the messages");
    case MessageKind::data:
      if (header_.sequence != next_) {
        return refuse("out of order: message " + std::to_string(header_.sequence) + " came instead of " +
                      std::to_string(next_));
      }
      ++next_;
      return Verdict::data;
    case MessageKind::end:
      if (next_ != message_count_ || header_.sequence != message_count_)
        return refuse("the end came early or late");
      return Verdict::end;
  }
  return refuse("a message of unknown kind");
}

}  // namespace lightq::bench
