/// Plays the client's side of ZeroMQ handshakes.
#include "attacks/zmtp_client.hpp"

#include <cstdint>

#include "support/curve_client.hpp"
#include "support/plain_client.hpp"
#include "zmtp/zmtp.hpp"

namespace lightq::test {

namespace {

namespace zmtp = broker::zmtp;

/// The result of a search for a command in the received bytes. `over`: it cannot follow any more.
struct Search {
  enum class State { pending, found, over };
  State state = State::pending;
  Bytes data = {};
  std::size_t end = 0;  ///< the position after the command
};

Search search(ByteView bytes, std::size_t begin, std::string_view name) {
  using State = Search::State;
  for (std::size_t at = begin; at < bytes.size();) {
    zmtp::FrameHeader header;
    const auto outcome = zmtp::parse_frame_header(bytes.subspan(at), header);
    if (outcome == zmtp::FrameOutcome::incomplete) return {};
    if (outcome == zmtp::FrameOutcome::invalid || !header.command) return {State::over};
    const ByteView body = bytes.subspan(at + header.header_bytes);
    if (body.size() < header.body_bytes) return {};
    const auto command = zmtp::parse_command(body.first(static_cast<std::size_t>(header.body_bytes)));
    if (!command || command->name == "ERROR") return {State::over};
    at += header.header_bytes + static_cast<std::size_t>(header.body_bytes);
    if (command->name == name) return {State::found, {command->data.begin(), command->data.end()}, at};
  }
  return {};
}

Bytes greeting_of(zmtp::Mechanism mechanism) {
  const auto greeting = zmtp::greeting(mechanism);
  return {greeting.begin(), greeting.end()};
}

Admission admission_of(const Line& line, bool ready, bool valid) {
  if (ready && valid) return Admission::admitted;
  return ready || line.admitted() ? Admission::broken : Admission::refused;
}

}  // namespace

std::optional<Bytes> ZmtpClient::ask(ByteView says, std::string_view name) {
  const std::size_t begin = greeted_ ? 0 : zmtp::greeting_bytes;
  const Bytes before = heard_;
  const auto all = [&](ByteView more) {
    Bytes bytes = before;
    bytes.insert(bytes.end(), more.begin(), more.end());
    return bytes;
  };
  heard_ = all(line_.say(
      says, [&](ByteView more) { return search(all(more), begin, name).state != Search::State::pending; }));
  const Search result = search(heard_, begin, name);
  if (result.state != Search::State::found) return std::nullopt;
  greeted_ = true;
  heard_.erase(heard_.begin(), heard_.begin() + static_cast<std::ptrdiff_t>(result.end));
  return result.data;
}

Admission connect_by_null(Line& line, std::string_view type) {
  Bytes says = greeting_by_null();
  zmtp::append_ready(says, type);
  const bool ready = ZmtpClient(line).ask(says, "READY").has_value();
  return admission_of(line, ready, true);
}

Admission connect_by_plain(Line& line, std::string_view type, std::string_view id, std::string_view secret) {
  Bytes says = greeting_of(zmtp::Mechanism::plain);
  append_plain_hello(says, id, secret);
  append_plain_initiate(says, type);
  const bool ready = ZmtpClient(line).ask(says, "READY").has_value();
  return admission_of(line, ready, true);
}

Admission connect_by_curve(Line& line, std::string_view type, const broker::CurveKeyPair& key,
                           const CurvePublicKey& server_key, const std::optional<CurvePublicKey>& claimed) {
  ZmtpClient talk(line);
  CurveClient client(key, server_key);
  Bytes says = greeting_by_curve();
  client.append_hello(says);
  const auto welcome = talk.ask(says, "WELCOME");
  if (!welcome || !client.take_welcome(*welcome)) return admission_of(line, false, false);
  says.clear();
  client.append_initiate(says, zmtp::metadata_of(type), claimed);
  const auto ready = talk.ask(says, "READY");
  return admission_of(line, ready.has_value(), ready && client.take_ready(*ready).has_value());
}

Bytes greeting_by_null() {
  return greeting_of(zmtp::Mechanism::null);
}

Bytes greeting_by_curve() {
  return greeting_of(zmtp::Mechanism::curve);
}

}  // namespace lightq::test
