/// Tests that encoding a group's state may run out of memory anywhere: the state stays as it is, and nothing
/// leaks.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "delivery/snapshot/group_snapshot.hpp"
#include "log/saved_state/cursor_file.hpp"

namespace {
thread_local std::int64_t allocations_left = -1;  // fails when it is 0; negative: no limit
thread_local std::int64_t allocations_live = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  void* const made = std::malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  ++allocations_live;
  return made;
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  --allocations_live;
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  operator delete(memory);
}

namespace lightq::broker {
namespace {

/// Encodes the snapshot. Returns false if there was no memory for it.
bool encode_with(const GroupSnapshot& snapshot, std::int64_t allocations) {
  allocations_left = allocations;
  bool encoded = true;
  try {
    log::CursorFile::encode({{"group:g", snapshot.committed, snapshot.unfinished()}});
  } catch (const std::bad_alloc&) {
    encoded = false;
  }
  allocations_left = -1;
  return encoded;
}

GroupSnapshot snapshot_with(std::uint64_t waiting, std::uint64_t in_flight) {
  constexpr SteadyTime now{std::chrono::hours(1)};
  GroupSnapshot snapshot;
  snapshot.committed = {100};  // some messages are clipped
  snapshot.next = {30 * (waiting + in_flight)};
  for (std::uint64_t i = 0; i < waiting; ++i) {
    const OffsetRange range{{10 * i}, {10 * i + 1}};
    if (i % 5 == 0) {
      snapshot.waiting.add_delayed(range, 3, now + std::chrono::milliseconds(8 * (i % 7)));
    } else {
      snapshot.waiting.add(range, static_cast<std::uint32_t>(i % 9));
    }
  }
  for (std::uint64_t i = 0; i < in_flight; ++i) {
    const Offset at{10 * (i * 7 % in_flight) * (waiting / in_flight + 1) + 5};
    snapshot.in_flight.add({at, at + 2}, static_cast<std::uint32_t>(i % 6));
  }
  return snapshot;
}

TEST(LackOfMemory, EncodingFailsAndLeavesTheStateWhole) {
  for (const auto& snapshot : {snapshot_with(6000, 30), snapshot_with(30, 6000), snapshot_with(2000, 2000)}) {
    const log::Unfinished whole = snapshot.unfinished();
    std::int64_t allocations = 0;
    const std::int64_t live = allocations_live;
    for (; !encode_with(snapshot, allocations); allocations += 1 + allocations / 50)
      ASSERT_EQ(allocations_live, live) << "after " << allocations << " allocations";
    EXPECT_GT(allocations, 100);
    EXPECT_EQ(snapshot.unfinished(), whole);
  }
}

}  // namespace
}  // namespace lightq::broker
