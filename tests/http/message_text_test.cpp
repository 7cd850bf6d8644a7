/// Tests of messages as JSON, and back.
#include "http/messages/message_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/limits.hpp>

#include "support/message_lines.hpp"

namespace lightq::broker {

namespace {

using ::testing::HasSubstr;

/// Returns the messages in the form `key|time|headers|payload`.
std::vector<std::string> shown(MessagesToPublish& messages) {
  std::vector<std::string> all;
  for (BatchBuilder& batch : messages.batches) {
    const BatchView view = BatchView::trusted(batch.finish().data());
    for (auto record = view.records(); !record.done(); record.next()) {
      const AttributesView attributes = record.attributes();
      std::string text = std::string(attributes.key()) + "|" + std::to_string(attributes.time().us) + "|";
      for (const Header header : attributes.headers())
        text += std::string(header.name) + "=" + std::string(header.value) + ";";
      all.push_back(text + "|" + std::string(as_text(record.payload())));
    }
  }
  return all;
}

std::vector<std::string> shown(Result<MessagesToPublish> messages) {
  if (!messages) return {messages.error().message};
  return shown(*messages);
}

HttpRequest request_with(const std::vector<std::pair<std::string, std::string>>& fields) {
  HttpRequest request;
  request.body = "p";
  request.fields = fields;
  return request;
}

TEST(MessageText, TakesAttributesFromHeaders) {
  const auto request =
      request_with({{"key", "k"}, {"id", "i"}, {"ttl", "5"}, {"time", "7"}, {"header-colour", "red"}});
  EXPECT_EQ(shown(message_of_request(request)),
            std::vector<std::string>{"k|7|lightq-id=i;lightq-ttl-ms=5;colour=red;|p"});
  EXPECT_EQ(shown(message_of_request(request_with({}))), std::vector<std::string>{"|0||p"});
}

TEST(MessageText, ADelayOrATimeIsForTheSchedule) {
  const auto delayed = message_of_request(request_with({{"delay", "5000"}, {"id", "i"}}));
  ASSERT_TRUE(delayed);
  EXPECT_TRUE(delayed->are_delayed);
  EXPECT_EQ(delayed->request_id, "i");
  EXPECT_FALSE(message_of_request(request_with({}))->are_delayed);
  EXPECT_FALSE(message_of_request(request_with({{"delay", "1"}, {"at", "1"}}))) << "one of both";
  auto lines = messages_of_lines("{\"delay_ms\":5}\n{\"at_us\":7}\n");
  ASSERT_TRUE(lines);
  EXPECT_TRUE(lines->are_delayed);
  const BatchView view = BatchView::trusted(lines->batches.at(0).finish().data());
  auto record = view.records();
  EXPECT_EQ(record.attributes().due(), -5000);
  record.next();
  EXPECT_EQ(record.attributes().due(), 7);
  EXPECT_THAT(messages_of_lines("{\"delay_ms\":5}\n{}\n").error().message, HasSubstr("all messages"));
  EXPECT_FALSE(messages_of_lines("{\"delay_ms\":315619200001}"));
}

TEST(MessageText, RefusesWrongHeaders) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"ttl", "0"},
                                                                                    {"ttl", "x"},
                                                                                    {"ttl", "-1"},
                                                                                    {"time", "1e3"},
                                                                                    {"nothing", ""},
                                                                                    {"delay", "0"},
                                                                                    {"delay", "1s"},
                                                                                    {"at", "0"}})
    EXPECT_FALSE(message_of_request(request_with({{name, value}}))) << name << value;
  EXPECT_THAT(message_of_request(request_with({{"header-lightq-dead-x", "1"}})).error().message,
              HasSubstr("only the broker"));
}

TEST(MessageText, RefusesAttributesThatAreGivenTwice) {
  for (const char* name : {"key", "id", "ttl", "time"})
    EXPECT_THAT(message_of_request(request_with({{name, "1"}, {name, "2"}})).error().message,
                HasSubstr("more than once"))
        << name;
  EXPECT_EQ(shown(message_of_request(request_with({{"header-a", "1"}, {"header-a", "2"}}))),
            std::vector<std::string>{"|0|a=1;a=2;|p"});
}

TEST(MessageText, ReadsLines) {
  const std::string text =
      "{\"payload\":\"a\"}\r\n\n{\"key_base64\":\"/w==\",\"time_us\":3,\"headers\":[{\"name\":\"n\",\"value_"
      "base64\":"
      "\"AA==\"}]}";
  const std::vector<std::string> expected = {"|0||a", "\xff|3|n=" + std::string(1, '\0') + ";|"};
  EXPECT_EQ(shown(messages_of_lines(text)), expected);
}

TEST(MessageText, NamesTheWrongLine) {
  for (const char* const line : {"[]", "1", "{\"a\":1}", "{\"payload\":[]}", "{\"payload_base64\":\"a\"}",
                                 "{\"ttl_ms\":\"1\"}", "{\"headers\":[{\"value\":\"v\"}]}", "{", "\xff"})
    EXPECT_THAT(messages_of_lines("{\"payload\":\"a\"}\n" + std::string(line)).error().message,
                HasSubstr("line 2: "))
        << line;
  EXPECT_FALSE(messages_of_lines(""));
  EXPECT_FALSE(messages_of_lines("\n\n"));
}

TEST(MessageText, PacksLongContentsInSeveralBatches) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "{\"payload\":\"" + std::string(1000, 'x') + "\"}\n";
  auto messages = messages_of_lines(text).value_or_throw();
  EXPECT_GT(messages.batches.size(), 3U);
  EXPECT_EQ(messages.longest_bytes, 1000U);
  EXPECT_EQ(shown(messages).size(), 100U);
}

ReceivedMessage received(std::string payload) {
  ReceivedMessage message;
  message.offset = {7};
  message.payload = std::move(payload);
  return message;
}

std::string text_of_message(const ReceivedMessage& message) {
  std::string text;
  append_message(message, text);
  return text;
}

TEST(MessageText, WritesTextOrBase64) {
  EXPECT_EQ(text_of_message(received("a\"\\\n\xc3\xbc")),
            "{\"offset\":7,\"delivery\":1,\"stored_us\":0,\"payload\":\"a\\\"\\\\\\n\xc3\xbc\"}");
  EXPECT_THAT(text_of_message(received("\xff")), HasSubstr("\"payload_base64\":\"/w==\""));
  EXPECT_THAT(text_of_message(received("\x1b")), HasSubstr("\"payload_base64\":\"Gw==\""));
  EXPECT_THAT(text_of_message(received("\x7f")), HasSubstr("payload_base64"));
}

TEST(MessageText, WritesLeases) {
  Leased leased;
  leased.lost = 2;
  EXPECT_EQ(text_of(leased, ""), "{\"lost\":2,\"messages\":[]}\n");
  leased.messages = {received("a"), received("b")};
  EXPECT_THAT(text_of(leased, "4f"), HasSubstr("{\"lease\":\"4f\",\"lost\":2,\"messages\":[{"));
}

TEST(MessageText, ReadsRanges) {
  EXPECT_EQ(text_of(ranges_of("3,5-9,10,12").value_or_throw()), "[[3,3],[5,10],[12,12]]");
  EXPECT_EQ(text_of(std::vector<OffsetRange>()), "[]");
  for (const char* const text : {"", ",", "1,", "2,1", "3-2", "1,1", "-1", "1-", "x", " 1", "1-2-3",
                                 "18446744073709551615", "9223372036854775807"})
    EXPECT_FALSE(ranges_of(text)) << text;
  std::string many = "0";
  for (int i = 1; i < 1025; ++i) many += "," + std::to_string(2 * i);
  EXPECT_FALSE(ranges_of(many));
}

/// Returns the number of steps in which the lines are read and packed.
std::size_t steps_of(std::string text) {
  MessageLines lines(std::move(text));
  std::size_t steps = 1;
  while (!lines.work()) ++steps;
  EXPECT_TRUE(lines.take().ok());
  return steps;
}

TEST(MessageLines, AStepHasABoundedNumberOfLines) {
  const std::size_t count = 5 * MessageLines::lines_at_once;
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "{}\n";
  EXPECT_GE(steps_of(text), 2 * count / MessageLines::lines_at_once) << "each line is read, then packed";
  EXPECT_GE(steps_of(std::string(count, '\n') + "{}"), count / MessageLines::lines_at_once)
      << "empty lines count";
}

TEST(MessageLines, AStepHasABoundedNumberOfBytes) {
  const std::string line = "{\"payload\":\"" + std::string(MessageLines::bytes_at_once, 'a') + "\"}\n";
  EXPECT_GE(steps_of(line + line + line), 6U);
  EXPECT_LE(steps_of("{}\n{}\n"), 1U) << "few lines need one step";
}

TEST(MessageLines, AFaultEndsTheWork) {
  std::string text = "{}\n[]\n";
  for (std::size_t i = 0; i < 5 * MessageLines::lines_at_once; ++i) text += "{}\n";
  MessageLines lines(std::move(text));
  while (!lines.work()) ADD_FAILURE() << "lines after a fault were read";
  EXPECT_EQ(lines.take().error().message, "line 2: not an object");
}

}  // namespace

}  // namespace lightq::broker
