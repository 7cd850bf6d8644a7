/// Tests of the file that keeps the broker's ticket key.
#include "access/ticket_key_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace lightq::broker {
namespace {

using testing::HasSubstr;

class TicketKeyFile : public testing::Test {
 protected:
  void write(const std::string& text, mode_t mode) const {
    std::ofstream(file, std::ios::binary) << text;
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
  }
  [[nodiscard]] Error failure() const {
    auto opened = open_ticket_key(file);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error{} : opened.error();
  }

  lightq::test::TempDir directory;
  const std::filesystem::path file = directory / "ticket.key";
};

TEST_F(TicketKeyFile, IsCreatedOnceForItsOwnerOnly) {
  const Timestamp now{1'000'000};
  const auto first = open_ticket_key(file).value_or_throw();
  const auto ticket = first->issue({TopicId{1}, EndpointRole::sub}, std::chrono::hours(1), now);
  struct stat facts{};
  ASSERT_EQ(stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  EXPECT_EQ(facts.st_size, 32);
  const auto again = open_ticket_key(file).value_or_throw();
  EXPECT_TRUE(again->check(ticket.text().expose(), now).grant.has_value());

  std::filesystem::remove(file);
  const auto other = open_ticket_key(file).value_or_throw();
  EXPECT_FALSE(other->check(ticket.text().expose(), now).grant.has_value());
}

TEST_F(TicketKeyFile, IsRefusedIfItsLengthIsWrong) {
  for (const std::size_t bytes : {0U, 1U, 31U, 33U, 4096U}) {
    write(std::string(bytes, 'k'), 0600);
    const Error error = failure();
    EXPECT_EQ(error.code, ErrorCode::corrupt) << bytes;
    EXPECT_THAT(error.text(), HasSubstr("ticket.key is not a ticket key: it has " + std::to_string(bytes)));
  }
}

TEST_F(TicketKeyFile, IsRefusedIfOthersMayReadOrWriteIt) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    write(std::string(32, 'k'), mode);
    const Error error = failure();
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << mode;
    EXPECT_THAT(error.text(), HasSubstr("open to other users: its mode is 06"));
  }
  write(std::string(32, 'k'), 0600);
  EXPECT_TRUE(open_ticket_key(file).ok());
}

TEST_F(TicketKeyFile, ALinkIsRefused) {
  const auto elsewhere = directory / "elsewhere";
  std::ofstream(elsewhere) << std::string(32, 'k');
  std::filesystem::create_symlink(elsewhere, file);
  EXPECT_EQ(failure().code, ErrorCode::io_error);
}

}  // namespace
}  // namespace lightq::broker
