/// Messages as server-sent events. Layer: http.
#include "http/streams/event_text.hpp"

#include "http/messages/message_text.hpp"

namespace lightq::broker {

std::string first_text(std::string_view lease) {
  if (lease.empty()) return std::string(heartbeat_text);
  return "event: lease\ndata: {\"lease\":\"" + std::string(lease) + "\"}\n\n";
}

void append_events(const StreamedMessages& messages, std::string& to) {
  if (messages.lost > 0)
    to.append("event: lost\ndata: {\"lost\":").append(std::to_string(messages.lost)).append("}\n\n");
  for (const ReceivedMessage& message : messages.messages) {
    to.append("id: ").append(std::to_string(message.offset.value)).append("\ndata: ");
    append_message(message, to);
    to += "\n\n";
  }
}

std::string end_text(const HttpResponse& problem) {
  std::string text = "event: end\ndata: ";
  text.append(problem.body, 0, problem.body.find('\n'));
  return text += "\n\n";
}

}  // namespace lightq::broker
