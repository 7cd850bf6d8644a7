/// The control socket: requests in, exactly one answer each. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "broker/endpoint/event_loop.hpp"
#include "broker/endpoint/log_sink.hpp"

namespace lightq::broker {

/// A ZeroMQ ROUTER that REQ clients (with the empty delimiter) and DEALER clients (with or without) talk to.
/// Whatever arrives is answered; nothing that arrives ends it. An answer that a client leaves unread behind
/// 8,192 others is dropped, as is one to a client that has gone. Everything on the loop's thread.
class ControlServer final : public EventLoop::Source {
 public:
  using Answer = std::function<void(protocol::Reply)>;
  using Handle = std::function<void(protocol::Request, Answer)>;

  /// `uri`: tcp://HOST:PORT (port 0: any free one) or ipc://PATH. The socket exists from here on, its
  /// address is taken; `handle` is called for each request once `accept` was called.
  /// Errors: address_in_use, invalid_argument (no such address), io_error.
  static Result<std::unique_ptr<ControlServer>> open(EventLoop& loop, LogSink& sink, const std::string& uri,
                                                     Handle handle);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer() override;

  /// The address as bound, with the real port.
  [[nodiscard]] const std::string& bound_uri() const { return bound_uri_; }
  /// Begins to read requests.
  Result<void> accept();

  void on_ready() override;

 private:
  struct Socket;
  struct Envelope;
  struct Incoming;

  ControlServer(EventLoop& loop, LogSink& sink, Handle handle);
  Result<void> bind(const std::string& uri);
  [[nodiscard]] bool receive(Incoming& incoming);
  void dispatch(Incoming incoming);
  void answer(const Envelope& to, const protocol::Reply& reply);
  [[nodiscard]] bool readable();

  EventLoop& loop_;
  LogSink& sink_;
  const Handle handle_;
  std::unique_ptr<Socket> socket_;
  std::string bound_uri_;
  bool accepting_ = false;
  std::size_t under_way_ = 0;  // requests being executed
};

}  // namespace lightq::broker
