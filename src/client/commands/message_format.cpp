/// Prints messages for `lightq consume`. Layer: cli.
#include "client/commands/message_format.hpp"

#include "client/attributes_text.hpp"
#include "client/json_text.hpp"

namespace lightq::cli {

void append_message(std::string& to, std::string_view topic, std::string_view payload, Format format,
                    const AttributesView& attributes) {
  switch (format) {
    case Format::raw: to += payload; break;
    case Format::hex: append_hex(to, payload); break;
    case Format::json: {
      JsonObject object;
      object.add("topic", topic).add_bytes("payload", payload);
      add_attributes(object, attributes);
      to += object.text();
      break;
    }
  }
  to += '\n';
}

}  // namespace lightq::cli
