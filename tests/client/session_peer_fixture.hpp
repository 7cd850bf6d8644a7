/// A producer or consumer on a session and the fake broker that it talks to, moved on step by step in one
/// thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <lightq/session_route.hpp>

#include "session_fake_broker.hpp"

#include "support/planted.hpp"

namespace lightq::test {

/// A steady clock that a test moves on.
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

  /// How the handle joins.
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

  /// Lets both sides work until `done`, without waiting; false: it does not come about.
  bool until(Handle& handle, const std::function<bool()>& done) {
    for (int step = 0; step < 3000; ++step) {
      poll(handle);
      peer.write();
      peer.read();
      if (done()) return true;
    }
    return false;
  }
  /// The next frame; one whose op is `goodbye` with no body: none came.
  TakenFrame next_frame(Handle& handle) {
    std::optional<TakenFrame> frame;
    if (until(handle, [&] { return (frame = peer.next()).has_value(); })) return *frame;
    ADD_FAILURE() << "no frame came";
    return {{session::Op::goodbye, 0, 0, 0, 0}, {}};
  }
  /// Nothing comes, however often both sides are asked.
  bool is_quiet(Handle& handle) {
    for (int step = 0; step < 50; ++step) {
      poll(handle);
      peer.read();
    }
    return !peer.next().has_value() && !peer.ended();
  }

  /// Takes the next connection, moving the clock over any backoff.
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
  /// Takes the next connection up to the question for a channel.
  TakenFrame asked(Handle& handle) {
    greet(handle);
    return next_frame(handle);
  }
  /// Takes the next connection and opens the channel as `opened` says.
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
