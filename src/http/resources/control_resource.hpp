/// The commands of the control protocol as resources. Layer: http. docs/http.md, "Commands".
#pragma once

#include <cstddef>

#include <lightq/base/limits.hpp>

#include "http/control_command.hpp"
#include "http/control_gate.hpp"
#include "http/http_loop.hpp"
#include "http/router.hpp"

namespace lightq::broker {

/// Executes commands by the handler of the control socket: so rights, errors and effects are the same. The
/// text of a reply is made on the HTTP thread. Lifetime: the parts outlive it. Thread: the HTTP thread.
class ControlResource {
 public:
  struct Parts {
    HttpLoop& loop;
    const ControlGate& gate;
    std::size_t request_bytes_max = limits::request_bytes_max;
  };

  explicit ControlResource(const Parts& parts) : parts_(parts) {}
  ControlResource(const ControlResource&) = delete;
  ControlResource& operator=(const ControlResource&) = delete;

  void add_to(Router& router);

 private:
  void run(const CommandRoute& route, const HttpExchange& exchange) const;

  const Parts parts_;
};

}  // namespace lightq::broker
