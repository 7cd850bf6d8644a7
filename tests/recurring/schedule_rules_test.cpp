/// Tests of recurring/schedule_rules: settings that a schedule may not have.
#include "recurring/schedule_rules.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "recurring/firing_times.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using protocol::MissedFirings;
using protocol::ScheduleSettings;

ScheduleSettings sound() {
  return {.cron = "0 9 * * MON-FRI", .zone = "Europe/Berlin", .payload = "go"};
}

TEST(ScheduleRules, SoundSettingsArePermitted) {
  for (const BrokerType type : {BrokerType::queue, BrokerType::file, BrokerType::queue_file})
    EXPECT_TRUE(check_schedule(sound(), type));
  ScheduleSettings once = sound();
  once.missed = MissedFirings::once;
  EXPECT_TRUE(check_schedule(once, BrokerType::file));
  EXPECT_TRUE(check_schedule(once, BrokerType::queue_file));
}

TEST(ScheduleRules, MessagesMayHaveATimeToLive) {
  const auto checked = [](std::vector<protocol::ScheduleHeader> headers) {
    ScheduleSettings settings = sound();
    settings.headers = std::move(headers);
    return check_schedule(settings, BrokerType::file);
  };
  EXPECT_TRUE(checked({{"lightq-ttl-ms", "60000"}, {"kind", "report"}}));
  for (const char* const wrong : {"", "0", "1m", "315619200001"})
    EXPECT_EQ(checked({{"lightq-ttl-ms", wrong}}).error().code, ErrorCode::invalid_request) << wrong;
  EXPECT_EQ(checked({{"lightq-ttl-ms", "1"}, {"lightq-ttl-ms", "1"}}).error().code,
            ErrorCode::invalid_request);
  EXPECT_EQ(checked({{"lightq-ttl-s", "1"}}).error().code, ErrorCode::invalid_request) << "reserved";
}

TEST(ScheduleRules, TheIdsOfTheMessagesKeepTheirLimit) {
  const std::string longest(98, 's');
  EXPECT_TRUE(check_schedule_name(longest));
  EXPECT_EQ(firing_id(longest, {1'700'000'000'000'000}).size(), limits::message_id_bytes_max);
  const auto refused = check_schedule_name(longest + "s");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::too_large);
}

TEST(ScheduleRules, OthersAreRefusedWithAReason) {
  struct Case {
    std::function<void(ScheduleSettings&)> change;
    BrokerType type;
    ErrorCode code;
    std::string complaint;
  };
  const std::vector<Case> cases = {
      {[](auto& each) { each.cron = "0 9 * *"; }, BrokerType::file, ErrorCode::invalid_request, "five"},
      {[](auto& each) { each.zone = "Mars/Base"; }, BrokerType::file, ErrorCode::invalid_request, "zone"},
      {[](auto&) {}, BrokerType::direct, ErrorCode::not_supported, "direct"},
      {[](auto& each) { each.missed = MissedFirings::once; }, BrokerType::queue, ErrorCode::not_supported,
       "once needs a topic on disk"},
      {[](auto& each) { each.headers = {{"lightq-id", "x"}}; }, BrokerType::file, ErrorCode::invalid_request,
       "reserved"},
      {[](auto& each) { each.headers.assign(limits::headers_max, {"a", "b"}); }, BrokerType::file,
       ErrorCode::too_large, "because the broker adds one"},
      {[](auto& each) { each.headers = {{"", "b"}}; }, BrokerType::file, ErrorCode::invalid_argument,
       "without a name"}};
  for (const Case& each : cases) {
    ScheduleSettings settings = sound();
    each.change(settings);
    const auto checked = check_schedule(settings, each.type);
    ASSERT_FALSE(checked) << each.complaint;
    EXPECT_EQ(checked.error().code, each.code);
    EXPECT_THAT(checked.error().message, testing::HasSubstr(each.complaint));
  }
}

}  // namespace
}  // namespace lightq::broker
