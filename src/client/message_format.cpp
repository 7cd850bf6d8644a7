/// How `lightq consume` prints a message. Layer: cli.
#include "client/message_format.hpp"

#include "client/json_text.hpp"

namespace lightq::cli {

void append_message(std::string& to, std::string_view topic, std::string_view payload, Format format) {
  switch (format) {
    case Format::raw: to += payload; break;
    case Format::hex: append_hex(to, payload); break;
    case Format::json: {
      to += "{\"topic\":\"";
      append_escaped(to, topic);
      const bool text = is_utf8(payload);
      to += text ? "\",\"payload\":\"" : "\",\"payload_base64\":\"";
      text ? append_escaped(to, payload) : append_base64(to, payload);
      to += "\"}";
      break;
    }
  }
  to += '\n';
}

}  // namespace lightq::cli
