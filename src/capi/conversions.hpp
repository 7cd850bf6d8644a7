/// Converts options, messages and places between C and the C++ client. Layer: capi.
#pragma once

#include <optional>
#include <string>

#include <lightq/lightq.h>
#include <lightq/client.hpp>
#include <lightq/consumer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>

namespace lightq::capi {

inline std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

/// Options of a producer, consumer or reader, and the transport that they ask for.
template <typename Options>
struct Opening {
  Options options;
  std::optional<Transport> transport;
};

// These return the options for options of C, which may be null. Errors: invalid_argument, not_supported. The
// C++ client checks most ranges.
Result<ClientOptions> client_options_of(const lightq_options& given);
Result<Opening<ProducerOptions>> opening_of(const lightq_producer_options* given);
Result<Opening<ConsumerOptions>> opening_of(const lightq_consumer_options* given);
Result<Opening<ReaderOptions>> opening_of(const lightq_reader_options* given);

/// Returns a position in a topic. Errors: invalid_argument.
Result<session::Place> place_of(int from, std::uint64_t value);

/// Writes a message to the C struct, except for its size. Writes each field once, directly: to copy a struct
/// that was just written would wait for those stores. Lifetime: that of the message.
inline void write_message(const Delivered& from, lightq_message& to) {
  to.body = from.payload.data();
  to.body_bytes = from.payload.size();
  to.offset = from.offset.value;
  to.lease = from.hand_out;
  to.lost = from.lost;
  to.time_us = from.time.us;
  to.delivery = static_cast<int>(from.delivery);
  to.expired = from.has_expired ? 1 : 0;
  to.kinds = from.kinds.bits();
  to.reserved = 0;
  const bool has_attributes = from.kinds.any();
  const AttributesView attributes = has_attributes ? from.attributes() : AttributesView();
  const std::string_view key = attributes.key();
  to.key = key.empty() ? nullptr : key.data();
  to.key_bytes = key.size();
  to.header_count = has_attributes ? attributes.headers().size() : 0;
  to.producer_time_us = has_attributes ? attributes.time().us : 0;
  to.attributes = has_attributes ? from.payload.data() - from.attributes_bytes : nullptr;
}

/// Returns a report of C. Lifetime: its text is that of `report`.
lightq_report report_of(const SendReport& report);

/// Returns the headers of a message of C.
inline AttributesView::Headers headers_of(const lightq_message& message) {
  if (message.attributes == nullptr) return {};
  return AttributesView::trusted(AttributeKinds(static_cast<std::uint16_t>(message.kinds)),
                                 static_cast<const std::byte*>(message.attributes))
      .headers();
}

/// Writes the descriptor, the events and the time for which an event loop waits. `timer`: session_never if
/// there is none. Errors: invalid_argument (no struct).
int write_interest(lightq_interest* interest, int fd, bool wants_write, SessionTime timer);

}  // namespace lightq::capi
