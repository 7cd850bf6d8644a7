/// Tests of a connection's transport through shared memory.
#include "net/connection_transport.hpp"

#include <gtest/gtest.h>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>

#include <lightq/base/socket_wake.hpp>

namespace lightq::broker {
namespace {

/// A connection that reads everything from the shared memory at each event, and counts its calls.
class SharingConnection final : public EventLoop::Source {
 public:
  SharingConnection(EventLoop& loop, UniqueFd descriptor) : transport(loop, *this, std::move(descriptor)) {}

  void on_event(EventLoop::Readiness readiness) override {
    ++events;
    transport.take_wakes(readiness);
    read();
  }
  void on_ready() override {
    if (!transport.take_late_wakes()) return;
    ++late;
    read();
    stop.request_stop();
  }
  bool take_woken() override { return transport.shared().take_woken(); }
  void read() {
    bytes += transport.shared().input_bytes();
    transport.shared().release(transport.shared().input_bytes());
    static_cast<void>(transport.shared().wait_for_input());
    if (on_read) on_read();
  }

  std::stop_source stop;
  int events = 0;
  int late = 0;
  std::size_t bytes = 0;
  std::function<void()> on_read;
  ConnectionTransport transport;
};

class SharedTransportTest : public ::testing::Test {
 protected:
  static constexpr session::SharedSizes sizes{4096, 4096};

  SharedTransportTest() {
    SharedMemory memory = SharedMemory::make(sizes.whole()).value_or_throw();
    SharedMemory other = SharedMemory::adopt(::dup(memory.descriptor()), sizes.whole()).value_or_throw();
    client = std::make_unique<session::SharedRings>(std::move(other), sizes, session::SharedSide::client);
    EXPECT_TRUE(connection.transport.watch());
    EXPECT_TRUE(connection.transport.share(
        std::make_unique<session::SharedRings>(std::move(memory), sizes, session::SharedSide::broker),
        SharedWake::over(connection.transport.descriptor()), {}));
  }
  static std::array<UniqueFd, 2> connected() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()));
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
  /// Sends unrequested bytes until the socket is full. Returns how many.
  std::size_t fill_socket() {
    constexpr std::string_view noise = "anything";
    std::size_t sent = 0;
    while (::send(ends[1].get(), noise.data(), noise.size(), MSG_DONTWAIT) > 0) sent += noise.size();
    return sent;
  }
  void produce() {
    const std::byte one{};
    client->writer().write({&one, 1});
    if (client->writer().publish()) send_wake(ends[1].get());
  }
  [[nodiscard]] int unread() const {
    int bytes = -1;
    EXPECT_EQ(0, ::ioctl(connection.transport.descriptor(), FIONREAD, &bytes));
    return bytes;
  }

  EventLoop loop;
  std::array<UniqueFd, 2> ends = connected();
  std::unique_ptr<session::SharedRings> client;
  SharingConnection connection{loop, std::move(ends[0])};
};

TEST_F(SharedTransportTest, ReadsWakesThatFilledTheSocketInTheSameEventAsARequestedOne) {
  ASSERT_TRUE(connection.transport.shared().wait_for_input());
  produce();
  ASSERT_GT(fill_socket(), 1000U);
  int unread_after_event = 0;
  connection.on_read = [&] {
    if (connection.events != 1 || connection.late > 0) return;
    unread_after_event = unread();
    produce();  // the socket has no space for this wake
  };
  loop.at(EventLoop::Clock::now() + std::chrono::seconds(20), [&] { connection.stop.request_stop(); });
  loop.run(connection.stop.get_token());
  EXPECT_EQ(connection.events, 1);
  EXPECT_GT(unread_after_event, 1000) << "the event has read them, so that this test shows nothing";
  EXPECT_EQ(connection.late, 1);
  EXPECT_EQ(connection.bytes, 2U) << "the byte whose wake found no space";
  EXPECT_EQ(unread(), 0);
}

TEST_F(SharedTransportTest, HasNoTimerWhenItIsClosed) {
  ASSERT_TRUE(connection.transport.shared().wait_for_input());
  produce();
  connection.on_read = [&] {
    connection.transport.close();
    loop.at(EventLoop::Clock::now() + std::chrono::milliseconds(150),
            [&] { connection.stop.request_stop(); });
  };
  loop.run(connection.stop.get_token());
  EXPECT_EQ(connection.late, 0);
}

}  // namespace
}  // namespace lightq::broker
