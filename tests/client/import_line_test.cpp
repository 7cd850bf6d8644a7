/// Tests of the lines that `lightq import` reads.
#include "client/transfer/import_line.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lightq::cli {
namespace {

constexpr std::size_t bytes_max = 4096;

TEST(ImportLine, ReadsTextAndBase64) {
  const auto read = parse_import_line(
      R"({"offset":7,"time":"x","payload":"a\u0000b","key_base64":"/w==","producer_time_us":5,)"
      R"("headers":[{"name":"n","value":""},{"name_base64":"gA==","value_base64":"AAE="}]})",
      bytes_max);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->payload, std::string("a\0b", 3));
  EXPECT_EQ(read->key, "\xFF");
  const std::vector<std::pair<std::string, std::string>> headers = {{"n", ""},
                                                                    {"\x80", std::string("\0\1", 2)}};
  EXPECT_EQ(read->headers, headers);
  EXPECT_EQ(read->producer_time, Timestamp{5});
  EXPECT_EQ(parse_import_line(R"({"payload_base64":""})", bytes_max)->payload, "");
}

TEST(ImportLine, LeavesOutHeadersThatOnlyTheBrokerSets) {
  const auto read = parse_import_line(
      R"({"payload":"","headers":[{"name":"lightq-dead-cause","value":"expired"},{"name":"a","value":"b"}]})",
      bytes_max);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->dropped_headers, 1U);
  EXPECT_EQ(read->headers.size(), 1U);
}

TEST(ImportLine, RefusesEverythingElse) {
  for (const std::string text : {R"()",
                                 R"([])",
                                 R"("a")",
                                 R"({})",
                                 R"({"payload":1})",
                                 R"({"payload":null})",
                                 R"({"payload":"a")",
                                 R"({"payload":"a"}{"payload":"b"})",
                                 R"({"payload":"a","payload_base64":"YQ=="})",
                                 R"({"payload":"a","payload":"b"})",
                                 R"({"payload_base64":"Y"})",
                                 R"({"payload_base64":"YQ"})",
                                 R"({"payload_base64":"Y Q="})",
                                 "{\"payload\":\"\xFF\"}",
                                 R"({"payload":"\ud800"})",
                                 R"({"payload":"a","headers":{}})",
                                 R"({"payload":"a","headers":[1]})",
                                 R"({"payload":"a","headers":[{"name":"n"}]})",
                                 R"({"payload":"a","headers":[{"value":"v"}]})",
                                 R"({"payload":"a","headers":[{"name":"","value":"v"}]})",
                                 R"({"payload":"a","producer_time_us":-1})",
                                 R"({"payload":"a","producer_time_us":1e30})"}) {
    EXPECT_FALSE(parse_import_line(text, bytes_max).ok()) << text;
  }
  EXPECT_FALSE(parse_import_line(R"({"payload":")" + std::string(bytes_max, 'a') + "\"}", bytes_max).ok());
  EXPECT_FALSE(
      parse_import_line(R"({"payload":"","key":")" + std::string(1025, 'k') + "\"}", bytes_max).ok());
  EXPECT_FALSE(parse_import_line(std::string(2000, '['), bytes_max).ok()) << "it nests too deeply";
}

}  // namespace
}  // namespace lightq::cli
