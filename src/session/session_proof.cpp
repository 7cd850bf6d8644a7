/// Plays clients that sessions must refuse, and one that they must admit. Layer: session.
#include "session/session_proof.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "crypto/tls_cipher.hpp"
#include "session/session_server.hpp"
#include "zmtp/zmtp_curve.hpp"

namespace lightq::broker {

namespace {

using Bytes = std::vector<std::byte>;
using protocol::Transport;

constexpr TopicId proof_topic{1};
constexpr TopicId absent_topic{~std::uint64_t{0}};

class SilentSink final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*line*/) override {}
};

/// A kind of session, and its name in errors.
struct SessionWay {
  Transport transport;
  SessionCarrier carrier;
  std::string_view name;
};

constexpr std::array<SessionWay, 4> session_ways = {
    {{Transport::tcp, SessionCarrier::stream, "sessions over TCP"},
     {Transport::tcp, SessionCarrier::zmtp, "sessions over ZeroMQ"},
     {Transport::ipc, SessionCarrier::stream, "sessions over Unix sockets"},
     {Transport::ipc, SessionCarrier::zmtp, "sessions over ZeroMQ and Unix sockets"}}};

/// A session server that does not listen, with one topic that it knows only by name.
class ProvenServer {
 public:
  explicit ProvenServer(const SessionProof& of)
      : settings_(of.endpoints),
        now_(of.now),
        ports_("127.0.0.1", std::nullopt, std::chrono::milliseconds(0)),
        context_{loop_,     disk_, ports_,   sink_, of.tickets,
                 settings_, now_,  next_id_, {},    std::vector<std::byte>(256 * limits::KiB),
                 {}},
        server_(
            context_, [](TopicId) { return nullptr; }, of.sessions, "proof",
            [this](TopicId topic) { return topic == proof_topic ? &name_ : nullptr; }) {
    context_.access = of.access;
  }
  ProvenServer(const ProvenServer&) = delete;
  ProvenServer& operator=(const ProvenServer&) = delete;

  /// Connects to the server and returns the client's end.
  Result<UniqueFd> connect(const SessionWay& way) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
      return Error{ErrorCode::io_error, "cannot create sockets to test sessions with", errno};
    server_.take(UniqueFd(ends[1]), way.transport, way.carrier);
    return UniqueFd(ends[0]);
  }
  /// Runs the event loop until the present work is done.
  void turn() {
    std::stop_source stop;
    loop_.post_answer([&] { stop.request_stop(); });
    loop_.run(stop.get_token());
  }

 private:
  const EndpointSettings settings_;
  const WallClock now_;
  const TopicName name_ = *TopicName::parse("proof");
  SilentSink sink_;
  EventLoop loop_;
  DiskThread disk_;
  PortBook ports_;
  std::atomic<std::uint64_t> next_id_ = 1;
  ReactorContext context_;
  SessionServer server_;
};

/// A client's end of a connection. The server has handled the bytes before `say` returns.
class Stranger {
 public:
  Stranger(ProvenServer& server, UniqueFd socket) : server_(server), socket_(std::move(socket)) {}

  Bytes say(ByteView bytes) {
    // An error is ignored, because the connection may have ended.
    static_cast<void>(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    constexpr int turns = 3;  // the server answers and closes in this turn or the next
    Bytes heard;
    for (int i = 0; i < turns; ++i) {
      server_.turn();
      Bytes part(64 * limits::KiB);
      const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
      if (got > 0) heard.insert(heard.end(), part.begin(), part.begin() + got);
    }
    return heard;
  }

 private:
  ProvenServer& server_;
  UniqueFd socket_;
};

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

ByteView first_command_data(ByteView bytes) {
  const auto command = zmtp::parse_command(first_body(bytes));
  return command ? command->data : ByteView{};
}

bool is_welcome(ByteView frame) {
  return frame.size() >= session::frame_layout::header_bytes &&
         frame[session::frame_layout::op] == static_cast<std::byte>(session::Op::welcome);
}

bool welcomed_in_clear(Stranger stranger, SessionCarrier carrier, const Bytes& frame) {
  if (carrier == SessionCarrier::stream) return is_welcome(stranger.say(frame));
  const auto greeting = zmtp::greeting(zmtp::Mechanism::null);
  Bytes says(greeting.begin(), greeting.end());
  zmtp::append_ready(says, "DEALER");
  stranger.say(says);
  return is_welcome(first_body(stranger.say(in_message(frame))));
}

bool welcomed_over_curve(Stranger stranger, const CurveKeyPair& server_key, const Bytes& frame) {
  const CurveKeyPair own;
  CurveClient client(own, server_key.public_key());
  const auto greeting = zmtp::greeting(zmtp::Mechanism::curve);
  Bytes says(greeting.begin(), greeting.end());
  client.append_hello(says);
  const Bytes welcome = stranger.say(says);
  if (welcome.size() < greeting.size() ||
      !client.take_welcome(first_command_data(ByteView(welcome).subspan(greeting.size()))))
    return false;
  says.clear();
  client.append_initiate(says, zmtp::metadata_of("DEALER"));
  if (!client.take_ready(first_command_data(stranger.say(says)))) return false;
  const auto cipher = client.make_cipher(limits::MiB);
  says.clear();
  cipher->seal(in_message(frame), says);
  Bytes wire = stranger.say(says);
  Bytes plain, answer;
  cipher->open(wire, plain, answer);
  return is_welcome(first_body(plain));
}

bool welcomed_over_tls(Stranger stranger, const TlsContext& tls, const Bytes& frame) {
  TlsCipher cipher(tls);
  Bytes heard, plain, says;
  cipher.open(heard, plain, says);
  constexpr int flights_max = 4;
  for (int i = 0; i < flights_max && !says.empty() && !cipher.ready(); ++i) {
    heard = stranger.say(says);
    says.clear();
    cipher.open(heard, plain, says);
  }
  if (!cipher.ready()) return false;
  cipher.seal(frame, says);  // sent together with the end of the handshake
  heard = stranger.say(says);
  says.clear();
  cipher.open(heard, plain, says);
  return is_welcome(plain);
}

Bytes hello_with(std::string ticket) {
  return session::encode_frame(session::Hello{.codecs = {}, .name = "proof", .ticket = std::move(ticket)}, 0,
                               1);
}

/// The checks on one kind of session.
class WayProof {
 public:
  WayProof(ProvenServer& server, const SessionWay& way, const CurveKeyPair* encrypted_by,
           const TlsContext* client_tls)
      : server_(server),
        way_(way),
        curve_(way.carrier == SessionCarrier::zmtp ? encrypted_by : nullptr),
        tls_(way.carrier == SessionCarrier::stream && way.transport == Transport::tcp ? client_tls
                                                                                      : nullptr) {}

  Result<void> run(const TicketKey& issuer, Timestamp now);

 private:
  Error lets_in(std::string_view whom) const {
    return {ErrorCode::internal, std::string(way_.name) + " admit a client " + std::string(whom) +
                                     ", so the broker does not start"};
  }
  bool enters_in_clear(const Bytes& frame) {
    auto socket = server_.connect(way_);
    if (!socket) failed_ = socket.error();
    return socket && welcomed_in_clear({server_, std::move(*socket)}, way_.carrier, frame);
  }
  bool enters(const Bytes& frame) {
    if (curve_ == nullptr && tls_ == nullptr) return enters_in_clear(frame);
    auto socket = server_.connect(way_);
    if (!socket) failed_ = socket.error();
    if (!socket) return false;
    Stranger stranger(server_, std::move(*socket));
    return curve_ != nullptr ? welcomed_over_curve(std::move(stranger), *curve_, frame)
                             : welcomed_over_tls(std::move(stranger), *tls_, frame);
  }

  ProvenServer& server_;
  const SessionWay way_;
  const CurveKeyPair* const curve_;
  const TlsContext* const tls_;
  std::optional<Error> failed_;
};

Result<void> WayProof::run(const TicketKey& issuer, Timestamp now) {
  using namespace std::chrono_literals;
  const Grant grant{proof_topic, EndpointRole::produce};
  constexpr auto lifetime = 1min;  // permitted by every ticket_ms
  const TicketKey other_key(TicketKey::random_bytes());
  const auto shown = [](const protocol::Ticket& ticket) { return ticket.id + "." + ticket.secret; };
  const auto good = issuer.issue(grant, lifetime, now);
  const auto of_other_key = other_key.issue(grant, lifetime, now);
  const std::array<std::pair<std::string_view, std::string>, 9> strangers = {
      {{"without a ticket", ""},
       {"with a malformed ticket", "proof"},
       {"with a wrong secret", good.id + "." + of_other_key.secret},
       {"with another broker's ticket", shown(of_other_key)},
       {"with a ticket of another topic", shown(issuer.issue({absent_topic, grant.role}, lifetime, now))},
       {"with a ticket that has expired", shown(issuer.issue(grant, -1h, now))},
       {"with a ticket that expires too late",
        shown(issuer.issue(grant, std::chrono::milliseconds(limits::ticket_ms_max) + 1h, now))},
       {"with a ticket of another administrator's password",
        shown(issuer.issue(grant, lifetime, now, {.user = 0, .generation = 1}))},
       {"of a user who has lost the right",
        shown(issuer.issue(grant, lifetime, now, {.user = ~std::uint64_t{0}, .generation = 1}))}}};
  for (const auto& [whom, ticket] : strangers) {
    if (enters(hello_with(ticket))) return lets_in(whom);
  }
  if (enters(session::encode_frame(session::Present{shown(good)}, 0, 1))) return lets_in("without a hello");
  const bool encrypted = curve_ != nullptr || tls_ != nullptr;
  if (encrypted && enters_in_clear(hello_with(shown(good))))
    return lets_in("that does not encrypt, with a good ticket");
  const bool in = enters(hello_with(shown(good)));
  if (failed_) return *failed_;
  if (!in) return Error{ErrorCode::internal, std::string(way_.name) + " refuse a client with a good ticket"};
  return {};
}

}  // namespace

Result<void> prove_session_gates(const SessionProof& of, const TicketKey& issuer,
                                 const CurveKeyPair* encrypted_by) {
  std::unique_ptr<TlsContext> client_tls;
  if (encrypted_by != nullptr) {
    auto made = TlsContext::make_client();
    if (!made) return made.error();
    client_tls = std::move(*made);
  }
  ProvenServer server(of);
  for (const SessionWay& way : session_ways) {
    auto proven = WayProof(server, way, encrypted_by, client_tls.get()).run(issuer, of.now());
    if (!proven) return proven;
  }
  return {};
}

}  // namespace lightq::broker
