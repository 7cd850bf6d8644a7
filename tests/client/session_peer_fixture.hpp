/// A session producer or consumer and the fake broker on the other side. The test moves both on step by step
/// in one thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/detail/session_route.hpp>

#include "session_fake_broker.hpp"

#include "support/planted.hpp"

namespace lightq::test {

/// A steady clock that a test can advance.
class MovableClock {
 public:
  [[nodiscard]] SessionClock::Source source() const {
    return [ahead = ahead_] { return std::chrono::steady_clock::now() + *ahead; };
  }
  void advance(std::chrono::milliseconds by) { *ahead_ += by; }

 private:
  std::shared_ptr<std::chrono::milliseconds> ahead_ = std::make_shared<std::chrono::milliseconds>(0);
};

template <typename Handle>
class SessionPeerTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t channel = 7;

  explicit SessionPeerTest(FakeSessionListener::Kind kind) : listener(kind) {
    welcome.frame_bytes_max = 2 << 20;
  }

  /// Returns the join function of the handle.
  SessionJoin join() {
    return [this]() -> Result<SessionAddress> {
      ++joins;
      if (join_error) return *join_error;
      return SessionAddress{listener.uri(),
                            std::string("id.") + planted::ticket_secret + std::to_string(joins)};
    };
  }
  static void poll(Handle& handle) {
    if constexpr (requires { handle.poll(Timeout(0)); }) {
      (void)handle.poll(Timeout(0));
    } else {
      (void)handle.poll();
    }
  }

  /// Lets both sides work until `done`, without waiting. Returns false if that does not happen.
  bool until(Handle& handle, const std::function<bool()>& done) {
    for (int step = 0; step < 3000; ++step) {
      poll(handle);
      peer.write();
      peer.read();
      if (done()) return true;
    }
    return false;
  }
  /// Returns the next frame. If none came, returns a frame with op `goodbye` and no body.
  TakenFrame next_frame(Handle& handle) {
    std::optional<TakenFrame> frame;
    if (until(handle, [&] { return (frame = peer.next()).has_value(); })) return *frame;
    ADD_FAILURE() << "no frame came";
    return {{session::Op::goodbye, 0, 0, 0, 0}, {}};
  }
  /// Returns true if the handle sends no frame and does not close the connection.
  bool is_quiet(Handle& handle) {
    for (int step = 0; step < 50; ++step) {
      poll(handle);
      peer.read();
    }
    return !peer.next().has_value() && !peer.ended();
  }

  /// Accepts the next connection. Advances the clock over any backoff.
  void accept(Handle& handle) {
    peer.close();
    for (int step = 0; step < 3000 && !peer.is_open(); ++step) {
      poll(handle);
      peer = listener.accept();
      if (!peer.is_open()) clock.advance(Timeout(10));
    }
    ASSERT_TRUE(peer.is_open());
  }
  session::Hello greet(Handle& handle) {
    accept(handle);
    const TakenFrame frame = next_frame(handle);
    peer.say(welcome, 0, frame.header.request);
    return frame.as<session::Hello>();
  }
  /// Accepts the next connection, up to the request for a channel.
  TakenFrame asked(Handle& handle) {
    greet(handle);
    return next_frame(handle);
  }
  /// Accepts the next connection and opens the channel with the reply `opened`.
  template <typename Open, typename Opened>
  Open open_channel(Handle& handle, const Opened& opened) {
    const TakenFrame open = asked(handle);
    peer.say(opened, channel, open.header.request);
    EXPECT_TRUE(until(handle, [&] { return handle.state() == SessionState::open; }));
    return open.as<Open>();
  }

  FakeSessionListener listener;
  MovableClock clock;
  session::Welcome welcome;
  FakeSession peer;
  int joins = 0;
  std::optional<Error> join_error;
};

}  // namespace lightq::test
