/// Tests of a connection's bytes through memory that its peer shares.
#include "net/shared_wire.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <lightq/base/socket_wake.hpp>

#include "support/counted_yields.hpp"

namespace lightq::broker {
namespace {

class SharedWireTest : public ::testing::Test {
 protected:
  static constexpr session::SharedSizes sizes{4096, 65536};

  static std::unique_ptr<session::SharedRings> rings_in(SharedMemory memory, session::SharedSide side) {
    return std::make_unique<session::SharedRings>(std::move(memory), sizes, side);
  }
  /// Returns true if the wire yields the processor.
  bool gives_way() {
    const int before = lightq::test::yields;
    wire.give_way();
    return lightq::test::yields > before;
  }

  // A wire takes a plain function as its clock.
  static inline SharedWire::Clock::time_point time{std::chrono::hours(1)};

  SharedMemory memory = SharedMemory::make(sizes.whole()).value_or_throw();
  SharedMemory of_client = SharedMemory::adopt(::dup(memory.descriptor()), sizes.whole()).value_or_throw();
  std::unique_ptr<session::SharedRings> client = rings_in(std::move(of_client), session::SharedSide::client);
  SharedWire wire{rings_in(std::move(memory), session::SharedSide::broker),
                  SharedWake::by_descriptors().value_or_throw(),
                  {},
                  []() noexcept { return time; }};
};

TEST_F(SharedWireTest, YieldsToAPeerThatItHasJustWokenForMuch) {
  const std::vector<std::byte> much(sizes.to_client);
  EXPECT_FALSE(gives_way()) << "nobody was woken";
  ASSERT_TRUE(client->reader().wait());
  EXPECT_EQ(wire.send(ByteView(much).first(100), {}), 100U);
  EXPECT_EQ(wire.send(much, {}), much.size() - 100);
  time += std::chrono::microseconds((much.size() - 100) / 500);  // 0.5 GB/s
  EXPECT_TRUE(gives_way());
  time += std::chrono::microseconds(1);
  EXPECT_FALSE(gives_way()) << "it is less than 0.5 GB/s";
}

TEST_F(SharedWireTest, DoesNotYieldToASlowPeer) {
  ASSERT_TRUE(client->reader().wait());
  const std::vector<std::byte> little(20'000);
  EXPECT_EQ(wire.send(ByteView(little).first(100), {}), 100U);
  EXPECT_EQ(wire.send(little, {}), little.size());
  time += std::chrono::microseconds(200);
  EXPECT_FALSE(gives_way()) << "it is less than 0.5 GB/s";
}

TEST_F(SharedWireTest, CountsBytesAndTimeFromTheLastWake) {
  const std::vector<std::byte> little(20'000);
  ASSERT_TRUE(client->reader().wait());
  EXPECT_EQ(wire.send(little, {}), little.size());
  time += std::chrono::milliseconds(1);
  EXPECT_FALSE(gives_way()) << "it has been woken a millisecond ago";
  EXPECT_EQ(client->reader().available(), little.size());
  static_cast<void>(client->reader().release(little.size()));
  ASSERT_TRUE(client->reader().wait());
  EXPECT_EQ(wire.send(ByteView(little).first(100), {}), 100U);
  EXPECT_EQ(wire.send(little, {}), little.size());
  time += std::chrono::microseconds(20'000 / 500);
  EXPECT_TRUE(gives_way());
}

TEST_F(SharedWireTest, KnowsWithoutACallThatTheClientHasWokenIt) {
  const std::vector<std::byte> some(100);
  EXPECT_FALSE(wire.take_woken()) << "it does not wait";
  ASSERT_TRUE(wire.wait_for_input());
  EXPECT_FALSE(wire.take_woken());
  client->writer().write(some);
  ASSERT_TRUE(client->writer().publish()) << "the client is to wake it";
  EXPECT_TRUE(wire.take_woken());
  EXPECT_FALSE(wire.take_woken()) << "once";

  const std::vector<std::byte> much(sizes.to_client);
  EXPECT_EQ(wire.send(much, {}), much.size());
  ASSERT_TRUE(wire.wait_for_room());
  EXPECT_FALSE(wire.take_woken());
  ASSERT_TRUE(client->reader().release(much.size()));
  EXPECT_TRUE(wire.take_woken()) << "there is space";
}

TEST_F(SharedWireTest, ReadsWakesBeforeTheSocketIsFullIncludingUnrequestedOnes) {
  EXPECT_TRUE(wire.should_read_wakes()) << "it has not asked";
  int unread = 0;
  for (int wakes = 0; wakes < 20; ++wakes) {
    ASSERT_TRUE(wire.wait_for_input());
    const std::byte one{};
    client->writer().write({&one, 1});
    ASSERT_TRUE(client->writer().publish());
    // With more or fewer sources the event loop asks first, or does not.
    if (wakes % 2 == 0) {
      EXPECT_TRUE(wire.take_woken());
    }
    unread = wire.should_read_wakes() ? 0 : unread + 1;
    EXPECT_LT(unread, 4);
    wire.release(1);
  }
  EXPECT_TRUE(wire.should_read_wakes());
}

TEST_F(SharedWireTest, CountsAWakeForInputAndOneForSpaceSeparately) {
  const std::vector<std::byte> much(sizes.to_client);
  const std::byte one{};
  int dispatches = 0;
  for (; dispatches < 2; ++dispatches) {
    ASSERT_EQ(wire.send(much, {}), much.size());
    ASSERT_TRUE(wire.wait_for_room());
    ASSERT_TRUE(wire.wait_for_input());
    client->writer().write({&one, 1});
    ASSERT_TRUE(client->writer().publish());
    ASSERT_TRUE(client->reader().release(much.size()));
    const bool read = wire.should_read_wakes();
    EXPECT_EQ(read, dispatches == 1) << "the fourth byte came with the second dispatch";
    wire.release(1);
  }
}

/// Returns true if `descriptor` is readable.
bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(SharedWakeTest, ADescriptorThatTheClientHasMadeBlockingDoesNotHoldItUp) {
  const SharedWake wake = SharedWake::by_descriptors().value_or_throw();
  const int of_client = wake.of_client();
  ASSERT_EQ(0, ::fcntl(of_client, F_SETFL, 0));
  const std::uint64_t full = UINT64_MAX - 1;
  static_cast<void>(::write(of_client, &full, sizeof full));
  EXPECT_FALSE(is_readable(of_client)) << "it has no count that the client could fill";
  for (int wakes = 0; wakes < 1000; ++wakes) wake.wake_client();
  std::uint64_t count = 0;
  EXPECT_EQ(static_cast<ssize_t>(sizeof count), ::read(of_client, &count, sizeof count));
  EXPECT_GT(count, 0U);
}

TEST(SharedWakeTest, ATimerThatTheClientHasSetStillWakesIt) {
  const SharedWake wake = SharedWake::by_descriptors().value_or_throw();
  const itimerspec in_a_year{{}, {365 * 24 * 3600, 0}};
  ASSERT_EQ(0, ::timerfd_settime(wake.of_client(), 0, &in_a_year, nullptr));
  wake.wake_client();
  pollfd entry{wake.of_client(), POLLIN, 0};
  EXPECT_EQ(1, ::poll(&entry, 1, 10'000));
}

TEST(SharedWakeTest, ASocketThatTheClientDoesNotReadDoesNotHoldItUp) {
  int pair[2];
  ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));  // blocking sockets
  const UniqueFd ours(pair[0]);
  const UniqueFd clients(pair[1]);
  const SharedWake wake = SharedWake::over(ours.get());
  EXPECT_EQ(-1, wake.of_broker());
  EXPECT_EQ(-1, wake.of_client());
  for (int wakes = 0; wakes < 20'000; ++wakes) wake.wake_client();  // more wakes than the socket buffers
  while (is_readable(clients.get())) ASSERT_TRUE(take_wakes(clients.get()));
  wake.wake_client();
  EXPECT_TRUE(is_readable(clients.get()));
}

/// Keeps the inode of a memory file locked until `let_go`. Its write waits for a page that the program must
/// provide first.
class InodeLock {
 public:
  explicit InodeLock(int descriptor) : descriptor_(::dup(descriptor)) {
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    page_ = static_cast<char*>(
        ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    uffdio_register wanted{};
    wanted.range = {reinterpret_cast<std::uintptr_t>(page_), page_bytes};
    wanted.mode = UFFDIO_REGISTER_MODE_MISSING;
    is_possible_ = faults_ >= 0 && ::ioctl(faults_, UFFDIO_API, &api) == 0 &&
                   ::ioctl(faults_, UFFDIO_REGISTER, &wanted) == 0;
    if (!is_possible_) return;
    writer_ = std::jthread([this] { static_cast<void>(::write(descriptor_, page_, 1)); });
    pollfd fault{faults_, POLLIN, 0};
    EXPECT_EQ(::poll(&fault, 1, 20'000), 1) << "the write has come to the page";
  }
  ~InodeLock() {
    let_go();
    if (writer_.joinable()) writer_.join();
    ::munmap(page_, page_bytes);
    ::close(faults_);
    ::close(descriptor_);
  }
  InodeLock(const InodeLock&) = delete;
  InodeLock& operator=(const InodeLock&) = delete;
  [[nodiscard]] bool is_possible() const { return is_possible_; }
  void let_go() const {
    if (!is_possible_) return;
    uffdio_zeropage page{};
    page.range = {reinterpret_cast<std::uintptr_t>(page_), page_bytes};
    static_cast<void>(::ioctl(faults_, UFFDIO_ZEROPAGE, &page));
  }

 private:
  static constexpr std::size_t page_bytes = 4096;
  const int descriptor_;
  const int faults_ = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  char* page_ = nullptr;
  bool is_possible_ = false;
  std::jthread writer_;
};

bool comes(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return condition();
}

TEST(SharedWireEnd, WaitsForNoLockOfTheClients) {
  constexpr session::SharedSizes sizes{65536, 65536};
  SharedMemory memory = SharedMemory::make(sizes.whole()).value_or_throw();
  const SharedMemory kept = SharedMemory::adopt(::dup(memory.descriptor()), sizes.whole()).value_or_throw();
  const InodeLock lock(memory.descriptor());
  if (!lock.is_possible()) GTEST_SKIP() << "this user may not provide pages (userfaultfd)";
  const std::span<std::byte> bytes = kept.bytes().last(sizes.to_client);
  std::ranges::fill(bytes, std::byte{7});
  auto place = std::make_shared<int>();
  const std::weak_ptr<int> counted = place;
  {
    const SharedWire wire(
        std::make_unique<session::SharedRings>(std::move(memory), sizes, session::SharedSide::broker),
        SharedWake::by_descriptors().value_or_throw(), std::move(place));
  }
  EXPECT_FALSE(counted.expired()) << "it counts until it is emptied";
  EXPECT_EQ(bytes.back(), std::byte{7});
  lock.let_go();
  EXPECT_TRUE(comes([&] { return counted.expired(); }));
  EXPECT_EQ(bytes.back(), std::byte{0});
}

}  // namespace
}  // namespace lightq::broker
