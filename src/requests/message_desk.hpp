/// Serves single requests for the messages of one reactor's topics. Layer: requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "net/event_loop.hpp"
#include "requests/lease.hpp"
#include "requests/publication.hpp"
#include "requests/requester.hpp"
#include "topic/reactor/reactor.hpp"

namespace lightq::broker {

/// Publishes and leases messages for clients that have no session. Owns the publications that wait, and the
/// leases. Each has a time at which it ends. Thread: the reactor's, except the constructor and destructor.
/// Lifetime: the reactor outlives the desk; the desk is destroyed after the reactor's thread has ended.
class MessageDesk {
 public:
  MessageDesk() = default;
  MessageDesk(const MessageDesk&) = delete;
  MessageDesk& operator=(const MessageDesk&) = delete;

  /// Appends messages to the topic. Calls `done` once, now or later. Errors: topic_not_found,
  /// unauthorized_access, not_supported, too_large, invalid_request, limit_reached (no space), no_space,
  /// io_error, timeout, shutting_down.
  void publish(Reactor& reactor, TopicId topic, const Requester& requester, MessagesToPublish messages,
               Publication::Done done);
  /// Takes messages of a group. Calls `done` once, now or later. Errors: as of a consumer that opens a group.
  void lease(Reactor& reactor, TopicId topic, const Requester& requester, LeaseWish wish, Lease::Done done);
  /// Gives the messages of a lease back, because the client did not receive them.
  void take_back(std::uint64_t lease);
  /// Settles messages of a lease. Errors: timeout (there is no such lease of this client, or it is over),
  /// unauthorized_access, invalid_request.
  [[nodiscard]] Result<Settled> settle(Reactor& reactor, TopicId topic, const Requester& requester,
                                       std::uint64_t lease, const Settling& settling);
  /// Returns the number of leases and of publications that wait.
  [[nodiscard]] std::size_t size() const { return leases_.size() + publications_.size(); }

 private:
  struct Waiting {
    std::unique_ptr<Publication> publication;
    EventLoop::TimerId timer = 0;
  };
  struct Held {
    std::unique_ptr<Lease> lease;
    EventLoop* loop = nullptr;
    EventLoop::TimerId timer = 0;
  };

  void drop_publication(EventLoop& loop, std::uint64_t id);
  void changed(std::uint64_t id);
  void on_timer(std::uint64_t id);
  void set_timer(std::uint64_t id, Held& held, EventLoop::Clock::time_point when);

  std::unordered_map<std::uint64_t, Waiting> publications_;
  std::unordered_map<std::uint64_t, Held> leases_;
  std::uint64_t next_publication_ = 1;
};

}  // namespace lightq::broker
