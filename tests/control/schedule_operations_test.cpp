/// Tests of control/commands/schedule_operations and of the rights that the commands on schedules need.
#include "control/commands/schedule_operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/catalogue/catalogue_schedules.hpp"
#include "control/catalogue_room.hpp"
#include "control/commands_under_test.hpp"
#include "control/fake_data_plane.hpp"
#include "control/loop_thread.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::MissedFirings;
using protocol::ScheduleSettings;
using test::name;

const protocol::Credentials schedule_admin{"lightq_admin", planted::admin_password};
const protocol::Credentials schedule_ann{"ann", planted::user_password};

/// Commands on a catalogue, with a data plane that only records them.
class ScheduleCommandsTest : public ::testing::Test {
 protected:
  std::unique_ptr<test::CommandsUnderTest> make() {
    const OperationSettings settings{"/data", [this] { return now; }};
    return std::make_unique<test::CommandsUnderTest>(loop, *catalogue, authenticator, data_plane, room.sink,
                                                     settings);
  }
  void restart() {
    commands.reset();
    catalogue.reset();
    data_plane.topics.clear();
    data_plane.schedules.clear();
    catalogue = room.open();
    commands = make();
    bool up = false;
    commands->bring_up([&] { up = true; });
    test::run_until(loop, [&] { return up; });
  }
  protocol::Reply ask(const protocol::Request& request) {
    std::optional<protocol::Reply> reply;
    commands->handle(request, [&](protocol::Reply got) { reply = std::move(got); });
    test::run_until(loop, [&] { return reply.has_value(); });
    return reply.value_or(protocol::ErrorReply{});
  }
  std::string code(const protocol::Request& request) {
    const auto reply = ask(request);
    const auto* error = std::get_if<protocol::ErrorReply>(&reply);
    if (error == nullptr) return "ok";
    last_sentence = error->description;
    return std::string(to_word(error->code));
  }
  void create(const std::string& topic, protocol::BrokerType type = protocol::BrokerType::file) {
    protocol::TopicSettings settings;
    settings.broker_type = type;
    ASSERT_EQ(code(protocol::CreateTopic{schedule_admin, name(topic), settings, {}}), "ok") << last_sentence;
  }
  static bool is_admin(const protocol::Credentials& by) { return by.user_id == schedule_admin.user_id; }
  std::string set(const std::string& topic, const std::string& schedule, const ScheduleSettings& settings,
                  const protocol::Credentials& by = schedule_admin) {
    return code(protocol::SetSchedule{by, name(topic), schedule, settings, is_admin(by)});
  }
  template <typename Asked>
  std::string act(const std::string& topic, const std::string& schedule,
                  const protocol::Credentials& by = schedule_admin) {
    return code(Asked{by, name(topic), schedule, is_admin(by)});
  }
  protocol::SchedulePage list(protocol::ListSchedules asked,
                              const protocol::Credentials& by = schedule_admin) {
    asked.user = by;
    asked.as_admin = is_admin(by);
    auto reply = ask(asked);
    auto* const page = std::get_if<protocol::SchedulePage>(&reply);
    if (page == nullptr) ADD_FAILURE() << std::get<protocol::ErrorReply>(reply).description;
    return page == nullptr ? protocol::SchedulePage() : std::move(*page);
  }
  static std::vector<std::string> names(const protocol::SchedulePage& page) {
    std::vector<std::string> names;
    for (const auto& listing : page.schedules) names.push_back(listing.topic + "/" + listing.name);
    return names;
  }
  /// Returns what the data plane has.
  std::optional<RecurringSchedule> at_work(const std::string& topic, const std::string& schedule) {
    const TopicId id = catalogue->state().find(topic)->definition.id;
    const auto found = data_plane.schedules.find(std::to_string(id.value) + "/" + schedule);
    return found == data_plane.schedules.end() ? std::nullopt : std::optional(found->second);
  }

  const ScheduleSettings daily{.cron = "0 9 * * *", .zone = "Europe/Berlin", .payload = "go"};
  Timestamp now{1'795'766'400'000'000};  // 2026-11-27 08:00 UTC
  EventLoop loop;
  test::CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue = room.open();
  Authenticator authenticator{loop, schedule_admin.user_id, Secret(schedule_admin.password)};
  test::FakeDataPlane data_plane{loop};
  std::unique_ptr<test::CommandsUnderTest> commands = make();
  std::string last_sentence;
};

TEST_F(ScheduleCommandsTest, AScheduleIsRecordedAndBegunAndSurvivesARestart) {
  create("t");
  EXPECT_EQ(set("t", "n", daily), "ok") << last_sentence;
  EXPECT_FALSE(catalogue->unflushed()) << "answered before it was durable";
  const auto begun = at_work("t", "n");
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->settings, daily);
  EXPECT_NE(begun->incarnation, 0U);
  EXPECT_EQ(begun->since, now);
  restart();
  EXPECT_EQ(at_work("t", "n"), begun);
}

TEST_F(ScheduleCommandsTest, AChangeKeepsTheProducerAndLeavesOutEarlierTimes) {
  create("t");
  ASSERT_EQ(set("t", "n", daily), "ok");
  const auto before = at_work("t", "n");
  now.us += 1'000'000;
  ASSERT_EQ(set("t", "n", daily), "ok");
  EXPECT_EQ(at_work("t", "n"), before) << "nothing has changed";
  ScheduleSettings other = daily;
  other.payload = "other";
  ASSERT_EQ(set("t", "n", other), "ok");
  EXPECT_EQ(at_work("t", "n")->settings, other);
  EXPECT_EQ(at_work("t", "n")->incarnation, before->incarnation);
  EXPECT_EQ(at_work("t", "n")->since, now);
}

TEST_F(ScheduleCommandsTest, APauseIsDurableAndEndsWithResume) {
  create("t");
  ASSERT_EQ(set("t", "n", daily), "ok");
  EXPECT_EQ(act<protocol::PauseSchedule>("t", "n"), "ok");
  EXPECT_EQ(act<protocol::PauseSchedule>("t", "n"), "ok");
  EXPECT_TRUE(at_work("t", "n")->paused);
  restart();
  EXPECT_TRUE(at_work("t", "n")->paused);
  ScheduleSettings other = daily;
  other.payload = "other";
  ASSERT_EQ(set("t", "n", other), "ok");
  EXPECT_TRUE(at_work("t", "n")->paused) << "set does not resume it";
  EXPECT_THAT(list({.user = {}, .topic = name("t")}).schedules.at(0).next_ms, testing::IsEmpty());
  now.us += 60'000'000;
  EXPECT_EQ(act<protocol::ResumeSchedule>("t", "n"), "ok");
  EXPECT_FALSE(at_work("t", "n")->paused);
  EXPECT_EQ(at_work("t", "n")->since, now) << "times during the pause are left out";
}

TEST_F(ScheduleCommandsTest, ARemovedScheduleIsGone) {
  create("t");
  ASSERT_EQ(set("t", "n", daily), "ok");
  const auto first = at_work("t", "n")->incarnation;
  EXPECT_EQ(act<protocol::RemoveSchedule>("t", "n"), "ok");
  EXPECT_FALSE(at_work("t", "n"));
  EXPECT_EQ(act<protocol::RemoveSchedule>("t", "n"), "schedule_not_found");
  EXPECT_EQ(act<protocol::PauseSchedule>("t", "n"), "schedule_not_found");
  EXPECT_EQ(act<protocol::ResumeSchedule>("t", "n"), "schedule_not_found");
  EXPECT_EQ(act<protocol::ResumeSchedule>("none", "n"), "topic_not_found");
  restart();
  EXPECT_TRUE(data_plane.schedules.empty());
  ASSERT_EQ(set("t", "n", daily), "ok");
  EXPECT_NE(at_work("t", "n")->incarnation, first);
}

TEST_F(ScheduleCommandsTest, ADeletedTopicTakesItsSchedulesWithIt) {
  create("t");
  ASSERT_EQ(set("t", "n", daily), "ok");
  ASSERT_EQ(code(protocol::DeleteTopic{schedule_admin, name("t")}), "ok");
  create("t");
  EXPECT_TRUE(list({.user = {}, .topic = name("t")}).schedules.empty());
}

TEST_F(ScheduleCommandsTest, SettingsThatCannotBeAreRefused) {
  create("t");
  create("memory", protocol::BrokerType::queue);
  create("relay", protocol::BrokerType::direct);
  ScheduleSettings wrong = daily;
  wrong.cron = "0 25 * * *";
  EXPECT_EQ(set("t", "n", wrong), "invalid_request");
  EXPECT_THAT(last_sentence, testing::HasSubstr("hour: '25' is not a number from 0 to 23"));
  wrong = daily;
  wrong.zone = "Europe/Atlantis";
  EXPECT_EQ(set("t", "n", wrong), "invalid_request");
  EXPECT_EQ(set("relay", "n", daily), "not_supported");
  ScheduleSettings once = daily;
  once.missed = MissedFirings::once;
  EXPECT_EQ(set("memory", "n", once), "not_supported");
  EXPECT_EQ(set("memory", "n", daily), "ok");
  EXPECT_EQ(set("t", "n", once), "ok");
}

TEST_F(ScheduleCommandsTest, ATopicHasAtMostSoManySchedules) {
  create("t");
  const TopicId id = catalogue->state().find("t")->definition.id;
  for (std::size_t i = 0; i < limits::schedules_per_topic_max; ++i)
    ASSERT_TRUE(
        put_schedule(*catalogue, id, "s" + std::to_string(i), {.settings = daily, .incarnation = i + 1}));
  EXPECT_EQ(set("t", "one-more", daily), "limit_reached");
  ScheduleSettings other = daily;
  other.payload = "other";
  EXPECT_EQ(set("t", "s0", other), "ok");
}

TEST_F(ScheduleCommandsTest, SettingNeedsTheRightsToManageAndToProduce) {
  create("t");
  const auto user_with = [&](const std::string& user_name, protocol::Rights rights) {
    const protocol::Credentials who{user_name, planted::user_password};
    EXPECT_EQ(code(protocol::CreateUser{schedule_admin, who, false, {{"t", rights}}, std::nullopt}), "ok");
    return who;
  };
  const auto manager = user_with("manager", {.manage = true});
  const auto producer = user_with("producer", {.produce = true});
  const auto both = user_with("both", {.produce = true, .manage = true});
  EXPECT_EQ(set("t", "n", daily, manager), "unauthorized_access");
  EXPECT_EQ(set("t", "n", daily, producer), "unauthorized_access");
  EXPECT_EQ(set("t", "n", daily, both), "ok") << last_sentence;
  EXPECT_EQ(act<protocol::PauseSchedule>("t", "n", producer), "unauthorized_access");
  EXPECT_EQ(act<protocol::PauseSchedule>("t", "n", manager), "ok");
  EXPECT_EQ(code(protocol::ListSchedules{.user = producer, .topic = name("t")}), "unauthorized_access");
  EXPECT_EQ(list({.user = {}, .topic = name("t")}, manager).schedules.size(), 1U);
  EXPECT_TRUE(list({.user = {}}, producer).schedules.empty());
  EXPECT_EQ(act<protocol::RemoveSchedule>("t", "n", producer), "unauthorized_access");
}

TEST_F(ScheduleCommandsTest, AListHasTheNextTimesAndTheState) {
  create("t");
  ASSERT_EQ(set("t", "n", daily), "ok");
  data_plane.states = {
      {.name = "n", .fired = 3, .last = Timestamp{1'795'680'000'000'000}, .waiting_by = "full"}};
  const auto page = list({.user = {}, .topic = name("t")});
  ASSERT_EQ(page.schedules.size(), 1U);
  const auto& listing = page.schedules[0];
  EXPECT_EQ(listing.settings.cron, daily.cron);
  EXPECT_EQ(listing.settings.payload, "") << "without a name there are no payloads";
  EXPECT_EQ(listing.payload_bytes, 2U);
  EXPECT_THAT(listing.next_ms, testing::ElementsAre(1'795'852'800'000));
  EXPECT_EQ(listing.fired, 3U);
  EXPECT_EQ(listing.last_ms, 1'795'680'000'000U);
  EXPECT_EQ(listing.waiting_by, "full");
  const auto shown = list({.user = {}, .topic = name("t"), .name = "n", .times = 3}).schedules.at(0);
  EXPECT_EQ(shown.settings, daily);
  EXPECT_THAT(shown.next_ms, testing::ElementsAre(1'795'852'800'000, 1'795'939'200'000, 1'796'025'600'000));
  EXPECT_EQ(code(protocol::ListSchedules{
                .user = schedule_admin, .topic = name("t"), .name = "other", .as_admin = true}),
            "schedule_not_found");
}

TEST_F(ScheduleCommandsTest, AllTopicsAreListedInPages) {
  for (const char* const topic : {"a", "b", "c"}) create(topic);
  for (const char* const topic : {"a", "c"})
    for (const char* const schedule : {"x", "y", "z"}) ASSERT_EQ(set(topic, schedule, daily), "ok");
  std::vector<std::string> all;
  std::string after;
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = list({.user = {}, .after = after, .limit = 2});
    for (const std::string& each : names(page)) all.push_back(each);
    after = page.continue_after;
    if (after.empty()) break;
    EXPECT_EQ(page.schedules.size(), 2U);
  }
  EXPECT_THAT(all, testing::ElementsAre("a/x", "a/y", "a/z", "c/x", "c/y", "c/z"));
  const auto of_topic = list({.user = {}, .topic = name("c"), .after = "c/x", .limit = 1});
  EXPECT_THAT(names(of_topic), testing::ElementsAre("c/y"));
  EXPECT_EQ(of_topic.continue_after, "c/y");
  ASSERT_EQ(code(protocol::CreateUser{
                schedule_admin, schedule_ann, false, {{"c", {.manage = true}}}, std::nullopt}),
            "ok");
  EXPECT_THAT(names(list({.user = {}}, schedule_ann)), testing::ElementsAre("c/x", "c/y", "c/z"));
}

}  // namespace
}  // namespace lightq::broker
