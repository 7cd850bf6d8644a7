/// Tests that the cost of finding an offset in a log counts as work of the turn.
#include "delivery/offset_search.hpp"

#include <gtest/gtest.h>

#include "admission/turn_work.hpp"
#include "support/log_fixture.hpp"

namespace lightq::broker {
namespace {

class OffsetSearch : public lightq::test::LogFixture {};

TEST_F(OffsetSearch, CountsTheSegmentsBeforeATime) {
  constexpr std::uint64_t batches = 100;
  options.segment_bytes = limits::segment_bytes_min;
  open();
  std::int64_t time = now.us;
  for (std::uint64_t i = 0; i < batches; ++i) {
    auto batch = lightq::test::make_batch_of(limits::segment_bytes_min / 2);
    ASSERT_EQ(log->append(batch, {++time}).outcome, log::AppendOutcome::appended);
  }
  const std::uint64_t before = TurnWork::bytes();
  const Offset found =
      offset_of({StartPosition::From::time, static_cast<std::uint64_t>(time)}, *log).value_or_throw();
  EXPECT_EQ(found, Offset{batches - 1});
  EXPECT_GE(TurnWork::bytes() - before, batches / 2 * TurnWork::segment_passed);
}

}  // namespace
}  // namespace lightq::broker
