/// Tests of the document with the settings of topics, groups and users.
#include "client/transfer/definitions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lightq::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using What = DefinitionsStep::What;

Definitions some() {
  Definitions all;
  protocol::TopicSettings settings;
  settings.broker_type = protocol::BrokerType::file;
  settings.retention_ms = 7;
  protocol::GroupSettings rules;
  rules.max_attempts = 5;
  rules.dead_letter_topic = "dead";
  all.topics.push_back({"orders", settings, {{"billing", rules}}});
  all.topics.push_back({"dead", {}, {}});
  all.users.push_back({"ann", true, 7, {{"orders*", {.produce = true, .consume = true}}}});
  all.users.push_back({"bob", false, {}, {}});
  return all;
}

std::vector<What> kinds(const std::vector<DefinitionsStep>& steps) {
  std::vector<What> found;
  for (const DefinitionsStep& step : steps) found.push_back(step.what);
  return found;
}

TEST(Definitions, AreReadAsTheyWereWritten) {
  const auto read = parse_definitions(definitions_text(some()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(definitions_text(*read), definitions_text(some()));
  EXPECT_TRUE(steps_to(*read, some()).empty());
  EXPECT_EQ(read->topics[0].groups[0].second.max_attempts, 5U);
}

TEST(Definitions, OfABrokerWithoutAnyBeginWithTheTopics) {
  const auto steps = steps_to(some(), {});
  EXPECT_EQ(kinds(steps), (std::vector{What::create_topic, What::create_topic, What::set_group,
                                       What::create_user, What::conflict}));
  EXPECT_THAT(steps.back().text, HasSubstr("user bob: needs a password:  lightq user add bob"));
}

TEST(Definitions, NameWhatCannotChange) {
  Definitions present = some();
  present.topics[0].settings.retention_ms = 0;
  present.topics[0].settings.segment_bytes = 1 << 20;
  present.users[0].rights[0].rights.consume = false;
  present.users[0].admin = false;
  const auto steps = steps_to(some(), present);
  EXPECT_EQ(kinds(steps), (std::vector{What::conflict, What::set_topic, What::conflict, What::grant}));
  EXPECT_THAT(steps[0].text, HasSubstr("segment_bytes"));
  EXPECT_EQ(steps[1].topic_change, (protocol::TopicChange{.retention_ms = 7}));
  EXPECT_EQ(steps[3].text, "user ann consume on orders*");
  present.topics[0].settings.broker_type = protocol::BrokerType::queue_file;
  EXPECT_EQ(kinds(steps_to(some(), present)), (std::vector{What::conflict, What::conflict, What::grant}));
}

TEST(Definitions, RaiseACapacityThatNoMessageFitsInto) {
  Definitions wanted = some();
  wanted.topics[0].settings.capacity_bytes = 1;
  auto steps = steps_to(wanted, {});
  EXPECT_EQ(steps[0].settings.capacity_bytes, 69U);
  EXPECT_THAT(steps[0].text, HasSubstr("capacity_bytes 1 is too small for any message: raised to 69"));
  steps = steps_to(wanted, some());
  ASSERT_EQ(kinds(steps).front(), What::set_topic);
  EXPECT_EQ(steps[0].topic_change.capacity_bytes, 69U);
  EXPECT_THAT(steps[0].text, HasSubstr("raised to 69"));
  EXPECT_TRUE(steps_to(wanted, wanted).empty() || kinds(steps_to(wanted, wanted)).front() != What::set_topic)
      << "a topic that has it keeps it";
}

TEST(Definitions, OfAStrangerPutNoCommandIntoTheOneToCopy) {
  Definitions wanted;
  wanted.users.push_back({"x; rm -r ~ #", false, {}, {{"a*", {.consume = true}}}});
  wanted.users.push_back({"it's\nuser bob: needs a password:  reboot", true, {}, {}});
  wanted.users.push_back({"-v", false, {}, {}});
  const auto steps = steps_to(wanted, {});
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_THAT(steps[0].text, HasSubstr("lightq user add --consume 'a*' $'x; rm -r ~ #'"));
  EXPECT_THAT(steps[1].text,
              HasSubstr(R"(lightq user add --admin $'it\'s\u000auser bob: needs a password:  reboot')"));
  EXPECT_THAT(steps[1].text, Not(HasSubstr("\n")));
  EXPECT_THAT(steps[2].text, HasSubstr("lightq user add -- -v"));
}

TEST(Definitions, RefuseOtherDocuments) {
  for (
      const char* const text :
      {"", "[]", "{}", R"({"format":2})", R"({"format":1,"topics":{}})", R"({"format":1,"topics":[{}]})",
       R"({"format":1,"topics":[{"topic":"../x","broker_type":"file"}]})",
       R"({"format":1,"topics":[{"topic":"t","broker_type":"queue","retention_ms":1}]})",
       R"({"format":1,"topics":[{"topic":"t","broker_type":"file","groups":[{"max_attempts":1}]}]})",
       R"({"format":1,"topics":[{"topic":"t","broker_type":"file"},{"topic":"t","broker_type":"queue"}]})",
       R"({"format":1,"topics":[{"topic":"t","broker_type":"file","groups":[{"group":"g"},{"group":"g"}]}]})",
       R"({"format":1,"users":[{"user_id":"u","rights":[]},{"user_id":"u","rights":[]}]})",
       R"({"format":1,"users":[{"user_id":"u","rights":[{"topic":"*","rights":["all"]}]}]})"}) {
    EXPECT_FALSE(parse_definitions(text).ok()) << text;
  }
}

}  // namespace
}  // namespace lightq::cli
