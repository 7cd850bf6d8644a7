/// Tests the owner of a log directory: the log of another topic is neither opened nor changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/log_fixture.hpp"

namespace lightq::log {
namespace {

using test::read_everything;
using testing::HasSubstr;

constexpr std::uint32_t ours = 0x1234ABCD;
constexpr std::uint32_t theirs = 0x00C0FFEE;

class LogOwnerTest : public test::LogFixture {
 protected:
  void begin_as(std::uint32_t id) {
    options.expected = {id, nullptr};
    open();
    append({"a", "b"});
    log.reset();
  }
  Error refused() {
    log.reset();
    const auto opened = SegmentLog::open(options, storage, *pool, now);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error{} : opened.error();
  }
  std::map<std::string, std::vector<std::byte>> everything() {
    std::map<std::string, std::vector<std::byte>> found;
    for (const auto& path : storage.paths()) found[path] = storage.bytes_of(path);
    return found;
  }
};

TEST_F(LogOwnerTest, ANewLogRecordsItsOwner) {
  begin_as(ours);
  open();
  EXPECT_EQ(log_id_of(log->incarnation()), ours);
  EXPECT_NE(log->incarnation() & 0xFFFFFFFF, 0U) << "and tells its lives apart";
  EXPECT_EQ(read_everything(*log).size(), 2U);
}

TEST_F(LogOwnerTest, AnotherTopicsLogIsNotOpenedAndNotChanged) {
  begin_as(theirs);
  const ExpectedLog::Names names = {{theirs, "payments"}};
  options.expected = {ours, &names};
  const auto before = everything();
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_THAT(error.message,
              HasSubstr("belongs to another topic: its files are of log 00c0ffee, that of topic "
                        "payments, but log 1234abcd is expected here"));
  EXPECT_EQ(everything(), before);
}

TEST_F(LogOwnerTest, RemainsOfACrashStayToo) {
  begin_as(theirs);
  auto torn = storage.bytes_of(segment_path(0));
  const auto left = storage.open(options.directory + "/roll" + prepared_suffix, OpenMode::create);
  ASSERT_TRUE(left.ok());
  ASSERT_TRUE(write_all(**left, torn, 0).ok());
  const auto last = storage.open(segment_path(0), OpenMode::read_write);
  ASSERT_TRUE(last.ok());
  ASSERT_TRUE(write_all(**last, std::vector<std::byte>(100, std::byte{7}), torn.size() - 100).ok());
  options.expected = {ours, nullptr};
  const auto before = everything();
  EXPECT_THAT(refused().message, testing::Not(HasSubstr("that of topic")));
  EXPECT_EQ(everything(), before);
}

TEST_F(LogOwnerTest, WithoutAnExpectedOwnerEveryLogOpens) {
  begin_as(theirs);
  options.expected = {};
  open();
  EXPECT_EQ(log_id_of(log->incarnation()), theirs);
}

}  // namespace
}  // namespace lightq::log
