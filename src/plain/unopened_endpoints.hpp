/// The endpoints of a topic that could not be opened again at the broker's start. Layer: plain.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include <lightq/base/result.hpp>

#include "net/event_loop.hpp"
#include "topic/endpoint_record.hpp"

namespace lightq::broker {

class Subscriber;

/// Keeps the endpoints and their subscribers, and tries twice a second to open them. The cause, such as a
/// lack of descriptors or a missing address, may pass. Clients connect to the old addresses for ever. Thread:
/// the loop's.
class UnopenedEndpoints {
 public:
  /// An endpoint that is not open.
  struct One {
    EndpointRecord record;
    Subscriber* subscriber = nullptr;  ///< the subscriber of an endpoint with the role `sub`, else null
  };
  using Open = std::function<Result<void>(const One&)>;

  /// `open` opens an endpoint. It is called by `try_all` and by a timer of `loop`. Lifetime: `loop` outlives
  /// this.
  UnopenedEndpoints(EventLoop& loop, Open open) : loop_(loop), open_(std::move(open)) {}
  UnopenedEndpoints(const UnopenedEndpoints&) = delete;
  UnopenedEndpoints& operator=(const UnopenedEndpoints&) = delete;
  ~UnopenedEndpoints() { stop(); }

  /// Adds an endpoint to open later.
  void add(const One& one);
  /// Tries to open the endpoints now. Stops at the first one that fails for lack of a descriptor or port.
  void try_all();
  /// Removes and returns the first endpoint that matches, or nothing.
  std::optional<One> take(const std::function<bool(const EndpointRecord&)>& matches);
  /// Opens no endpoint from now on.
  void stop();

  /// Returns the endpoints by id.
  [[nodiscard]] const std::map<std::uint64_t, One>& all() const { return all_; }

 private:
  void try_later();

  EventLoop& loop_;
  const Open open_;
  std::map<std::uint64_t, One> all_;
  EventLoop::TimerId timer_ = 0;
  bool stopped_ = false;
};

}  // namespace lightq::broker
