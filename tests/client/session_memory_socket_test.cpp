/// Tests of the client's end of memory that a broker shares, against correct and incorrect brokers.
#include <lightq/detail/session_memory_socket.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <lightq/detail/session_clock.hpp>

#include "session_fake_broker.hpp"

namespace lightq::test {
namespace {

using session::SharedRings;
using session::SharedSide;
using session::SharedSizes;

constexpr SharedSizes sizes{4096, 8192};

class SessionMemorySocketTest : public ::testing::Test {
 protected:
  SessionMemorySocketTest() {
    auto socket = SessionSocket::connect(listener.uri()).value_or_throw();
    wire = std::make_unique<SessionMemorySocket>(std::move(socket));
    broker = ::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  }
  ~SessionMemorySocketTest() override { hang_up(); }
  void hang_up() {
    if (broker >= 0) ::close(std::exchange(broker, -1));
  }

  /// Sends descriptors as they accompany a `shared` frame.
  void give(const std::vector<int>& descriptors) {
    std::byte data{'s'};
    iovec part{&data, 1};
    const std::size_t bytes = descriptors.size() * sizeof(int);
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(6 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* const about = CMSG_FIRSTHDR(&message);
      about->cmsg_level = SOL_SOCKET;
      about->cmsg_type = SCM_RIGHTS;
      about->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(about), descriptors.data(), bytes);
    }
    ASSERT_EQ(1, ::sendmsg(broker, &message, 0));
    ASSERT_EQ("s", read());
  }
  void share() {
    auto memory = SharedMemory::make(sizes.whole()).value_or_throw();
    give({memory.descriptor()});
    rings = std::make_unique<SharedRings>(std::move(memory), sizes, SharedSide::broker);
    wire->share(sizes).value_or_throw();
  }

  std::string read() {
    std::vector<std::byte> to(100'000);
    const std::size_t got = wire->read(to).value_or_throw();
    return std::string(as_text(ByteView(to).first(got)));
  }
  std::size_t write(std::string text) {
    iovec part{text.data(), text.size()};
    return wire->write({&part, 1}).value_or_throw();
  }
  void broker_says(const std::string& text) {
    ASSERT_EQ(text.size(), rings->writer().write(as_byte_view(text)));
    wakes_client = rings->writer().publish();
    if (wakes_client) send_wake(broker);
  }
  std::string broker_hears() {
    std::vector<std::byte> to(100'000);
    const std::size_t got = rings->reader().copy(to);
    if (rings->reader().release(got)) send_wake(broker);
    return std::string(as_text(ByteView(to).first(got)));
  }
  /// Returns true if the descriptor is readable.
  [[nodiscard]] bool is_woken() const {
    pollfd entry{wire->fd(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
  /// Returns how often the client has woken the broker.
  [[nodiscard]] int times_woken() const {
    std::array<char, 100> wakes;
    return static_cast<int>(std::max<ssize_t>(::recv(broker, wakes.data(), wakes.size(), MSG_DONTWAIT), 0));
  }

  FakeSessionListener listener{FakeSessionListener::Kind::unix_socket};
  std::unique_ptr<SessionMemorySocket> wire;
  std::unique_ptr<SharedRings> rings;
  int broker = -1;
  bool wakes_client = false;
};

TEST_F(SessionMemorySocketTest, IsASocketUntilMemoryIsShared) {
  EXPECT_TRUE(wire->can_share());
  EXPECT_TRUE(wire->tells_room_by_writable());
  EXPECT_EQ("", read());
  EXPECT_EQ(5U, write("hello"));
  std::array<char, 10> said;
  EXPECT_EQ(5, ::recv(broker, said.data(), said.size(), MSG_DONTWAIT));
  const int descriptor = wire->fd();
  share();
  EXPECT_NE(descriptor, wire->fd());
  EXPECT_FALSE(wire->can_share());
  EXPECT_FALSE(wire->tells_room_by_writable());
  EXPECT_EQ(5U, write("hello"));
  EXPECT_EQ(0, times_woken());
  EXPECT_EQ("hello", broker_hears());
  broker_says("and back");
  EXPECT_FALSE(wakes_client);
  EXPECT_EQ("and back", read());
}

TEST_F(SessionMemorySocketTest, AWaitingReaderIsWoken) {
  share();
  EXPECT_FALSE(wire->pending(POLLIN));
  EXPECT_FALSE(is_woken());
  broker_says("a");
  EXPECT_TRUE(is_woken());
  EXPECT_EQ("a", read());
  EXPECT_EQ("", read()) << "what has woken it is taken";
  EXPECT_FALSE(is_woken());
  broker_says("b");
  EXPECT_FALSE(wakes_client) << "it does not wait";
  EXPECT_TRUE(wire->pending(POLLIN));
}

TEST_F(SessionMemorySocketTest, AWriterThatWaitsForSpaceIsWoken) {
  share();
  EXPECT_EQ(4096U, write(std::string(5000, 'x')));
  EXPECT_EQ(0U, write("y"));
  EXPECT_FALSE(wire->pending(POLLOUT));
  EXPECT_FALSE(is_woken());
  EXPECT_EQ(std::string(4096, 'x'), broker_hears());
  EXPECT_TRUE(is_woken());
  EXPECT_TRUE(wire->pending(POLLOUT));
  EXPECT_EQ(1U, write("y"));
}

TEST_F(SessionMemorySocketTest, ConsumedWakesDoNotWakeItAgainWhileItOnlyWrites) {
  share();
  write(std::string(4096, 'x'));
  EXPECT_FALSE(wire->pending(POLLOUT));
  send_wake(broker);  // a needless wake
  EXPECT_TRUE(is_woken());
  EXPECT_EQ(0U, write("y"));
  EXPECT_FALSE(wire->pending(POLLOUT));
  EXPECT_FALSE(is_woken());
}

TEST_F(SessionMemorySocketTest, AWaitingBrokerIsWoken) {
  share();
  ASSERT_TRUE(rings->reader().wait());
  write("a");
  write("b");
  EXPECT_EQ(1, times_woken());
  ASSERT_EQ(8192U, rings->writer().write(std::vector<std::byte>(9000)));
  EXPECT_FALSE(rings->writer().publish());
  ASSERT_TRUE(rings->writer().wait());
  EXPECT_EQ(8192U, read().size());
  EXPECT_EQ(1, times_woken());
}

TEST_F(SessionMemorySocketTest, BytesSentBeforeTheEndAreReadBeforeIt) {
  share();
  broker_says("goodbye");
  hang_up();
  EXPECT_EQ("goodbye", read());
  std::vector<std::byte> to(100);
  auto last = wire->read(to);
  for (int i = 0; i < 200 && last; ++i) last = wire->read(to);
  ASSERT_FALSE(last);
  EXPECT_EQ(ErrorCode::closed, last.error().code);
  iovec part{to.data(), 1};
  EXPECT_EQ(ErrorCode::closed, wire->write({&part, 1}).error().code);
}

TEST_F(SessionMemorySocketTest, AWaitingReaderFindsTheEnd) {
  share();
  EXPECT_FALSE(wire->pending(POLLIN));
  hang_up();
  EXPECT_TRUE(is_woken());
  std::vector<std::byte> to(100);
  EXPECT_EQ(0U, wire->read(to).value_or_throw());
  EXPECT_EQ(ErrorCode::closed, wire->read(to).error().code);
}

TEST_F(SessionMemorySocketTest, MemoryThatTheBrokerHasTakenAwayAtItsEndIsTheEnd) {
  share();
  broker_says("unread");
  EXPECT_EQ("unread", read());
  broker_says("more");
  rings->empty(false);
  hang_up();
  std::vector<std::byte> to(100);
  EXPECT_EQ(ErrorCode::closed, wire->read(to).error().code);
}

TEST_F(SessionMemorySocketTest, UnreadBytesAtTheEndAreStillRead) {
  share();
  write("never read");
  for (int i = 0; i < 3; ++i) {
    broker_says(std::string(3000, 'x'));
    EXPECT_EQ(3000U, read().size());
  }
  broker_says(std::string(5000, 'y') + "goodbye");
  rings->empty(true);
  hang_up();
  EXPECT_EQ(std::string(5000, 'y') + "goodbye", read());
}

TEST_F(SessionMemorySocketTest, MemoryThatDoesNotComeIsAViolation) {
  EXPECT_EQ(ErrorCode::invalid_request, wire->share(sizes).error().code);
  give({});
  EXPECT_EQ(ErrorCode::invalid_request, wire->share(sizes).error().code);
}

TEST_F(SessionMemorySocketTest, SoIsMemoryThatCouldBeTakenAway) {
  const int plain = ::memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(0, ::ftruncate(plain, static_cast<off_t>(sizes.whole())));
  give({plain});
  ::close(plain);
  EXPECT_EQ(ErrorCode::invalid_request, wire->share(sizes).error().code);
  EXPECT_TRUE(wire->can_share()) << "nothing is shared";
}

TEST_F(SessionMemorySocketTest, MemoryOfAnotherSizeIsRefused) {
  const auto memory = SharedMemory::make(sizes.whole()).value_or_throw();
  give({memory.descriptor()});
  EXPECT_EQ(ErrorCode::invalid_request, wire->share({4096, 4096}).error().code);
}

TEST_F(SessionMemorySocketTest, SoAreMoreDescriptorsThanTheMemorys) {
  const auto memory = SharedMemory::make(sizes.whole()).value_or_throw();
  give({memory.descriptor(), memory.descriptor()});
  EXPECT_EQ(ErrorCode::invalid_request, wire->share(sizes).error().code);
  EXPECT_TRUE(wire->can_share()) << "nothing is shared";
}

TEST_F(SessionMemorySocketTest, ABrokerThatTakesNoWakesDoesNotBlockIt) {
  share();
  for (int wakes = 0; wakes < 20'000; ++wakes) {  // more wakes than a socket buffers
    ASSERT_TRUE(rings->reader().wait());
    write("a");
    ASSERT_EQ("a", broker_hears());
  }
}

TEST_F(SessionMemorySocketTest, ABrokerThatWakesWithoutEndDoesNotHoldItUp) {
  share();
  for (int wakes = 0; wakes < 20'000; ++wakes) send_wake(broker);
  for (int looks = 0; looks < 100 && is_woken(); ++looks) EXPECT_FALSE(wire->pending(POLLIN));
  EXPECT_FALSE(is_woken());
  broker_says("a");
  EXPECT_EQ("a", read());
}

TEST_F(SessionMemorySocketTest, LeavesNoOpenDescriptor) {
  const auto memory = SharedMemory::make(sizes.whole()).value_or_throw();
  const int next = ::dup(memory.descriptor());
  ::close(next);
  for (std::size_t times = 0; times <= 6; ++times) give(std::vector<int>(times, memory.descriptor()));
  wire.reset();
  const int then = ::dup(memory.descriptor());
  ::close(then);
  EXPECT_GE(next, then);
}

TEST_F(SessionMemorySocketTest, WordsThatCannotBeEndTheConnection) {
  auto memory = SharedMemory::make(sizes.whole()).value_or_throw();
  give({memory.descriptor()});
  wire->share(sizes).value_or_throw();
  auto* const words = reinterpret_cast<ByteRingWords*>(memory.bytes().data());
  words[1].written = sizes.to_client + 1;
  std::vector<std::byte> to(100);
  EXPECT_EQ(ErrorCode::invalid_request, wire->read(to).error().code);
  words[0].taken = 1;  // more than was ever written
  std::string text(5000, 'x');
  iovec part{text.data(), text.size()};
  EXPECT_EQ(ErrorCode::invalid_request, wire->write({&part, 1}).error().code);
}

}  // namespace
}  // namespace lightq::test
