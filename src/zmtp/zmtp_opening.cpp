/// Refuses ZeroMQ peers for which there is no room. Layer: zmtp.
#include "zmtp/zmtp_opening.hpp"

namespace lightq::broker {

std::size_t ZmtpOpening::take(ByteView bytes, std::vector<std::byte>& output) {
  if (!admission_.has_room()) {
    no_room_ = "the maximum number of connections is open";
    return bytes.size();
  }
  const std::size_t used = handshake_.take(bytes, output);
  const bool is_known = handshake_.complete() || handshake_.holder() != TicketHolder{};
  if (is_known && !admission_.has_room_for(handshake_.holder()))
    no_room_ = "its user has the maximum number of connections here";
  return used;
}

Handshake::Outcome ZmtpOpening::outcome() const {
  if (!no_room_.empty()) return Outcome::no_room;
  if (!handshake_.failure().empty()) return handshake_.is_nonsense() ? Outcome::nonsense : Outcome::refused;
  return handshake_.complete() ? Outcome::complete : Outcome::under_way;
}

}  // namespace lightq::broker
