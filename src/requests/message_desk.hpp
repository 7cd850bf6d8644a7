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
#include "requests/browse.hpp"
#include "requests/copied_bytes.hpp"
#include "requests/lease.hpp"
#include "requests/publication.hpp"
#include "requests/requester.hpp"
#include "requests/stream.hpp"
#include "topic/reactor/reactor.hpp"

namespace lightq::broker {

/// Publishes, leases, streams and reads messages for clients that have no session. Owns the publications and
/// reads that wait, the leases and the streams. A stream ends with its client; each of the others has a time
/// at which it ends. While there are leases or streams, their rights are checked once a second. Thread: the
/// reactor's, except the constructor and destructor. Lifetime: the reactor outlives the desk; the desk is
/// destroyed after the reactor's thread has ended.
class MessageDesk {
 public:
  /// `copies`: those of all desks.
  explicit MessageDesk(CopyBounds copies = {}) : copies_(std::move(copies)) {}
  MessageDesk(const MessageDesk&) = delete;
  MessageDesk& operator=(const MessageDesk&) = delete;

  /// Appends messages to the topic. Calls `done` once, now or later. Errors: topic_not_found,
  /// unauthorized_access, not_supported, too_large, invalid_request, limit_reached (no space), no_space,
  /// io_error, timeout, shutting_down.
  void publish(Reactor& reactor, TopicId topic, const Requester& requester, MessagesToPublish messages,
               Publication::Done done);
  /// Takes messages of a group. Calls `done` once, now or later. Errors: as of a consumer that opens a group,
  /// and busy.
  void lease(Reactor& reactor, TopicId topic, const Requester& requester, LeaseWish wish, Lease::Done done);
  /// Gives the messages of a lease back, because the client did not receive them.
  void take_back(std::uint64_t lease);
  /// Sends messages to `client` until one side ends the stream. `client` is told if it is refused. Errors: as
  /// of a consumer that opens a group.
  void stream(Reactor& reactor, TopicId topic, const Requester& requester, StreamWish wish,
              const std::shared_ptr<StreamClient>& client);
  /// Called when the system has taken messages of a stream: see Stream::written.
  void written(std::uint64_t stream, const StreamAmount& taken);
  /// Ends a stream, because its client has gone. Its messages in flight are delivered to others.
  void end_stream(std::uint64_t stream);
  /// Reads messages without a group. Calls `done` once, now or later. Errors: see Browse.
  void browse(Reactor& reactor, TopicId topic, const Requester& requester, const BrowseWish& wish,
              Browse::Done done);
  /// Settles messages of a lease, or of a stream whose lease it is. Errors: timeout (there is no such lease
  /// of this client, or it is over), unauthorized_access, invalid_request.
  [[nodiscard]] Result<Settled> settle(Reactor& reactor, TopicId topic, const Requester& requester,
                                       std::uint64_t lease, const Settling& settling);
  /// Returns the number of leases and streams, and of publications and reads that wait.
  [[nodiscard]] std::size_t size() const {
    return leases_.size() + streams_.size() + publications_.size() + browses_.size();
  }

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

  struct Reading {
    std::unique_ptr<Browse> browse;
    EventLoop::TimerId later = 0;
    EventLoop::TimerId end = 0;
  };

  void drop_publication(EventLoop& loop, std::uint64_t id);
  void drop_stream(EventLoop& loop, std::uint64_t id);
  void drop_browse(EventLoop& loop, std::uint64_t id);
  [[nodiscard]] std::uint64_t free_id() const;
  [[nodiscard]] MessageHolder* holder_of(std::uint64_t lease);
  void watch(EventLoop& loop);
  void look_at_all();
  void changed(std::uint64_t id);
  void on_timer(std::uint64_t id);
  void set_timer(std::uint64_t id, Held& held, EventLoop::Clock::time_point when);

  const CopyBounds copies_;
  std::unordered_map<std::uint64_t, Waiting> publications_;
  std::unordered_map<std::uint64_t, Held> leases_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Stream>> streams_;
  std::unordered_map<std::uint64_t, Reading> browses_;
  std::uint64_t next_number_ = 1;  // of publications and reads
  bool is_watching_ = false;       // a timer runs that looks at all leases and streams
};

}  // namespace lightq::broker
