/// Writes and checks benchmark messages. Layer: bench support.
#include "support/test_message.hpp"

#include <cassert>
#include <cstring>
#include <random>

namespace lightq::bench {

MessagePattern::MessagePattern(std::size_t message_bytes)
    : message_bytes_(message_bytes), pattern_(message_bytes + windows) {
  assert(message_bytes >= message_bytes_min);
  std::mt19937 random(20151);
  for (std::byte& byte : pattern_) byte = static_cast<std::byte>(random());
}

StreamCheck::Verdict StreamCheck::refuse(const std::string& why) {
  fault_ = why + " (after " + std::to_string(next_) + " of " + std::to_string(message_count_) + " messages)";
  return Verdict::fault;
}

/// Checks a message that is not simply the next one.
StreamCheck::Verdict StreamCheck::accept_other(ByteView message) {
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
      return refuse("out of order: message " + std::to_string(header_.sequence) + " came instead of " +
                    std::to_string(next_));
    case MessageKind::end:
      if (next_ != message_count_ || header_.sequence != message_count_)
        return refuse("the end came early or late");
      return Verdict::end;
  }
  return refuse("a message of unknown kind");
}

}  // namespace lightq::bench
