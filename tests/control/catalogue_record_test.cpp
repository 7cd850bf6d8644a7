/// Tests of the records of the catalogue, as text.
#include "control/catalogue/catalogue_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "control/catalogue/catalogue_state.hpp"

namespace lightq::broker {
namespace {

using testing::HasSubstr;

/// Broker 0.1.0 wrote these records before raw consumers existed.
TEST(CatalogueRecord, AnEndpointWithoutAConnectionTypeIsZeroMq) {
  const std::string old =
      R"({"op":"endpoint","id":7,"topic_id":3,"role":"pull","transport":"tcp","port":5002})";
  const auto change = decode_change(old);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(std::get<EndpointPut>(*change).endpoint.connection_type, protocol::ConnectionType::zmq);
  EXPECT_EQ(encode(*change), old);
}

TEST(CatalogueRecord, ARawConsumersEndpointKeepsItsType) {
  const EndpointPut raw{
      {7, TopicId{3}, EndpointRole::pull, protocol::Transport::tcp, 5002, protocol::ConnectionType::socket}};
  const std::string text =
      R"({"op":"endpoint","id":7,"topic_id":3,"role":"pull","transport":"tcp","port":5002,"connection_type":"socket"})";
  EXPECT_EQ(encode(raw), text);
  const auto change = decode_change(text);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(std::get<EndpointPut>(*change).endpoint.connection_type, protocol::ConnectionType::socket);
}

TEST(CatalogueRecord, SettingsOfGroupsAreOptionalForAnOlderBroker) {
  const protocol::GroupSettings settings{.max_attempts = 5, .backoff_ms = {1000}, .processing_timeout_ms = 0};
  const GroupPut put{{3}, "g", settings};
  const std::string text =
      R"({"op":"group","id":3,"group":"g","optional":true,"max_attempts":5,"backoff_ms":[1000],"processing_timeout_ms":0})";
  EXPECT_EQ(encode(put), text);
  const auto change = decode_change(text);
  ASSERT_TRUE(change.ok()) << change.error().text();
  EXPECT_EQ(std::get<GroupPut>(*change).setup, put.setup);
  const GroupPut aimed{{3}, "g", {{.dead_letter_topic = "dead"}, {8}}};
  const std::string with_target =
      R"({"op":"group","id":3,"group":"g","optional":true,"dead_letter_topic":"dead","dead_letter_topic_id":8})";
  EXPECT_EQ(encode(aimed), with_target);
  EXPECT_EQ(std::get<GroupPut>(*decode_change(with_target)).setup, aimed.setup);
  EXPECT_EQ(encode(GroupRemoved{{3}, "g"}), R"({"op":"group_removed","id":3,"group":"g","optional":true})");
}

TEST(CatalogueRecord, SchedulesAreOptionalForAnOlderBroker) {
  const SchedulePut put{{3},
                        "n",
                        {.settings = {.cron = "0 9 * * *", .zone = "Europe/Berlin", .payload = "go"},
                         .incarnation = 77,
                         .since = {1'795'000'000'000'000}}};
  const std::string text =
      R"({"op":"schedule","id":3,"name":"n","optional":true,"incarnation":77,"since_us":1795000000000000,)"
      R"("cron":"0 9 * * *","zone":"Europe/Berlin","missed":"skip","payload":"go"})";
  EXPECT_EQ(encode(put), text);
  const auto change = decode_change(text);
  ASSERT_TRUE(change.ok()) << change.error().text();
  EXPECT_EQ(std::get<SchedulePut>(*change).schedule, put.schedule);
  SchedulePut other = put;
  other.schedule.paused = true;
  other.schedule.settings.missed = protocol::MissedFirings::once;
  other.schedule.settings.key = "k";
  other.schedule.settings.headers = {{"a", "b"}};
  other.schedule.settings.payload = std::string("\0\xff", 2);
  const auto again = decode_change(encode(other));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(std::get<SchedulePut>(*again).schedule, other.schedule);
  EXPECT_EQ(encode(ScheduleRemoved{{3}, "n"}),
            R"({"op":"schedule_removed","id":3,"name":"n","optional":true})");
}

TEST(CatalogueRecord, ALongScheduleIsReadAgain) {
  SchedulePut put{
      {UINT64_MAX >> 1},
      std::string(limits::topic_name_bytes_max, 'n'),
      {.settings = {.cron = "* * * * *", .zone = std::string(64, 'Z')}, .incarnation = UINT64_MAX >> 1}};
  put.schedule.settings.cron.append(256 - put.schedule.settings.cron.size(), ' ');
  put.schedule.settings.key = std::string(limits::key_bytes_max, '\x01');
  put.schedule.settings.headers = {{std::string(128, '\x01'), std::string(896, '\x01')}};
  put.schedule.since = {INT64_MAX};
  for (const char each : {'"', '\n', '\x01', '\xff'}) {
    put.schedule.settings.payload = std::string(limits::schedule_payload_bytes_max, each);
    const auto change = decode_change(encode(put));
    ASSERT_TRUE(change.ok()) << change.error().text();
    EXPECT_EQ(std::get<SchedulePut>(*change).schedule, put.schedule);
  }
}

TEST(CatalogueRecord, ReportsInvalidRecords) {
  for (const char* text :
       {"", "{", "[]", R"({"op":5})", R"({"op":"format","version":"x"})",
        R"({"op":"topic","id":0,"topic":"t"})", R"({"op":"group","id":1,"group":"a b"})",
        R"({"op":"schedule","id":1,"name":"n","cron":"* * * * *"})", R"({"op":"schedule_removed","id":1})",
        R"({"op":"schedule","id":1,"name":"n","incarnation":5})",
        R"({"op":"group","id":1,"group":"g","max_attempts":-1})", R"({"op":"group_removed","id":1})",
        R"({"op":"topic","id":1,"topic":"../x","broker_type":"queue"})",
        R"({"op":"endpoint","id":1,"topic_id":1,"role":"king","port":1})",
        R"({"op":"endpoint","id":1,"topic_id":1,"role":"sub","port":70000})",
        R"({"op":"endpoint","id":1,"topic_id":1,"role":"pull","port":1,"connection_type":"pipe"})",
        R"({"op":"endpoint","id":1,"topic_id":1,"role":"sub","port":1,"connection_type":"socket"})"}) {
    const auto change = decode_change(text);
    ASSERT_FALSE(change.ok()) << text;
    EXPECT_EQ(change.error().code, ErrorCode::corrupt) << text;
    EXPECT_THAT(change.error().message, HasSubstr("catalogue record")) << text;
  }
}

// A newer broker applies them in their order: the last one holds.
TEST(CatalogueRecord, OptionalChangesThatAreNotKnownKeepTheirOrder) {
  const std::string first = R"({"op":"quota","optional":true,"most":1})";
  const std::string second = R"({"op":"quota","optional":true,"most":2})";
  CatalogueState state;
  for (const std::string& text : {first, second, first}) state.apply(decode_change(text).value());
  CatalogueState compacted;
  for (const CatalogueChange& change : state.snapshot())
    compacted.apply(decode_change(encode(change)).value());
  for (const CatalogueState* const each : {&state, &compacted}) {
    std::vector<std::string> unknown;
    for (const CatalogueChange& change : each->snapshot()) {
      if (const auto* const kept = std::get_if<UnknownChange>(&change)) unknown.push_back(kept->text);
    }
    EXPECT_EQ(unknown, (std::vector<std::string>{second, first}));
  }
}

}  // namespace
}  // namespace lightq::broker
