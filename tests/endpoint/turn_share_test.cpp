/// Tests of how long the input of one connection makes others wait. They count frames in a turn of the loop,
/// and measure no times.
#include "admission/turn_share.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "endpoint/connection_harness.hpp"

namespace lightq::broker {
namespace {

using test::command;
using test::FakeOwner;
using test::FakePlainProducerHost;
using test::frame;
using test::opening;
using test::Wire;

/// Takes each byte of its input as a request of this cost.
class Costly final : public Connection {
 public:
  Costly(Wire& wire, Owner& owner, std::uint64_t cost)
      : Connection(wire.loop, std::move(wire.ours), owner, wire.scratch), cost_(cost) {}
  using Connection::share;
  bool takes_from_memory = false;
  std::string taken;
  std::map<std::uint64_t, std::size_t> taken_in_turn;

 protected:
  void on_open() override {}
  std::size_t consume(std::span<std::byte> bytes) override {
    std::size_t at = 0;
    while (at < bytes.size() && !input().turn_share().is_used_up()) take(bytes[at++]);
    return at;
  }
  std::size_t take_from(SharedWire& wire, std::size_t) override {
    std::byte next{};
    std::size_t bytes = 0;
    while (takes_from_memory && !input().turn_share().is_used_up() && wire.copy({&next, 1}) == 1) {
      take(next);
      wire.release(1);
      ++bytes;
    }
    return bytes;
  }

 private:
  void take(std::byte request) {
    taken.push_back(static_cast<char>(request));
    ++taken_in_turn[loop().turn()];
    TurnWork::add(cost_);
    static_cast<void>(input().turn_share().use_up());
  }
  const std::uint64_t cost_;
};

std::string numbered(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>('a' + i % 26));
  return bytes;
}

TEST(TurnShareTest, AConnectionsInputIsWorkedOffInSharesInOrderAndWithoutMoreOfIt) {
  constexpr std::size_t in_a_share = 8;
  Wire wire;
  FakeOwner owner;
  Costly connection(wire, owner, TurnShare::call_work_max / in_a_share + 1);
  ASSERT_TRUE(connection.start());
  const std::string all = numbered(1000);
  wire.send(all);
  ASSERT_TRUE(wire.run_until([&] { return connection.taken.size() == all.size(); }));
  EXPECT_EQ(connection.taken, all);
  // At most one share on receiving, and one by turns.
  for (const auto& [turn, taken] : connection.taken_in_turn) EXPECT_LE(taken, 2 * in_a_share) << turn;
}

class SharedTurnShareTest : public testing::TestWithParam<bool> {};

TEST_P(SharedTurnShareTest, BytesInSharedMemoryAreProcessedInTurnsWithoutAnotherWake) {
  constexpr std::size_t in_a_share = 8;
  constexpr session::SharedSizes sizes{4096, 4096};
  Wire wire;
  FakeOwner owner;
  Costly connection(wire, owner, TurnShare::call_work_max / in_a_share + 1);
  connection.takes_from_memory = GetParam();
  ASSERT_TRUE(connection.start());
  SharedMemory memory = SharedMemory::make(sizes.whole()).value_or_throw();
  SharedMemory same = SharedMemory::adopt(::dup(memory.descriptor()), sizes.whole()).value_or_throw();
  session::SharedRings client(std::move(same), sizes, session::SharedSide::client);
  const std::string all = numbered(1000);
  ASSERT_EQ(client.writer().write(as_byte_view(all)), all.size());
  static_cast<void>(client.writer().publish());
  connection.share(
      std::make_unique<session::SharedRings>(std::move(memory), sizes, session::SharedSide::broker),
      SharedWake::by_descriptors().value_or_throw(), {});
  ASSERT_TRUE(wire.run_until([&] { return connection.taken.size() == all.size(); }));
  EXPECT_EQ(connection.taken, all);
  for (const auto& [turn, taken] : connection.taken_in_turn) EXPECT_LE(taken, 2 * in_a_share) << turn;
}

INSTANTIATE_TEST_SUITE_P(TakenThereOrReceived, SharedTurnShareTest, testing::Bool());

TEST(TurnShareTest, TheEndAfterWaitingInputIsProcessedAfterIt) {
  Wire wire;
  FakeOwner owner;
  Costly connection(wire, owner, TurnShare::call_work_max);
  ASSERT_TRUE(connection.start());
  wire.send(numbered(100));
  wire.peer.reset();
  ASSERT_TRUE(wire.run_until([&] { return owner.closed; }));
  EXPECT_EQ(connection.taken, numbered(100));
}

TEST(TurnShareTest, ManyConnectionsTogetherTakeABoundedPartOfATurn) {
  constexpr std::size_t connections = 40;
  constexpr std::size_t requests = 50;
  Wire first;
  FakeOwner owner;
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<std::unique_ptr<Costly>> all;
  for (std::size_t i = 0; i < connections; ++i) {
    wires.push_back(std::make_unique<Wire>());
    first.ours = std::move(wires.back()->ours);
    all.push_back(std::make_unique<Costly>(first, owner, TurnShare::call_work_max));
    ASSERT_TRUE(all.back()->start());
    wires.back()->send(numbered(requests));
  }
  const auto is_done = [&] {
    return std::ranges::all_of(all, [](const auto& one) { return one->taken.size() == requests; });
  };
  ASSERT_TRUE(first.run_until(is_done));
  std::map<std::uint64_t, std::size_t> taken;
  for (const auto& one : all)
    for (const auto& [turn, count] : one->taken_in_turn) taken[turn] += count;
  constexpr auto most =
      (TurnShare::turn_work_hard_max + 2 * TurnShare::call_work_max) / TurnShare::call_work_max;
  for (const auto& [turn, count] : taken) EXPECT_LE(count, most) << "in turn " << turn;
}

TEST(TurnShareTest, APlainProducerTakesALimitedNumberOfFramesInATurn) {
  constexpr std::size_t messages = 100'000;  // two bytes each
  Wire wire;
  FakeOwner owner;
  FakePlainProducerHost host;
  std::map<std::uint64_t, std::size_t> seen;
  host.on_published = [&] { seen[wire.loop.turn()] = host.messages.size(); };
  PlainProducerConnection inlet(wire.loop, std::move(wire.ours), owner, wire.scratch, host);
  ASSERT_TRUE(inlet.start());
  wire.send(opening("PUSH"));
  ASSERT_TRUE(wire.run_until([&] { return owner.opened; }));
  std::string bytes;
  for (std::size_t i = 0; i < messages; ++i) bytes += frame("");
  std::size_t sent = 0;
  ASSERT_TRUE(wire.run_until([&] {
    const auto went = ::send(wire.peer.get(), bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT);
    if (went > 0) sent += static_cast<std::size_t>(went);
    return host.messages.size() == messages;
  }));
  constexpr std::size_t share = TurnShare::call_work_max / TurnWork::frame_taken + 1;
  std::size_t before = 0;
  for (const auto& [turn, count] : seen) {
    EXPECT_LE(count - before, 2 * share) << "in turn " << turn;
    before = count;
  }
}

}  // namespace
}  // namespace lightq::broker
