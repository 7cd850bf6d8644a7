/// Tests of the control requests that change a topic or move a group, as JSON.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include <lightq/protocol/json.hpp>

namespace lightq::protocol {
namespace {

TopicName changed_topic() {
  return TopicName::parse("t").value();
}

TEST(JsonChangeRequest, ReadsItsOwnOutputOnTopicSettings) {
  for (const Request& request :
       {Request(SetTopic{{"u", "q"}, changed_topic(), {.message_ttl_ms = 60'000}, false}),
        Request(SetTopic{{"a", "p"}, changed_topic(), {.message_ttl_ms = 0}, true}),
        Request(SetTopic{{"a", "p"},
                         changed_topic(),
                         {.overflow = Overflow::drop_oldest,
                          .capacity_bytes = 1 << 20,
                          .retention_bytes = 0,
                          .retention_ms = 7,
                          .retention_messages = 8,
                          .retention_over_pending = false},
                         true})}) {
    const auto parsed = parse_request(to_json(request));
    ASSERT_TRUE(parsed.request.ok()) << parsed.request.error().message;
    EXPECT_EQ(to_json(*parsed.request), to_json(request));
    EXPECT_EQ(parsed.cmd, "set_topic");
  }
  for (const char* const text :
       {R"({"cmd":"set_topic","topic":"t"})", R"({"cmd":"set_topic","topic":"t","message_ttl_ms":-1})",
        R"({"cmd":"set_topic","topic":"t","message_ttl_ms":315619200001})",
        R"({"cmd":"set_topic","message_ttl_ms":1})"}) {
    EXPECT_FALSE(parse_request(text).request.ok()) << text;
  }
}

TEST(JsonChangeRequest, SaysWhichSettingsOfATopicCannotChange) {
  for (const char* const member : {R"("ring_bytes":65536)", R"("segment_bytes":65536)", R"("open":true)",
                                   R"("broker_type":"file")", R"("encrypt_at_rest":false)"}) {
    const auto parsed =
        parse_request(R"({"cmd":"set_topic","topic":"t","retention_ms":1,)" + std::string(member) + "}");
    ASSERT_FALSE(parsed.request.ok()) << member;
    EXPECT_NE(parsed.request.error().message.find("cannot change"), std::string::npos);
  }
}

TEST(JsonChangeRequest, ReadsItsOwnOutputOnTheTraceOfAMessage) {
  for (const Request& request :
       {Request(Trace{{"u", "q"}, changed_topic(), 0, false}),
        Request(Trace{{"a", "p"}, changed_topic(), (std::uint64_t{1} << 63) - 1, true})}) {
    const auto parsed = parse_request(to_json(request));
    ASSERT_TRUE(parsed.request.ok()) << parsed.request.error().message;
    EXPECT_EQ(to_json(*parsed.request), to_json(request));
    EXPECT_EQ(parsed.cmd, "trace");
  }
  for (const char* const text :
       {R"({"cmd":"trace","topic":"t"})", R"({"cmd":"trace","topic":"t","offset":-1})",
        R"({"cmd":"trace","topic":"t","offset":9223372036854775808})",
        R"({"cmd":"trace","topic":"t","offset":"1"})", R"({"cmd":"trace","offset":1})"}) {
    EXPECT_FALSE(parse_request(text).request.ok()) << text;
  }
}

TEST(JsonChangeRequest, ReadsItsOwnOutputOnTheMoveOfAGroup) {
  using From = GroupPlace::From;
  for (const GroupPlace to : {GroupPlace{From::first}, GroupPlace{From::next}, GroupPlace{From::offset, 17},
                              GroupPlace{From::time, 5}}) {
    const Request request = SeekGroup{{"u", "q"}, changed_topic(), "g", to, to.from == From::next, false};
    const auto parsed = parse_request(to_json(request));
    ASSERT_TRUE(parsed.request.ok()) << parsed.request.error().message;
    EXPECT_EQ(to_json(*parsed.request), to_json(request));
    EXPECT_EQ(std::get<SeekGroup>(*parsed.request).to, to);
  }
  for (const char* const text : {R"({"cmd":"seek_group","topic":"t","group":"g"})",
                                 R"({"cmd":"seek_group","topic":"t","position":"first"})",
                                 R"({"cmd":"seek_group","topic":"t","group":"g","position":"last"})",
                                 R"({"cmd":"seek_group","topic":"t","group":"g","offset":-1})",
                                 R"({"cmd":"seek_group","topic":"t","group":"g","time_ms":1000000000000001})",
                                 R"({"cmd":"seek_group","topic":"t","group":"g","offset":1,"time_ms":1})"}) {
    EXPECT_FALSE(parse_request(text).request.ok()) << text;
  }
}

}  // namespace
}  // namespace lightq::protocol
