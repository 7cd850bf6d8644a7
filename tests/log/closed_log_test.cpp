/// Tests the writes and syncs of closing a log, and that nothing is written if nothing has changed.
#include <gtest/gtest.h>

#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;
using test::read_everything;

class ClosedLogTest : public test::LogFixture {
 protected:
  ClosedLogTest() { options.segment_bytes = limits::segment_bytes_min; }
  /// Resets `asked`. From now on it counts the storage calls.
  void count() {
    asked = 0;
    storage.on_call = [this](FaultyStorage::Call call, const std::string&) {
      using Call = FaultyStorage::Call;
      asked += call != Call::read && call != Call::open && call != Call::map ? 1 : 0;
      return FaultyStorage::Fault{};
    };
  }
  void close() {
    const auto closed = log->close();
    ASSERT_TRUE(closed.ok()) << closed.error().text();
  }
  void cut_power() {
    log.reset();
    storage.on_call = nullptr;
    storage.power_cut([] { return false; });
    open();
  }
  int asked = 0;
};

class ClosedLogWaysTest : public ClosedLogTest, public testing::WithParamInterface<bool> {
 protected:
  ClosedLogWaysTest() { options.mapped_writes = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Writing, ClosedLogWaysTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "mapped" : "written"; });

TEST_P(ClosedLogWaysTest, AnUnchangedLogIsNotWrittenAgain) {
  open();
  ASSERT_EQ(append({"a"}), AppendOutcome::appended);
  close();
  for (int times = 0; times < 3; ++times) {
    count();
    open();
    EXPECT_TRUE(log->recovery().closed_for_good);
    EXPECT_EQ(read_everything(*log).size(), 1U);
    close();
    EXPECT_EQ(asked, 0);
  }
  cut_power();
  EXPECT_TRUE(log->recovery().closed);
  EXPECT_EQ(log->next_offset(), Offset{1});
}

TEST_F(ClosedLogTest, AMarkThatMayBeInMemoryOnlyIsMadeDurableByTheNextClose) {
  options.mapped_writes = false;  // a store into a mapping cannot fail, and the test needs a call that fails
  open();
  ASSERT_EQ(append({"a"}), AppendOutcome::appended);
  ASSERT_TRUE(log->flush().ok());
  storage.on_call = [](FaultyStorage::Call call, const std::string&) {
    return FaultyStorage::Fault{call == FaultyStorage::Call::sync ? EIO : 0};
  };
  EXPECT_FALSE(log->close().ok());  // as if the process had been killed before the sync
  storage.on_call = nullptr;
  open();
  EXPECT_TRUE(log->recovery().closed);
  EXPECT_FALSE(log->recovery().closed_for_good);
  count();
  close();
  EXPECT_GT(asked, 0);
  cut_power();
  EXPECT_TRUE(log->recovery().closed);
}

TEST_P(ClosedLogWaysTest, ALogThatContinuesIsNotMarkedClosedAfterAnyPowerCut) {
  for (const bool survives : {false, true}) {
    open();
    ASSERT_EQ(append({"a"}), AppendOutcome::appended);
    close();
    open();
    EXPECT_TRUE(log->recovery().closed_for_good);
    ASSERT_EQ(append({"b"}), AppendOutcome::appended);
    log.reset();
    storage.power_cut([&] { return survives; });
    open();
    EXPECT_FALSE(log->recovery().closed);
    EXPECT_FALSE(log->recovery().closed_for_good);
    close();
  }
}

}  // namespace
}  // namespace lightq::log
