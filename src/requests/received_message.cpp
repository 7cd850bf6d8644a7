/// Copies of stored messages. Layer: requests.
#include "requests/received_message.hpp"

#include <cstdint>
#include <utility>

#include <lightq/base/batch.hpp>

namespace lightq::broker {

namespace {

ReceivedMessage copy_of(const BatchView& batch, const BatchView::Records& record) {
  const AttributesView attributes = record.attributes();
  ReceivedMessage message;
  message.stored = batch.append_time();
  message.time = attributes.time();
  message.key = attributes.key();
  for (const Header header : attributes.headers()) message.headers.emplace_back(header.name, header.value);
  message.payload = as_text(record.payload());
  return message;
}

}  // namespace

void append_copies(const BatchSlice& slice, const ReceivedMessage::Marks& marks,
                   std::vector<ReceivedMessage>& to) {
  std::uint32_t index = 0;
  for (auto record = slice.batch.records(); !record.done() && index < slice.first + slice.count;
       record.next(), ++index) {
    if (index < slice.first) continue;
    ReceivedMessage message = copy_of(slice.batch, record);
    message.offset = slice.batch.base_offset() + index;
    message.marks = marks;
    to.push_back(std::move(message));
  }
}

}  // namespace lightq::broker
