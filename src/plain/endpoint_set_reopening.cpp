/// Opens endpoints again that existed before the broker's start. Layer: plain.

#include "plain/endpoint_set.hpp"

namespace lightq::broker {

Result<void> EndpointSet::reopen(const EndpointRecord& record, std::optional<Offset> from) {
  UnopenedEndpoints::One unopened{record, nullptr};
  if (record.role == EndpointRole::sub) unopened.subscriber = &topic_.subscribers().add(from);
  if (record.role == EndpointRole::pull) topic_.open_group();
  auto opened = open_again(unopened);
  if (!opened) unopened_.add(unopened);
  return opened;
}

Result<void> EndpointSet::open_again(const UnopenedEndpoints::One& unopened) {
  const EndpointRecord& record = unopened.record;
  auto entry = open(record, std::nullopt);
  if (!entry) {
    if (record.transport == protocol::Transport::tcp) context_.ports.reserve(record.port);
    return entry.error();
  }
  (*entry)->subscriber = unopened.subscriber;
  if (unopened_.all().contains(record.id))
    context_.sink.info(addresses_.name_of(*(*entry)->endpoint) + " is open again");
  const auto& opened = (*entry)->endpoint->record();
  if (opened.port != record.port) {
    context_.ports.release(record.port, (*entry)->endpoint->use(), false);
    context_.events.changed(opened);
  }
  return {};
}

Result<std::uint64_t> EndpointSet::leave_unopened(const std::string& bind_uri, const Leaver& by) {
  const auto left = unopened_.take([&](const EndpointRecord& record) {
    return record.role != EndpointRole::produce && addresses_.bind_uri_of(record) == bind_uri &&
           by.may_leave(record);
  });
  if (!left) {
    return Error{ErrorCode::endpoint_not_found,
                 "topic " + topic_.definition().name.text() + " has no endpoint " + bind_uri};
  }
  close_unopened(*left, true);
  return std::uint64_t{0};
}

void EndpointSet::close_unopened(const UnopenedEndpoints::One& unopened, bool tell) {
  const EndpointRecord& record = unopened.record;
  if (unopened.subscriber != nullptr) topic_.subscribers().remove(*unopened.subscriber);
  const bool has_ticket = !gate_for(record.role).is_open();
  context_.ports.release(record.port, {record.topic, record.role, record.connection_type, has_ticket}, false);
  if (tell) context_.events.closed(record);
}

}  // namespace lightq::broker
