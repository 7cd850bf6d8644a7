/// Endpoints of a topic that a start could not open again. Layer: endpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include <lightq/base/result.hpp>

#include "broker/endpoint/endpoint_record.hpp"
#include "broker/endpoint/event_loop.hpp"

namespace lightq::broker {

class Subscriber;

/// Keeps them, with their subscribers, and opens them as soon as that works: descriptors may be used up or an
/// address missing for a while, but clients connect to the old addresses for ever. The loop's thread.
class UnopenedEndpoints {
 public:
  struct One {
    EndpointRecord record;
    Subscriber* subscriber = nullptr;  ///< of the role `sub` only
  };
  using Open = std::function<Result<void>(const One&)>;

  /// `open` is called by a timer and by `try_all`.
  UnopenedEndpoints(EventLoop& loop, Open open) : loop_(loop), open_(std::move(open)) {}
  UnopenedEndpoints(const UnopenedEndpoints&) = delete;
  UnopenedEndpoints& operator=(const UnopenedEndpoints&) = delete;
  ~UnopenedEndpoints() { stop(); }

  void add(const One& one);
  /// Tries to open them now. Stops at the first for which there is no descriptor.
  void try_all();
  /// Takes out the first that matches, or nothing.
  std::optional<One> take(const std::function<bool(const EndpointRecord&)>& matches);
  /// Opens none any more.
  void stop();

  /// By id.
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
