/// Tests of control replies as JSON: impl/protocol/json_reply.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <lightq/protocol/json.hpp>

namespace lightq::protocol {
namespace {

using testing::HasSubstr;

const TopicName topic = TopicName::parse("test").value();
const Request join = Join{{"u", "p"}, topic, JoinType::pull};
const Request topic_stats = Stats{{"u", "p"}, topic};
const Request broker_stats = Stats{{"a", "p"}, std::nullopt, true};

TopicStats full_topic_stats() {
  TopicStats stats;
  std::uint64_t next = 1;
  visit_fields(stats, [&](const char*, auto& value) {
    using T = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::uint64_t>) value = next++;
  });
  stats.topic = "test";
  stats.topic_type = BrokerType::queue_file;
  stats.messages_received = ~std::uint64_t{0};
  stats.blocked_by = "group:default";
  GroupStats& group = stats.groups.emplace_back();
  next = 1;
  visit_fields(group, [&](const char*, auto& value) {
    using T = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::uint64_t>) value = next++;
  });
  group.group = "default";
  group.mode = "own";
  group.paused = true;
  group.paused_by = "failing";
  group.blocked_by = "disk: no descriptor";
  group.settings = {.max_attempts = 5,
                    .backoff_ms = {1000, 60'000},
                    .dead_letter_topic = "dead",
                    .dead_waiting_max = 7,
                    .processing_timeout_ms = 0,
                    .pause_when_failing = true,
                    .dead_letter_expired = true};
  stats.subscribers.push_back({"tcp://h:1", true, 1, 2, 3, 4, 9, {}});
  stats.subscribers.push_back({"tcp://h:2", false, 5, 6, 7, 8, 0, "disk: no memory"});
  return stats;
}

/// Writes a reply, reads it, and writes it again.
void expect_read_again(const Request& asked, const Reply& reply) {
  const auto text = to_json(reply);
  const auto read = parse_reply(asked, text);
  ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
  EXPECT_EQ(read.value().index(), reply.index()) << text;
  EXPECT_EQ(to_json(read.value()), text);
  const bool error = std::holds_alternative<ErrorReply>(reply);
  EXPECT_THAT(text, HasSubstr(error ? R"("status":"error")" : R"("status":"ok")"));
}

MessageTrace full_trace() {
  MessageTrace trace{.topic = "t",
                     .offset = 7,
                     .stored_us = 1'764'000'000'000'000,
                     .time_us = 5,
                     .size = 3,
                     .key = "tea",
                     .headers = {{"a", "b"}, {"a", ""}},
                     .durable = true,
                     .expired = true,
                     .groups_left_out = 4};
  for (int state = 0; state <= static_cast<int>(MessageState::lost); ++state)
    trace.groups.push_back(
        {.group = "g", .state = static_cast<MessageState>(state), .moved_by = MovedBy::purge});
  trace.groups[0].deliveries = 2;
  trace.groups[1] = {.group = "g",
                     .state = MessageState::in_flight,
                     .deliveries = 1,
                     .due_ms = 9,
                     .consumer = 0,
                     .user_id = "ann",
                     .started = true};
  trace.groups[3].death = DeadMessage{7, DeadState::parked, DeadCause::rejected, 1, 1000, 2000, "why"};
  trace.groups[5].letter_topic = "letters";
  trace.groups[5].letter_offset = 0;
  return trace;
}

TEST(JsonReply, WritesTheRepliesOf2015) {
  EXPECT_EQ(to_json(OkReply{"create_topic", "topic created successfully", {}}),
            R"({"cmd":"create_topic","status":"ok","description":"topic created successfully"})");
  EXPECT_EQ(to_json(JoinReply{"test", "tcp://127.0.0.1:5002", {}}),
            R"({"cmd":"join","status":"ok","topic":"test","bind_uri":"tcp://127.0.0.1:5002"})");
  EXPECT_EQ(to_json(OkReply{"ping", {}, {}}), R"({"cmd":"ping","status":"ok"})");
  EXPECT_EQ(to_json(ErrorReply{"stats", ErrorCode::topic_not_found, "topic not found"}),
            R"({"cmd":"stats","status":"error","code":"topic_not_found","description":"topic not found"})");
}

TEST(JsonReply, NamesEveryStatisticLikeItsMember) {
  const auto text = to_json(full_topic_stats());
  for (const char* field : {"topic",
                            "topic_type",
                            "messages_received",
                            "messages_sent",
                            "publishers_count",
                            "subscribers_count",
                            "queue_size",
                            "total_bytes_written",
                            "total_bytes_read",
                            "deliveries",
                            "dropped",
                            "rejected",
                            "refused",
                            "unclaimed_dropped",
                            "corrupt",
                            "first_offset",
                            "next_offset",
                            "durable_offset",
                            "log_bytes",
                            "carried_messages",
                            "carried_bytes",
                            "blocked_by",
                            "paused",
                            "since_ms",
                            "groups",
                            "subscribers",
                            "committed_offset",
                            "pending",
                            "ready",
                            "in_flight",
                            "retrying",
                            "parked",
                            "dead_waiting",
                            "acknowledged",
                            "released",
                            "failed",
                            "timed_out",
                            "lost_with_session",
                            "revoked",
                            "dead",
                            "expired",
                            "recent_ended",
                            "recent_dead",
                            "paused_by",
                            "dead_waiting_by",
                            "max_attempts",
                            "backoff_ms",
                            "dead_letter_topic",
                            "dead_waiting_max",
                            "processing_timeout_ms",
                            "pause_when_failing",
                            "dead_letter_expired",
                            "lag",
                            "lost",
                            "consumers",
                            "connected",
                            "delivered"}) {
    EXPECT_THAT(text, HasSubstr(std::string(field).insert(0, 1, '"').append("\":"))) << field;
  }
  EXPECT_THAT(text, HasSubstr("18446744073709551615"));
}

TEST(JsonReply, ReadsItsOwnOutput) {
  BrokerStats broker;
  broker.version = "0.1.0";
  broker.pid = 7;
  broker.auth_failures = 9;
  broker.throttled_requests = 12;
  broker.refused_connections = 10;
  broker.evicted_connections = 11;
  broker.limits_reached = {{"topics_max", 3}, {"users_max", 0}};
  broker.data_dir = "/d";
  broker.encrypted = true;
  broker.insecure = true;
  TopicSettings direct;
  direct.broker_type = BrokerType::direct;
  direct.open = true;
  TopicSettings file;
  file.broker_type = BrokerType::file;
  file.retention_ms = 5;
  TopicStats other = full_topic_stats();
  other.topic = "tested";
  OkReply created{"create_topic", {}, {}};
  created.created = CreatedTopic{file};
  OkReply created_by_template{"create_topic", {}, {}};
  created_by_template.created = CreatedTopic{direct, "d*"};
  const std::vector<std::pair<Request, Reply>> pairs = {
      {StatsAll{}, StatsAllReply{{full_topic_stats(), other}, "tested"}},
      {StatsAll{}, StatsAllReply{}},
      {Ping{}, OkReply{"ping", {}, {}}},
      {Leave{{}, topic, "tcp://h:1"}, OkReply{"leave", {}, 12}},
      {DeleteGroup{{}, topic, "default"}, OkReply{"delete_group", {}, {}}},
      {Pause{{}, topic, "default"}, OkReply{"pause", {}, {}}},
      {Purge{{}, topic, {}}, OkReply{"purge", {}, {}, 12}},
      {DeleteTopic{{}, topic}, OkReply{"delete_topic", "done", {}}},
      {CreateTopic{{}, topic, {}, {}}, OkReply{"create_topic", "topic created successfully", {}}},
      {CreateTopic{{}, topic, {}, {}}, created},
      {CreateTopic{{}, topic, {}, {}}, created_by_template},
      {Version{}, VersionReply{"0.1.0", 1}},
      {join, JoinReply{"test", "tcp://h:1", {}}},
      {join, JoinReply{"test", "tcp://h:1", Ticket{"ab", "cd", 12}}},
      {join, JoinReply{"test", "tcp://h:1", Ticket{"ab", "cd", 12}, "a key"}},
      {join, JoinReply{"test", "tcp://h:1", Ticket{"ab", "cd", 12}, {}, Tls{"0123abcd"}}},
      {ListTopics{}, ListReply{{{"a", direct}, {"b", file}}}},
      {topic_stats, full_topic_stats()},
      {broker_stats, broker},
      {SetGroup{{}, topic, "g", {}}, OkReply{"set_group", {}, {}}},
      {RetryDead{{}, topic, ""}, OkReply{"retry_dead", {}, {}, 7, 0, ReturnedLetters{5, 2, 1, 3, 4, 6}}},
      {RetryDead{{}, topic, "g"}, OkReply{"retry_dead", {}, {}, 3}},
      {PurgeDead{{}, topic, "g"}, OkReply{"purge_dead", {}, {}, 3, 2}},
      {ListDead{{}, topic, "g"}, DeadPage{}},
      {ListDead{{}, topic, "g"}, DeadPage{{{1, DeadState::parked, DeadCause::attempts, 5}}, 7, 2}},
      {ListDead{{}, topic, "g"},
       DeadPage{{{1, DeadState::parked, DeadCause::attempts, 5},
                 {7, DeadState::dead_waiting, DeadCause::rejected, 1, 1000, 2000, "no \"order\""},
                 {8, DeadState::parked, DeadCause::rejected, 1, 1000, 2000, {}, "orders", "billing", 17}},
                7}},
      {Trace{{}, topic, 7}, MessageTrace{.topic = "t", .offset = 7, .state = StoredState::dropped}},
      {Trace{{}, topic, 7}, full_trace()},
      {ListTopics{}, ListReply{{{"a", file, false, false, {{"g", {.max_attempts = 5}}}}}, "a"}},
      {join, ErrorReply{"join", ErrorCode::busy, "later"}}};
  for (const auto& [asked, reply] : pairs) expect_read_again(asked, reply);
}

TEST(JsonReply, ReadsItsOwnOutputAboutDelayedMessages) {
  const std::vector<std::pair<Request, Reply>> pairs = {
      {ListDelayed{{}, topic}, DelayedPage{}},
      {ListDelayed{{}, topic}, DelayedPage{{{7, {1000}, DelayedState::waiting, 20, "order 7", "tea"},
                                            {8, {1000}, DelayedState::moving, 5, {}, {}}},
                                           DelayedPlace{{1000}, 8}}},
      {ListDelayed{{}, topic},
       DelayedPage{{{7, {1000}, DelayedState::waiting, 20, {}, {}, "text", 4},
                    {8, {1000}, DelayedState::waiting, 20, {}, {}, std::string("\xff\0", 2), 70'000},
                    {9, {1000}, DelayedState::waiting, 0, {}, {}, "", 0}},
                   std::nullopt}},
      {CancelDelayed{{}, topic}, OkReply{"cancel_delayed", {}, {}, 3, 0, {}, DelayedCount{3, 0, 0, {}}}},
      {RescheduleDelayed{{}, topic},
       OkReply{"reschedule_delayed",
               {},
               {},
               0,
               0,
               {},
               DelayedCount{0, 1, 1, {{7, DelayedRefusal::too_late}, {900, DelayedRefusal::unknown}}}}}};
  for (const auto& [asked, reply] : pairs) expect_read_again(asked, reply);
}

TEST(JsonReply, ReadsItsOwnOutputOnSchedules) {
  const std::vector<std::pair<Request, Reply>> pairs = {
      {PauseSchedule{{}, topic, "n"}, OkReply{"pause_schedule", {}, {}}},
      {ListSchedules{}, SchedulePage{}},
      {ListSchedules{},
       SchedulePage{
           {{.topic = "t",
             .name = "n",
             .settings =
                 {.cron = "0 9 * * *", .zone = "UTC", .key = "k", .headers = {{"a", "b"}}, .payload = "go"},
             .payload_bytes = 2,
             .next_ms = {1'795'000'000'000, 1'795'086'400'000},
             .fired = 3,
             .last_ms = 1'794'900'000'000,
             .waiting_by = "the topic is full"},
            {.topic = "u",
             .name = "m",
             .settings = {.cron = "* * * * *", .missed = MissedFirings::once, .payload = "\xff"},
             .payload_bytes = 1,
             .paused = true}},
           "u/m"}}};
  for (const auto& [asked, reply] : pairs) {
    const auto text = to_json(reply);
    const auto read = parse_reply(asked, text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
    EXPECT_EQ(read.value().index(), reply.index()) << text;
    EXPECT_EQ(to_json(read.value()), text);
  }
}

TEST(JsonReply, APageOfStatsHasTheTopicsAsStatsShowsThem) {
  const std::string one = to_json(full_topic_stats());
  const std::string head = R"({"cmd":"stats","status":"ok",)";
  ASSERT_TRUE(one.starts_with(head));
  EXPECT_EQ(to_json(StatsAllReply{{full_topic_stats()}, "test"}),
            R"({"cmd":"stats_all","status":"ok","topics":[{)" + one.substr(head.size()) +
                R"(],"continue_after":"test"})");
  EXPECT_EQ(to_json(StatsAllReply{}), R"({"cmd":"stats_all","status":"ok","topics":[]})");
  for (const char* text : {R"({"status":"ok","topics":{}})", R"({"status":"ok","topics":[{"groups":5}]})",
                           R"({"status":"ok","topics":[],"continue_after":5})"}) {
    EXPECT_FALSE(parse_reply(StatsAll{}, text).ok()) << text;
  }
}

TEST(JsonReply, ListsTheSettingsThatApplyToTheType) {
  const auto settings_of = [](BrokerType type) {
    TopicStats stats;
    stats.settings = {type, 65536, Overflow::reject, 1, 2, 3, 4, 131072, false, true, true, 5};
    const auto text = to_json(stats);
    const auto from = text.find("\"settings\":") + 11;
    return text.substr(from, text.find('}', from) + 1 - from);
  };
  const std::string files =
      R"("capacity_bytes":1,"segment_bytes":131072,"retention_bytes":2,"retention_ms":3,"retention_messages":4,)"
      R"("retention_over_pending":true,"encrypt_at_rest":true,)";
  EXPECT_EQ(
      settings_of(BrokerType::queue),
      R"({"broker_type":"queue","ring_bytes":65536,"overflow":"reject","message_ttl_ms":5,"open":false})");
  EXPECT_EQ(settings_of(BrokerType::file),
            R"({"broker_type":"file","overflow":"reject","message_ttl_ms":5,)" + files + R"("open":false})");
  EXPECT_EQ(settings_of(BrokerType::queue_file),
            R"({"broker_type":"queue_file","ring_bytes":65536,"overflow":"reject","message_ttl_ms":5,)" +
                files + R"("open":false})");
  EXPECT_EQ(settings_of(BrokerType::direct), R"({"broker_type":"direct","open":false})");
}

TEST(JsonReply, UnderstandsAnOlderAndANewerBroker) {
  const auto older = parse_reply(topic_stats, R"({"status":"ok","topic":"test"})");
  ASSERT_TRUE(older.ok());
  EXPECT_EQ(std::get<TopicStats>(older.value()).messages_received, 0U);
  const auto newer =
      parse_reply(join, R"({"status":"error","code":"from_the_future","description":"no","x":[1]})");
  ASSERT_TRUE(newer.ok());
  EXPECT_EQ(std::get<ErrorReply>(newer.value()).code, ErrorCode::internal);
  EXPECT_EQ(std::get<ErrorReply>(newer.value()).description, "no");
}

TEST(JsonReply, LeavesOutWhatAGroupDoesNotRememberOfADeath) {
  EXPECT_EQ(to_json(DeadPage{{{1, DeadState::parked, DeadCause::attempts, 5}}, std::nullopt}),
            R"({"cmd":"list_dead","status":"ok","messages":[)"
            R"({"offset":1,"state":"parked","cause":"attempts","attempts":5}]})");
  const ListDead asked{{}, topic, "g"};
  EXPECT_FALSE(parse_reply(asked, R"({"status":"ok","messages":[{"state":"gone"}]})").ok());
  EXPECT_FALSE(parse_reply(asked, R"({"status":"ok","messages":[{"cause":5}]})").ok());
}

// The reason is a consumer's text. A client that refused one would refuse the whole page.
TEST(JsonReply, ReadsAReasonWithAnyBytes) {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  const std::string with_nul("a\0b\x1b\n", 5);
  for (const std::string& reason : {with_nul, every_byte}) {
    DeadMessage message{1, DeadState::parked, DeadCause::rejected, 5};
    message.reason = reason;
    const auto read = parse_reply(ListDead{{}, topic, "g"}, to_json(DeadPage{{message}, std::nullopt}));
    ASSERT_TRUE(read.ok()) << read.error().text();
    const std::string& shown = std::get<DeadPage>(read.value()).messages.front().reason;
    EXPECT_EQ(shown.substr(0, 5), reason.substr(0, 5));
    EXPECT_TRUE(reason != with_nul || shown == reason);
  }
  EXPECT_FALSE(parse_reply(join, R"({"status":"ok","topic":"a\u0000b","bind_uri":"tcp://h:1"})").ok());
}

TEST(JsonReply, CountsDeadMessagesThatCouldNotBeRead) {
  EXPECT_EQ(to_json(OkReply{"retry_dead", {}, {}, 3, 2}),
            R"({"cmd":"retry_dead","status":"ok","messages":3,"unreadable":2})");
  EXPECT_EQ(to_json(OkReply{"retry_dead", {}, {}, 3}), R"({"cmd":"retry_dead","status":"ok","messages":3})");
  EXPECT_EQ(to_json(DeadPage{{}, 4, 2}),
            R"({"cmd":"list_dead","status":"ok","messages":[],"continue_after":4,"unreadable":2})");
  const auto read = parse_reply(ListDead{{}, topic, "g"}, R"({"status":"ok","messages":[],"unreadable":2})");
  EXPECT_EQ(std::get<DeadPage>(read.value()).unreadable, 2U);
}

TEST(JsonReply, LeavesOutAnIdAndAKeyThatAMessageDoesNotHave) {
  EXPECT_EQ(to_json(DelayedPage{{{7, {1000}, DelayedState::waiting, 20, {}, {}}}, std::nullopt}),
            R"({"cmd":"list_delayed","status":"ok","messages":[)"
            R"({"number":7,"due_us":1000,"state":"waiting","bytes":20}]})");
  EXPECT_EQ(
      to_json(DelayedPage{{{7, {1000}, DelayedState::waiting, 20, {}, {}, "\xff", 9}}, std::nullopt}),
      R"({"cmd":"list_delayed","status":"ok","messages":[)"
      R"({"number":7,"due_us":1000,"state":"waiting","bytes":20,"payload_base64":"/w==","payload_bytes":9}]})");
  OkReply cancelled{"cancel_delayed", {}, {}, 2};
  cancelled.delayed = DelayedCount{2, 0, 1, {{9, DelayedRefusal::unknown}}};
  EXPECT_EQ(to_json(cancelled),
            R"({"cmd":"cancel_delayed","status":"ok","messages":2,"too_late":0,"unknown":1,)"
            R"("untouched":[{"number":9,"why":"unknown"}]})");
  EXPECT_FALSE(parse_reply(ListDelayed{{}, topic}, R"({"status":"ok","messages":[{"state":"gone"}]})").ok());
  EXPECT_FALSE(parse_reply(ListDelayed{{}, topic}, R"({"status":"ok","messages":[{"due_us":-5}]})").ok());
  EXPECT_FALSE(
      parse_reply(ListDelayed{{}, topic}, R"({"status":"ok","messages":[],"continue_after_number":5})").ok());
}

TEST(JsonReply, ShowsTheScheduleOfATopicThatHasOne) {
  TopicStats stats = full_topic_stats();
  EXPECT_THAT(to_json(stats), testing::Not(HasSubstr("\"delayed\"")));
  stats.delayed = DelayedStats{1, 2, 3, 4, 5, 6, 7, "disk"};
  EXPECT_THAT(to_json(stats), HasSubstr(R"("delayed":{"messages":1,"bytes":2,"next_due_us":3,"moved":4,)"
                                        R"("cancelled":5,"late_us_max":6,"corrupt":7,"waiting_by":"disk"})"));
  const auto read = parse_reply(topic_stats, to_json(stats));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<TopicStats>(*read).delayed, stats.delayed);
}

TEST(JsonReply, ListsTheMembersOfGroupsIfTheyWereAskedFor) {
  TopicStats stats = full_topic_stats();
  EXPECT_THAT(to_json(stats), testing::Not(HasSubstr("\"members\"")));
  stats.groups[0].members = {
      {{.number = 1, .user_id = "ann", .since_ms = 2, .in_flight = 3, .credit_messages = 4, .heard_ms = 5},
       {.number = 6, .user_id = {}}}};
  EXPECT_THAT(to_json(stats),
              HasSubstr(R"("members":[{"number":1,"user_id":"ann","since_ms":2,"in_flight":3,)"
                        R"("credit_messages":4,"credit_bytes":0,"heard_ms":5},{"number":6,"user_id":"",)"
                        R"("since_ms":0,"in_flight":0,"credit_messages":0,"credit_bytes":0}])"));
  const auto read = parse_reply(topic_stats, to_json(stats));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(to_json(std::get<TopicStats>(*read)), to_json(stats));
}

TEST(JsonReply, RefusesAnythingButAReply) {
  for (const char* text : {"", "pong", "[]", "{}", R"({"status":5})", R"({"status":"maybe"})",
                           R"({"status":"ok"})", R"({"status":"ok","topic":"test","bind_uri":5})"}) {
    EXPECT_FALSE(parse_reply(join, text).ok()) << text;
  }
  EXPECT_FALSE(parse_reply(topic_stats, R"({"status":"ok","messages_received":-1})").ok());
  EXPECT_FALSE(parse_reply(topic_stats, R"({"status":"ok","groups":{}})").ok());
  EXPECT_FALSE(parse_reply(topic_stats, R"({"status":"ok","settings":5})").ok());
  EXPECT_FALSE(parse_reply(topic_stats, R"({"status":"ok","settings":{"overflow":"x"}})").ok());
  EXPECT_FALSE(parse_reply(topic_stats, R"({"status":"ok","groups":[5]})").ok());
  EXPECT_FALSE(parse_reply(topic_stats, R"({"status":"ok","groups":[{"lag":"x"}]})").ok());
}

TEST(JsonReply, ReplacesBytesThatAreNotUtf8) {
  EXPECT_THAT(to_json(ErrorReply{"join", ErrorCode::io_error, "no \xff file"}),
              HasSubstr("no \xef\xbf\xbd file"));
}

}  // namespace
}  // namespace lightq::protocol
