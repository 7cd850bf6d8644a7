/// Packs the messages of a text of lines in one go. Layer: tests.
#pragma once

#include <string>
#include <string_view>

#include "http/messages/message_text.hpp"

namespace lightq::broker {

inline Result<MessagesToPublish> messages_of_lines(std::string_view text) {
  MessageLines lines{std::string(text)};
  bool is_done = false;
  while (!is_done) is_done = lines.work();
  return lines.take();
}

}  // namespace lightq::broker
