/// Tests that a new segment file is written in large pieces.
#include <gtest/gtest.h>

#include <cerrno>

#include "log/segment_log/segment_log.hpp"
#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using limits::KiB;
using test::FaultyStorage;

class NewFileTest : public test::LogFixture {
 protected:
  NewFileTest() {
    options.segment_bytes = limits::MiB;
    options.flush_interval_ms = 0;
    storage.on_write = [this](const std::string&, std::uint64_t position, std::size_t bytes) {
      written_to = std::max(written_to, position + bytes);
      ++writes;
    };
  }
  void append_bytes(std::size_t bytes) {
    ASSERT_EQ(append({std::string(bytes, 'x')}), AppendOutcome::appended);
  }
  [[nodiscard]] std::uint64_t end() const { return log->segments().active().end_position(); }

  std::uint64_t written_to = 0;  ///< the largest position in any file
  int writes = 0;
};

TEST_F(NewFileTest, TheLastPieceIsWrittenCompletely) {
  open();
  append_bytes(130 * KiB);
  EXPECT_EQ(256 * KiB, written_to);
  append_bytes(100 * KiB);
  ASSERT_LT(end(), 256 * KiB);
  EXPECT_EQ(256 * KiB, written_to);
  append_bytes(300 * KiB);
  EXPECT_EQ(640 * KiB, written_to);
  for (int i = 0; i < 4; ++i) append_bytes(100 * KiB);
  ASSERT_LT(900 * KiB, end());
  EXPECT_EQ(1024 * KiB, written_to) << "no further than the file is long";
  EXPECT_EQ(7U, test::read_everything(*log).size());
}

TEST_F(NewFileTest, EachPieceIsWrittenOnceBeforeItIsFilled) {
  open();
  append_bytes(256 * KiB);
  int more = 0;
  while (end() < 640 * KiB) {
    const int before = writes;
    append_bytes(1000);
    more += writes - before - 1;
  }
  EXPECT_EQ(3, more) << "one at 384, 512 and 640 KiB each";
}

TEST_F(NewFileTest, ALogOfAFewMessagesUsesLittleSpace) {
  open();
  append_bytes(100);
  EXPECT_EQ(end(), written_to);
  while (end() < 120 * KiB) {
    append_bytes(1000);
    ASSERT_LE(written_to, std::max<std::uint64_t>(16 * KiB, 2 * end()));
  }
}

TEST_F(NewFileTest, AUsedFileIsNot) {
  open();
  const auto lap = [&] {
    written_to = 0;
    append_bytes(700 * KiB);
    const std::uint64_t reached = written_to;
    log->drop_before(log->next_offset());
    while (work()) {
    }
    return reached;
  };
  EXPECT_EQ(768 * KiB, lap());
  for (int i = 0; i < 5; ++i) lap();
  EXPECT_EQ(segment_header_bytes + 700 * KiB, lap() / KiB * KiB);
}

TEST_F(NewFileTest, AFileThatWasFoundAtTheStartIsNotFilledAhead) {
  open();
  append_bytes(140 * KiB);
  open();
  written_to = 0;
  append_bytes(200 * KiB);
  EXPECT_EQ(end(), written_to);
}

TEST_F(NewFileTest, AFailureOfItFailsNothingElse) {
  open();
  append_bytes(100 * KiB);
  storage.on_call = [first = true](FaultyStorage::Call call, const std::string&) mutable {
    const bool fails = call == FaultyStorage::Call::write && std::exchange(first, false);
    return FaultyStorage::Fault{fails ? EIO : 0, 0};
  };
  append_bytes(100 * KiB);
  EXPECT_EQ(end(), written_to);
  append_bytes(10 * KiB);
  EXPECT_EQ(3U, test::read_everything(*log).size());
}

}  // namespace
}  // namespace lightq::log
