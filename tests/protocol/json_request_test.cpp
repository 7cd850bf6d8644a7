/// Tests of control requests as JSON: impl/protocol/json_request.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_scan.hpp>

namespace lightq::protocol {
namespace {

using testing::HasSubstr;
using testing::Not;

TopicName topic(std::string_view text) {
  return TopicName::parse(text).value();
}

const std::string stats_all = R"({"cmd":"stats_all","admin_user_id":"a","admin_password":"p")";
const std::string create =
    R"({"cmd":"create_topic","admin_user_id":"root","admin_password":"adminpw","topic":"test","broker_type":"queue","user_id":"u","password":"userpw")";
const std::string join =
    R"({"cmd":"join","connection_type":"zmq","type":"pull","topic":"test","user_id":"u","password":"userpw")";

template <typename T>
T good(const std::string& text) {
  auto parsed = parse_request(text);
  EXPECT_TRUE(parsed.request.ok()) << (parsed.request.ok() ? "" : parsed.request.error().message);
  return std::get<T>(parsed.request.value());
}

TEST(JsonRequest, ReadsTheDocumentsOf2015) {
  const auto created = good<CreateTopic>(create + "}");
  EXPECT_EQ(created.admin.user_id, "root");
  EXPECT_EQ(created.admin.password, "adminpw");
  EXPECT_EQ(created.user.user_id, "u");
  EXPECT_EQ(created.user.password, "userpw");
  EXPECT_EQ(created.settings, TopicSettings{});
  const auto joined = good<Join>(join + "}");
  EXPECT_EQ(joined.type, JoinType::pull);
  EXPECT_FALSE(joined.as_admin);
  EXPECT_EQ(good<Stats>(R"({"cmd":"stats","topic":"test","user_id":"u","password":"p"})").topic,
            topic("test"));
}

TEST(JsonRequest, ConnectionTypeDefaultsToZmq) {
  const auto joined = good<Join>(R"({"cmd":"join","type":"sub","topic":"t","user_id":"u","password":"p"})");
  EXPECT_EQ(joined.connection_type, ConnectionType::zmq);
  EXPECT_EQ(joined.transport, Transport::tcp);
  EXPECT_EQ(joined.delivery, Delivery::plain);
}

TEST(JsonRequest, AcceptsTheAdminsCredentialsForATopic) {
  const auto stats = good<Stats>(R"({"cmd":"stats","topic":"t","admin_user_id":"a","admin_password":"p"})");
  EXPECT_TRUE(stats.as_admin);
  EXPECT_EQ(stats.user.user_id, "a");
}

TEST(JsonRequest, IgnoresFieldsItDoesNotKnow) {
  const auto joined = good<Join>(join + R"(,"future":{"deep":[1,2]},"x":1.5})");
  EXPECT_EQ(joined.topic.text(), good<Join>(join + "}").topic.text());
}

/// Checks that the request is read from its own text.
void expect_read(const Request& request) {
  const auto text = to_json(request);
  const auto parsed = parse_request(text);
  ASSERT_TRUE(parsed.request.ok()) << text << ": " << parsed.request.error().message;
  EXPECT_EQ(parsed.cmd, command_of(request));
  EXPECT_EQ(parsed.request.value().index(), request.index());
  EXPECT_EQ(to_json(parsed.request.value()), text);
}

TEST(JsonRequest, ReadsItsOwnOutputOnSchedules) {
  const ScheduleSettings full{.cron = "0 9 * * MON-FRI",
                              .zone = "Europe/Berlin",
                              .missed = MissedFirings::once,
                              .key = "k",
                              .headers = {{"kind", "report"}, {"empty", ""}},
                              .payload = "go"};
  const std::vector<Request> requests = {
      SetSchedule{{"u", "q"}, topic("t"), "n", full, false},
      SetSchedule{{"a", "p"}, topic("t"), "n", {.cron = "* * * * *", .payload = {}}, true},
      SetSchedule{
          {"a", "p"}, topic("t"), "n", {.cron = "* * * * *", .payload = std::string("\0\xff", 2)}, true},
      ListSchedules{.user = {"u", "q"}, .topic = topic("t")},
      ListSchedules{.user = {"u", "q"}, .topic = topic("t"), .name = "n", .limit = 1, .times = 100},
      ListSchedules{.user = {"a", "p"}, .after = "t/n", .limit = 1000, .as_admin = true},
      PauseSchedule{{"u", "q"}, topic("t"), "n", false},
      ResumeSchedule{{"a", "p"}, topic("t"), "n", true},
      RemoveSchedule{{"u", "q"}, topic("t"), "n", false}};
  for (const auto& request : requests) expect_read(request);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto read = parse_request(to_json(requests[i])).request;
    EXPECT_EQ(std::get<SetSchedule>(*read).settings, std::get<SetSchedule>(requests[i]).settings);
  }
}

TEST(JsonRequest, ALongPayloadOfAnyBytesIsWithinTheLengthOfARequest) {
  for (const char each : {'x', '"', '\n', '\x01', '\xff'}) {
    const SetSchedule request{
        {"u", "q"},
        topic("t"),
        "n",
        {.cron = "* * * * *", .payload = std::string(limits::schedule_payload_bytes_max, each)},
        false};
    const auto read = parse_request(to_json(request)).request;
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(std::get<SetSchedule>(*read).settings, request.settings);
  }
}

TEST(JsonRequest, ReadsItsOwnOutputOnGroups) {
  const std::vector<Request> requests = {
      SetGroup{{"u", "q"}, topic("t"), "g", {.max_attempts = 5}, false},
      SetGroup{{"a", "p"},
               topic("t"),
               "g",
               {.max_attempts = 0,
                .backoff_ms = {{1000, 60'000}},
                .dead_letter_topic = "d",
                .dead_waiting_max = 1,
                .processing_timeout_ms = 7,
                .pause_when_failing = false,
                .dead_letter_expired = true},
               true},
      SetGroup{{"u", "q"},
               topic("t"),
               "g",
               {.backoff_ms = std::vector<std::uint32_t>(),
                .dead_letter_topic = "",
                .default_processing_timeout = true},
               false},
      ListDead{{"u", "q"}, topic("t"), "g"},
      ListDead{
          {"a", "p"},
          topic("t"),
          "",
          {.state = DeadState::dead_waiting, .cause = DeadCause::expired, .ranges = {{{1}, {2}}, {{5}, {9}}}},
          0,
          1000,
          true},
      RetryDead{{"u", "q"}, topic("t"), "g", {.cause = DeadCause::rejected}, true, false},
      RetryDead{{"u", "q"},
                topic("t"),
                "g",
                {.failed_since_ms = 0, .failed_until_ms = DeadFilter::time_ms_max, .key = ""},
                true,
                false},
      ListDead{{"u", "q"},
               topic("t"),
               "g",
               {.failed_since_ms = 1'795'000'000'000, .key = std::string(limits::key_bytes_max, 'k')}},
      PurgeDead{{"u", "q"}, topic("t"), "g", {.cause = DeadCause::attempts}, false, false}};
  for (const auto& request : requests) expect_read(request);
}

TEST(JsonRequest, ReadsItsOwnOutputAboutDelayedMessages) {
  const DelayedFilter filter{.due_from = Timestamp{0},
                             .due_until = Timestamp{5},
                             .id = "order 7",
                             .numbers = {{{1}, {2}}, {{5}, {9}}}};
  const std::vector<Request> requests = {
      ListDelayed{{"u", "q"}, topic("t")},
      ListDelayed{{"a", "p"}, topic("t"), filter, DelayedPlace{{1'800'000'000'000'000}, 17}, 1000, true},
      ListDelayed{{"a", "p"}, topic("t"), {}, {}, 1, true, DelayedPage::payload_bytes_max},
      CancelDelayed{{"u", "q"}, topic("t"), filter, true},
      CancelDelayed{{"u", "q"}, topic("t")},
      HurryDelayed{{"a", "p"}, topic("t"), {.numbers = {{{0}, {1}}}}, false, true},
      RescheduleDelayed{{"u", "q"}, topic("t"), {.id = "i"}, 1'800'000'000'000'000},
      RescheduleDelayed{{"u", "q"}, topic("t"), filter, -limits::delay_us_max, true},
      RescheduleDelayed{{"u", "q"}, topic("t"), {}, 0},
      Purge{{"u", "q"}, topic("t"), "", false, true}};
  for (const auto& request : requests) expect_read(request);
}

TEST(JsonRequest, KnowsWhichSettingsOfANewTopicAreGiven) {
  const std::string text =
      R"({"cmd":"create_topic","admin_user_id":"a","admin_password":"p","topic":"t","overflow":"block","retention_ms":5})";
  const auto read = parse_request(text).request;
  ASSERT_TRUE(read.ok()) << read.error().text();
  const auto& asked = std::get<CreateTopic>(*read);
  ASSERT_TRUE(asked.given);
  EXPECT_TRUE(asked.given->has("overflow") && asked.given->has("retention_ms"));
  EXPECT_FALSE(asked.given->has("broker_type") || asked.given->has("open"));
  EXPECT_EQ(to_json(*read), text) << "a default that is given is written";
}

TEST(JsonRequest, ReadsItsOwnOutput) {
  const TopicSettings settings{
      BrokerType::queue_file, 1 << 20, Overflow::drop_oldest, 1, 2, 3, 4, 1 << 20, true};
  const std::vector<Request> requests = {
      CreateTopic{{"a", "p"}, topic("t"), settings, {"u", "q"}},
      CreateTopic{{"a", "p"}, topic("t"), {}, {}},
      DeleteTopic{{"a", "p"}, topic("t")},
      ListTopics{{"a", "p"}},
      ListTopics{{"a", "p"}, true},
      ListTopics{{"a", "p"}, true, topic("t")},
      Join{{"u", "q"}, topic("t"), JoinType::sub, ConnectionType::socket, Transport::ipc, false},
      Join{{"a", "p"}, topic("t"), JoinType::pub, ConnectionType::zmq, Transport::tcp, true},
      Join{{"u", "q"},
           topic("t"),
           JoinType::pull,
           ConnectionType::socket,
           Transport::tcp,
           false,
           Delivery::session},
      Join{{"u", "q"},
           topic("t"),
           JoinType::pull,
           ConnectionType::zmq,
           Transport::tcp,
           false,
           Delivery::plain,
           curve_key_of_z85("HelloWorldHelloWorldHelloWorldHelloWorld")},
      Leave{{"u", "q"}, topic("t"), "tcp://h:1", false},
      Stats{{"a", "p"}, std::nullopt, true},
      Stats{{"u", "q"}, topic("t"), false},
      StatsAll{{"a", "p"}},
      StatsAll{{"a", "p"}, topic("t"), 7},
      DeleteGroup{{"u", "q"}, topic("t"), "default", false},
      Pause{{"u", "q"}, topic("t"), "g", false},
      Resume{{"a", "p"}, topic("t"), "", true},
      Purge{{}, topic("t"), "", false},
      Ping{},
      Version{}};
  for (const auto& request : requests) expect_read(request);
  const auto parsed = parse_request(to_json(requests.front()));
  EXPECT_EQ(std::get<CreateTopic>(parsed.request.value()).settings, settings);
}

struct Hostile {
  std::string text;
  ErrorCode code;
  std::string says;  ///< a part of the error text
};

void PrintTo(const Hostile& hostile, std::ostream* out) {
  *out << hostile.text.substr(0, 100);
}

class HostileRequest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileRequest, IsRefusedWithoutQuotingSecrets) {
  const auto parsed = parse_request(GetParam().text);
  ASSERT_FALSE(parsed.request.ok());
  EXPECT_EQ(to_word(parsed.request.error().code), to_word(GetParam().code)) << parsed.request.error().message;
  EXPECT_THAT(parsed.request.error().message, HasSubstr(GetParam().says));
  EXPECT_THAT(parsed.request.error().message, Not(HasSubstr("userpw")));
  EXPECT_THAT(parsed.request.error().message, Not(HasSubstr("adminpw")));
}

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

constexpr auto invalid_json = ErrorCode::invalid_json;
constexpr auto invalid_cmd = ErrorCode::invalid_cmd;
constexpr auto invalid_request = ErrorCode::invalid_request;

INSTANTIATE_TEST_SUITE_P(
    Documents, HostileRequest,
    testing::Values(
        Hostile{"", invalid_json, "empty"}, Hostile{"{", invalid_json, ""}, Hostile{"ping", invalid_json, ""},
        Hostile{std::string("\0", 1), invalid_json, ""}, Hostile{"{\"cmd\":\"\xff\"}", invalid_json, ""},
        Hostile{R"({"cmd":"ping","x":1e999})", invalid_json, ""},
        Hostile{R"({"cmd":"ping"} x)", invalid_json, ""}, Hostile{R"({"cmd":"\ud800"})", invalid_json, ""},
        Hostile{nested(30'000), invalid_json, "16"}, Hostile{std::string(60'000, '['), invalid_json, "16"},
        Hostile{R"({"cmd":"ping","x":)" + nested(16) + "}", invalid_json, "16"},
        Hostile{std::string(65'537, ' '), ErrorCode::request_too_large, "65536"},
        Hostile{"{}", invalid_cmd, "invalid_cmd"}, Hostile{"[]", invalid_cmd, "invalid_cmd"},
        Hostile{"5", invalid_cmd, ""}, Hostile{R"({"cmd":5})", invalid_cmd, "invalid_cmd"},
        Hostile{R"({"cmd":null})", invalid_cmd, ""},
        Hostile{R"({"cmd":"dance"})", invalid_cmd, "invalid_cmd"},
        Hostile{R"({"cmd":"ping\u0000"})", invalid_cmd, ""},
        Hostile{R"({"cmd":"ping","cmd":"version"})", invalid_request, "cmd: given more than once"},
        Hostile{
            R"({"cmd":"create_user","user_id":"u","password":"p","rights":[{"topic":"safe","rights":["consume"],)"
            R"("topic":"*","rights":["manage"]}]})",
            invalid_request, "topic: given more than once"},
        Hostile{R"({"cmd":"ping","more":{"deep":[{"x":{"y":1,"y":2}}]}})", invalid_request,
                "y: given more than once"},
        Hostile{join + R"(,"password":"userpw"})", invalid_request, "password: given more than once"}));

INSTANTIATE_TEST_SUITE_P(
    Fields, HostileRequest,
    testing::Values(
        Hostile{R"({"cmd":"join","type":"pull","user_id":"u","password":"p"})", invalid_request,
                "topic: missing"},
        Hostile{R"({"cmd":"join","topic":"t","user_id":"u","password":"p"})", invalid_request,
                "type: missing"},
        Hostile{R"({"cmd":"join","type":"pull","topic":"t","user_id":"u"})", invalid_request,
                "password: missing"},
        Hostile{R"({"cmd":"join","type":"pull","topic":"t","user_id":5,"password":"p"})", invalid_request,
                "user_id"},
        Hostile{R"({"cmd":"join","type":"pull","topic":"t","user_id":"u","password":["userpw"]})",
                invalid_request, "password: must be"},
        Hostile{R"({"cmd":"join","type":"pull","topic":"t","user_id":"u","password":"userpw\u0000"})",
                invalid_request, "password: must be"},
        Hostile{R"({"cmd":"join","type":"Pull","topic":"t","user_id":"u","password":"p"})", invalid_request,
                "type: must be one of pub, push, pull, sub"},
        Hostile{R"({"cmd":"join","type":"pull","topic":"../x","user_id":"u","password":"p"})",
                invalid_request, "topic:"},
        Hostile{R"({"cmd":"join","type":"pull","topic":"","user_id":"u","password":"p"})", invalid_request,
                "topic:"},
        Hostile{R"({"cmd":"leave","topic":"t","user_id":"u","password":"p"})", invalid_request,
                "bind_uri: missing"},
        Hostile{R"({"cmd":"stats","user_id":"u","password":"p"})", invalid_request, "topic: missing"},
        Hostile{R"({"cmd":"list_topics"})", invalid_request, "admin_user_id: missing"},
        Hostile{R"({"cmd":"stats_all"})", invalid_request, "admin_user_id: missing"},
        Hostile{stats_all + R"(,"after":"a b"})", invalid_request, "after"},
        Hostile{R"({"cmd":"list_topics","admin_user_id":"a","admin_password":"p","after":"t"})",
                invalid_request, "after: only with groups"},
        Hostile{stats_all + R"(,"after":""})", invalid_request, "after"},
        Hostile{stats_all + R"(,"topics_max":0})", invalid_request,
                "topics_max: must be a whole number from 1 to 1024"},
        Hostile{stats_all + R"(,"topics_max":1025})", invalid_request, "topics_max"},
        Hostile{stats_all + R"(,"topics_max":"7"})", invalid_request, "topics_max"},
        Hostile{create + R"(,"ring_bytes":1})", invalid_request,
                "ring_bytes: must be a whole number from 65536 to"},
        Hostile{create + R"(,"ring_bytes":-1048576})", invalid_request, "ring_bytes"},
        Hostile{create + R"(,"ring_bytes":1048576.0})", invalid_request, "ring_bytes"},
        Hostile{create + R"(,"ring_bytes":18446744073709617152})", invalid_request, "ring_bytes"},
        Hostile{create + R"(,"ring_bytes":"1048576"})", invalid_request, "ring_bytes"},
        Hostile{create + R"(,"ring_bytes":null})", invalid_request, "ring_bytes"},
        Hostile{create + R"(,"open":1})", invalid_request, "open: must be true or false"},
        Hostile{create + R"(,"overflow":"explode"})", invalid_request, "overflow: must be one of"},
        Hostile{create + R"(,"retention_ms":5})", invalid_request, "retention_ms: only for"},
        Hostile{create + R"(,"encrypt_at_rest":true})", invalid_request, "encrypt_at_rest: only for"},
        Hostile{create + R"(,"encrypt_at_rest":1})", invalid_request,
                "encrypt_at_rest: must be true or false"},
        Hostile{
            R"({"cmd":"create_topic","admin_user_id":"a","admin_password":"p","topic":"t","broker_type":"file","ring_bytes":1048576})",
            invalid_request, "ring_bytes: only for"},
        Hostile{
            R"({"cmd":"create_topic","admin_user_id":"a","admin_password":"p","topic":"t","broker_type":"direct","overflow":"block"})",
            invalid_request, "overflow: only for"},
        Hostile{
            R"({"cmd":"create_topic","admin_user_id":"a","admin_password":"p","topic":"t","broker_type":null})",
            invalid_request, "broker_type: must be one of"}));

const std::string set_group = R"({"cmd":"set_group","topic":"t","group":"g")";
const std::string set_schedule = R"({"cmd":"set_schedule","topic":"t","name":"n")";
const std::string of_rule = set_schedule + R"(,"cron":"* * * * *")";
const std::string retry_dead = R"({"cmd":"retry_dead","topic":"t","group":"g")";

INSTANTIATE_TEST_SUITE_P(
    Groups, HostileRequest,
    testing::Values(
        Hostile{set_schedule + "}", invalid_request, "cron: missing"},
        Hostile{R"({"cmd":"set_schedule","topic":"t","cron":"* * * * *"})", invalid_request, "name: missing"},
        Hostile{set_schedule + R"(,"cron":""})", invalid_request, "cron: must be a text of 1 to 256 bytes"},
        Hostile{of_rule + R"(,"zone":""})", invalid_request, "zone: must be a text of 1 to 64 bytes"},
        Hostile{of_rule + R"(,"missed":"twice"})", invalid_request, "missed: must be one of skip, once"},
        Hostile{of_rule + R"(,"payload":1})", invalid_request, "payload"},
        Hostile{of_rule + R"(,"payload":"a","payload_base64":"YQ=="})", invalid_request, "one of payload"},
        Hostile{of_rule + R"(,"payload_base64":"YQ="})", invalid_request, "payload_base64: must be base64"},
        Hostile{of_rule + R"(,"payload_base64":"YR=="})", invalid_request, "payload_base64: must be base64"},
        Hostile{
            of_rule + R"(,"payload":")" + std::string(limits::schedule_payload_bytes_max + 1, 'x') + "\"}",
            invalid_request, "payload: must be a text of at most 32768 bytes"},
        Hostile{of_rule + R"(,"key":")" + std::string(1025, 'k') + "\"}", invalid_request, "key"},
        Hostile{of_rule + R"(,"headers":{}})", invalid_request, "headers"},
        Hostile{of_rule + R"(,"headers":[{"name":""}]})", invalid_request, "headers.name"},
        Hostile{of_rule + R"(,"headers":[{"name":"a","value":")" + std::string(2048, 'v') + "\"}]}",
                invalid_request, "key and headers must have at most 2048 bytes"},
        Hostile{R"({"cmd":"list_schedules","name":"n"})", invalid_request, "name: needs topic"},
        Hostile{R"({"cmd":"list_schedules","topic":"t","times":2})", invalid_request, "times"},
        Hostile{R"({"cmd":"list_schedules","limit":0})", invalid_request, "limit"},
        Hostile{R"({"cmd":"pause_schedule","topic":"t"})", invalid_request, "name: missing"},
        Hostile{set_group + "}", invalid_request, "missing"},
        Hostile{R"({"cmd":"set_group","topic":"t","max_attempts":1})", invalid_request, "group: missing"},
        Hostile{set_group + R"(,"max_attempts":-1})", invalid_request, "from 0 to 1000000"},
        Hostile{set_group + R"(,"max_attempts":1000001})", invalid_request, "max_attempts"},
        Hostile{set_group + R"(,"max_attempts":null})", invalid_request, "max_attempts"},
        Hostile{set_group + R"(,"backoff_ms":5})", invalid_request,
                "backoff_ms: must be a list of at most 16"},
        Hostile{set_group + R"(,"backoff_ms":[1,"2"]})", invalid_request, "backoff_ms"},
        Hostile{set_group + R"(,"backoff_ms":[4294967296]})", invalid_request, "backoff_ms"},
        Hostile{set_group + R"(,"backoff_ms":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]})", invalid_request, "16"},
        Hostile{set_group + R"(,"dead_letter_topic":"a b"})", invalid_request, "dead_letter_topic"},
        Hostile{set_group + R"(,"dead_letter_topic":null})", invalid_request, "dead_letter_topic"},
        Hostile{set_group + R"(,"dead_waiting_max":0})", invalid_request, "dead_waiting_max"},
        Hostile{set_group + R"(,"processing_timeout_ms":"5"})", invalid_request, "processing_timeout_ms"},
        Hostile{set_group + R"(,"pause_when_failing":1})", invalid_request, "true or false"},
        Hostile{retry_dead + R"(,"offsets":[]})", invalid_request, "offsets: must not be empty"},
        Hostile{retry_dead + R"(,"offsets":[-1]})", invalid_request, "offsets"},
        Hostile{retry_dead + R"(,"ranges":[]})", invalid_request, "ranges: must not be empty"},
        Hostile{retry_dead + R"(,"ranges":[[1]]})", invalid_request, "pairs"},
        Hostile{retry_dead + R"(,"ranges":[[2,2]]})", invalid_request, "begin < end"},
        Hostile{retry_dead + R"(,"ranges":[1,2]})", invalid_request, "ranges"},
        Hostile{retry_dead + R"(,"cause":"age"})", invalid_request, "cause: must be one of"},
        Hostile{retry_dead + R"(,"state":"gone"})", invalid_request, "state: must be one of"},
        Hostile{retry_dead + R"(,"failed_since_ms":-1})", invalid_request, "failed_since_ms"},
        Hostile{retry_dead + R"(,"failed_since_ms":1.5})", invalid_request, "failed_since_ms"},
        Hostile{retry_dead + R"(,"failed_until_ms":"2026-11-22T04:00:00Z"})", invalid_request,
                "failed_until_ms"},
        Hostile{retry_dead + R"(,"failed_until_ms":1000000000000001})", invalid_request, "failed_until_ms"},
        Hostile{retry_dead + R"(,"key":5})", invalid_request, "key: must be a text"},
        Hostile{retry_dead + R"(,"key":")" + std::string(1025, 'k') + R"("})", invalid_request, "1024"},
        Hostile{retry_dead + R"(,"preview":"yes"})", invalid_request, "preview"},
        Hostile{retry_dead + R"(,"limit":10})", invalid_request, "limit: only for list_dead"},
        Hostile{R"({"cmd":"purge_dead","topic":"t","after_offset":10})", invalid_request,
                "after_offset: only for list_dead"},
        Hostile{R"({"cmd":"list_dead","group":"g"})", invalid_request, "topic: missing"},
        Hostile{R"({"cmd":"list_dead","topic":"t","limit":0})", invalid_request, "from 1 to 1000"},
        Hostile{R"({"cmd":"list_dead","topic":"t","limit":1001})", invalid_request, "limit"},
        Hostile{R"({"cmd":"list_dead","topic":"t","after_offset":-1})", invalid_request, "after_offset"}));

TEST(JsonRequest, JoinsOffsetsAndRangesOfDeadMessages) {
  const auto asked =
      good<RetryDead>(retry_dead + R"(,"offsets":[9,3,4,7],"ranges":[[20,30],[8,9],[25,40]]})");
  const std::vector<OffsetRange> joined = {{{3}, {5}}, {{7}, {10}}, {{20}, {40}}};
  EXPECT_EQ(asked.filter.ranges, joined);
  EXPECT_FALSE(asked.preview);
}

const std::string cancel_delayed = R"({"cmd":"cancel_delayed","topic":"t")";
const std::string reschedule_delayed = R"({"cmd":"reschedule_delayed","topic":"t","id":"i")";

INSTANTIATE_TEST_SUITE_P(
    DelayedMessages, HostileRequest,
    testing::Values(
        Hostile{cancel_delayed + R"(,"numbers":[]})", invalid_request, "numbers: must not be empty"},
        Hostile{cancel_delayed + R"(,"numbers":["1"]})", invalid_request, "numbers"},
        Hostile{cancel_delayed + R"(,"ranges":[[2,1]]})", invalid_request, "begin < end"},
        Hostile{cancel_delayed + R"(,"id":""})", invalid_request, "id: must be a text of 1 to 128"},
        Hostile{cancel_delayed + R"(,"id":")" + std::string(129, 'i') + R"("})", invalid_request, "128"},
        Hostile{cancel_delayed + R"(,"due_from_us":-1})", invalid_request, "due_from_us"},
        Hostile{cancel_delayed + R"(,"due_until_us":9223372036854775808})", invalid_request, "due_until_us"},
        Hostile{cancel_delayed + R"(,"preview":1})", invalid_request, "preview"},
        Hostile{cancel_delayed + R"(,"limit":5})", invalid_request, "limit: only for list_delayed"},
        Hostile{R"({"cmd":"hurry_delayed"})", invalid_request, "topic: missing"},
        Hostile{reschedule_delayed + "}", invalid_request, "either deliver_at_us or delay_us"},
        Hostile{reschedule_delayed + R"(,"deliver_at_us":1,"delay_us":1})", invalid_request, "either"},
        Hostile{reschedule_delayed + R"(,"delay_us":-1})", invalid_request, "delay_us"},
        Hostile{reschedule_delayed + R"(,"delay_us":315619200000001})", invalid_request, "delay_us"},
        Hostile{reschedule_delayed + R"(,"deliver_at_us":"tomorrow"})", invalid_request, "deliver_at_us"},
        Hostile{R"({"cmd":"list_delayed","topic":"t","after_due_us":5})", invalid_request,
                "after_number: missing"},
        Hostile{R"({"cmd":"list_delayed","topic":"t","after_number":5})", invalid_request,
                "after_due_us: missing"},
        Hostile{R"({"cmd":"list_delayed","topic":"t","limit":1001})", invalid_request, "limit"},
        Hostile{R"({"cmd":"list_delayed","topic":"t","payload_bytes":32769})", invalid_request,
                "payload_bytes"},
        Hostile{cancel_delayed + R"(,"payload_bytes":5})", invalid_request,
                "payload_bytes: only for list_delayed"},
        Hostile{R"({"cmd":"purge","topic":"t","group":"g","delayed":true})", invalid_request,
                "not with a group"},
        Hostile{R"({"cmd":"purge","topic":"t","delayed":"all"})", invalid_request, "delayed"}));

TEST(JsonRequest, KeepsSingleNumbersOfDelayedMessagesApart) {
  const auto asked =
      good<CancelDelayed>(cancel_delayed + R"(,"numbers":[9,3,4,4,25],"ranges":[[20,30],[25,40],[5,6]]})");
  const std::vector<OffsetRange> numbers = {{{3}, {4}}, {{4}, {5}}, {{5}, {6}}, {{9}, {10}}, {{20}, {40}}};
  EXPECT_EQ(asked.filter.numbers, numbers);
}

TEST(JsonRequest, EchoesTheCommandOfAnInvalidRequest) {
  EXPECT_EQ(parse_request(R"({"cmd":"join"})").cmd, "join");
  EXPECT_EQ(parse_request(R"({"cmd":"dance"})").cmd, "dance");
  EXPECT_EQ(parse_request(R"({"cmd":")" + std::string(60'000, 'x') + R"("})").cmd, "");
}

TEST(JsonScan, FindsTheCommandInFrontWithoutParsing) {
  using detail::command_in_front;
  EXPECT_EQ(command_in_front(R"({"cmd":"ping"})"), "ping");
  EXPECT_EQ(command_in_front(R"( { "a" : "cmd", "b\"":{"cmd":"no"},"c":[{"cmd":"no"}], "cmd" :
                                "list_topics" , nonsense)"),
            "list_topics");
  for (const char* none : {"", "{", R"({"cmd)", R"({"cmd")", R"({"cmd":)", R"({"cmd":1})", R"({"cmd":"ping)",
                           R"({"cmd":"pi\u006eg"})", R"({"cmd":"PING"})", R"(["cmd")",
                           R"({"x":{"cmd":"ping"}})", "{\"cmd\":\"p\xff\"}", R"("\)"})
    EXPECT_EQ(command_in_front(none), "") << none;
  const auto behind = [](std::size_t bytes) {
    return R"({"x":")" + std::string(bytes, '{') + R"(","cmd":"ping"})";
  };
  EXPECT_EQ(command_in_front(behind(1000)), "ping");
  EXPECT_EQ(command_in_front(behind(1024)), "");
}

TEST(JsonRequest, AcceptsNestingUpToTheLimitAndBracketsInTexts) {
  EXPECT_TRUE(parse_request(R"({"cmd":"ping","x":)" + nested(15) + "}").request.ok());
  EXPECT_TRUE(parse_request(R"({"cmd":"ping","x":"\")" + std::string(1000, '[') + R"("})").request.ok());
  EXPECT_TRUE(parse_request(std::string(R"({"cmd":"ping"})") + std::string(65'536 - 14, ' ')).request.ok());
}

}  // namespace
}  // namespace lightq::protocol
