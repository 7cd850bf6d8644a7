/// Plays the clients that sessions must refuse, and one that they must admit.
#include "attacks/session_attacks.hpp"

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include <lightq/protocol/session_link.hpp>

#include "attacks/endpoint_attacks.hpp"
#include "attacks/zmtp_client.hpp"
#include "endpoint/tls_peer.hpp"
#include "support/curve_client.hpp"
#include "zmtp/zmtp.hpp"

namespace lightq::test {

namespace {

using namespace std::chrono_literals;
using broker::CurveKeyPair;
namespace zmtp = broker::zmtp;

bool any(ByteView bytes) {
  return !bytes.empty();
}

bool is_whole_frame(ByteView bytes) {
  using namespace session::frame_layout;
  return bytes.size() >= header_bytes &&
         bytes.size() - header_bytes >= load_little_endian<std::uint32_t>(bytes.data() + body_bytes);
}

bool is_welcome(ByteView frame) {
  return is_whole_frame(frame) &&
         frame[session::frame_layout::op] == static_cast<std::byte>(session::Op::welcome);
}

Bytes in_message(const Bytes& frame) {
  Bytes message(zmtp::frame_header_bytes_max);
  message.resize(zmtp::encode_frame_header(message.data(), frame.size(), false));
  message.insert(message.end(), frame.begin(), frame.end());
  return message;
}

/// Returns the body of the first ZeroMQ frame, or nothing if it is incomplete.
ByteView first_body(ByteView bytes) {
  zmtp::FrameHeader header;
  if (zmtp::parse_frame_header(bytes, header) != zmtp::FrameOutcome::complete) return {};
  const ByteView body = bytes.subspan(header.header_bytes);
  return body.size() < header.body_bytes ? ByteView{}
                                         : body.first(static_cast<std::size_t>(header.body_bytes));
}

bool welcomed_in_stream(Line& line, const Bytes& frame) {
  return is_welcome(line.say(frame, is_whole_frame));
}

bool welcomed_in_messages(Line& line, const Bytes& frame) {
  ZmtpClient client(line);
  Bytes says = greeting_by_null();
  zmtp::append_ready(says, "DEALER");
  if (!client.ask(says, "READY")) return false;
  const auto all = [&](ByteView more) {
    Bytes bytes = client.left();
    bytes.insert(bytes.end(), more.begin(), more.end());
    return bytes;
  };
  const Bytes heard =
      line.say(in_message(frame), [&](ByteView more) { return !first_body(all(more)).empty(); });
  return is_welcome(first_body(all(heard)));
}

bool welcomed_over_curve(Line& line, const CurvePublicKey& server_key, const Bytes& frame) {
  const CurveKeyPair own;
  CurveClient client(own, server_key);
  ZmtpClient talk(line);
  Bytes says = greeting_by_curve();
  client.append_hello(says);
  const auto welcome = talk.ask(says, "WELCOME");
  if (!welcome || !client.take_welcome(*welcome)) return false;
  says.clear();
  client.append_initiate(says, zmtp::metadata_of("DEALER"));
  const auto ready = talk.ask(says, "READY");
  if (!ready || !client.take_ready(*ready)) return false;
  const auto cipher = client.make_cipher(limits::MiB);
  says.clear();
  cipher->seal(in_message(frame), says);
  Bytes wire = line.say(says, [](ByteView bytes) { return !first_body(bytes).empty(); });
  Bytes plain, answer;
  cipher->open(wire, plain, answer);
  return is_welcome(first_body(plain));
}

bool welcomed_over_tls(Line& line, const Bytes& frame) {
  TlsPeer peer;
  peer.hear({});
  while (!peer.connected() && peer.error.empty()) {
    const Bytes heard = line.say(peer.says(), any);
    if (heard.empty()) return false;
    peer.hear(heard);
  }
  if (!peer.connected()) return false;
  peer.send(as_text(frame));  // sent together with the end of the handshake
  for (Bytes says = peer.says(); !is_whole_frame(as_byte_view(peer.heard)); says = peer.says()) {
    const Bytes heard = line.say(says, any);
    if (heard.empty() || !peer.error.empty()) return false;
    peer.hear(heard);
  }
  return is_welcome(as_byte_view(peer.heard));
}

Bytes hello_with(const Secret& ticket) {
  return session::encode_frame(session::Hello{.codecs = {}, .name = "attacker", .ticket = ticket}, 0, 1);
}

bool enters_in_clear(const SessionTarget& target, const Bytes& frame) {
  const auto line = target.connect();
  return target.over_zeromq ? welcomed_in_messages(*line, frame) : welcomed_in_stream(*line, frame);
}

bool enters(const SessionTarget& target, const Bytes& frame) {
  if (!target.server_key && !target.uses_tls) return enters_in_clear(target, frame);
  const auto line = target.connect();
  return target.server_key ? welcomed_over_curve(*line, *target.server_key, frame)
                           : welcomed_over_tls(*line, frame);
}

using Attackers = std::array<std::pair<std::string_view, Secret>, 9>;

/// Returns the attackers that say hello, each with its ticket.
Attackers attackers_of(const SessionTarget& target, const protocol::Ticket& good) {
  constexpr auto lifetime = 1min;  // permitted by every ticket_ms
  const auto& tickets = target.tickets;
  const broker::TicketKey other_key(broker::TicketKey::random_bytes());
  const auto of_other_key = other_key.issue(target.grant, lifetime, target.now, target.holder);
  const broker::Grant other_topic{TopicId{~target.grant.topic.value}, target.grant.role};
  const auto issued = [&](std::chrono::milliseconds ends, const broker::TicketHolder& holder) {
    return tickets.issue(target.grant, ends, target.now, holder).text();
  };
  const auto too_long = std::chrono::milliseconds(limits::ticket_ms_max) + 1h;
  return {{{"without a ticket", ""},
           {"with a malformed ticket", "malformed"},
           {"with a wrong secret", good.id + "." + of_other_key.secret.expose()},
           {"with another broker's ticket", of_other_key.text()},
           {"with a ticket of another topic",
            tickets.issue(other_topic, lifetime, target.now, target.holder).text()},
           {"with a ticket that has expired", issued(-1h, target.holder)},
           {"with a ticket that expires too late", issued(too_long, target.holder)},
           {"with a ticket of another administrator's password", issued(lifetime, old_administrator)},
           {"of a user who has lost the right", issued(lifetime, unknown_user)}}};
}

}  // namespace

std::vector<std::string> attack_sessions(const SessionTarget& target) {
  const auto good = target.tickets.issue(target.grant, 1min, target.now, target.holder);
  std::vector<std::string> faults;
  const auto must_refuse = [&](std::string_view whom, bool admitted) {
    if (admitted) faults.push_back("admits a client " + std::string(whom));
  };
  for (const auto& [whom, ticket] : attackers_of(target, good))
    must_refuse(whom, enters(target, hello_with(ticket)));
  must_refuse("without a hello", enters(target, session::encode_frame(session::Present{good.text()}, 0, 1)));
  if (target.server_key || target.uses_tls)
    must_refuse("that does not encrypt, with a good ticket",
                enters_in_clear(target, hello_with(good.text())));
  if (!enters(target, hello_with(good.text()))) faults.emplace_back("refuses a client with a good ticket");
  return faults;
}

}  // namespace lightq::test
