/// A connection's bytes through memory that its peer shares.
#include "broker/endpoint/shared_wire.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <memory>
#include <vector>

#include "support/counted_yields.hpp"

namespace lightq::broker {
namespace {

class SharedWireTest : public ::testing::Test {
 protected:
  static constexpr session::SharedSizes sizes{4096, 65536};

  static std::unique_ptr<session::SharedRings> rings_in(SharedMemory memory, session::SharedSide side) {
    return std::make_unique<session::SharedRings>(std::move(memory), sizes, side);
  }
  static WakeEvents events() {
    return {WakeEvent::make().value_or_throw(), WakeEvent::make().value_or_throw()};
  }
  /// Whether the wire gives way.
  bool gives_way() {
    const int before = lightq::test::yields;
    wire.give_way();
    return lightq::test::yields > before;
  }

  SharedMemory memory = SharedMemory::make(sizes.whole()).value_or_throw();
  SharedMemory of_client = SharedMemory::adopt(::dup(memory.descriptor()), sizes.whole()).value_or_throw();
  std::unique_ptr<session::SharedRings> client = rings_in(std::move(of_client), session::SharedSide::client);
  SharedWire wire{rings_in(std::move(memory), session::SharedSide::broker), events()};
};

TEST_F(SharedWireTest, GivesWayToWhoItHasJustWokenForMuch) {
  const std::vector<std::byte> much(sizes.to_client);
  EXPECT_FALSE(gives_way()) << "nobody was woken";
  // Where something else has this processor meanwhile it takes longer than the wire allows: then once more.
  bool gave_way = false;
  for (int attempt = 0; attempt < 1000 && !gave_way; ++attempt) {
    ASSERT_TRUE(client->reader().wait());
    EXPECT_EQ(wire.send(ByteView(much).first(100), {}), 100U);
    EXPECT_EQ(wire.send(much, {}), much.size() - 100);
    ASSERT_TRUE(wire.wait_for_room());
    gave_way = gives_way();
    EXPECT_EQ(client->reader().available(), much.size());
    static_cast<void>(client->reader().release(much.size()));
  }
  EXPECT_TRUE(gave_way);
}

TEST_F(SharedWireTest, DoesNotGiveWayToWhoIsSlow) {
  ASSERT_TRUE(client->reader().wait());
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::byte> little(20'000);
  EXPECT_EQ(wire.send(ByteView(little).first(100), {}), 100U);
  EXPECT_EQ(wire.send(little, {}), little.size());
  while (std::chrono::steady_clock::now() < begin + std::chrono::microseconds(200)) continue;
  EXPECT_FALSE(gives_way()) << "it is less than 0.5 GB/s";
}

}  // namespace
}  // namespace lightq::broker
