/// Tests of control/catalogue/catalogue_settings: settings of topics that change.
#include "control/catalogue/catalogue_settings.hpp"

#include <gtest/gtest.h>

#include "control/catalogue_room.hpp"

namespace lightq::broker {
namespace {

using test::CatalogueRoom;
using test::name;

protocol::TopicSettings settings_of_a_file() {
  protocol::TopicSettings settings;
  settings.broker_type = protocol::BrokerType::file;
  settings.retention_ms = 5000;
  return settings;
}

TEST(CatalogueSettings, RemembersTheTimeToLiveOfATopicsMessages) {
  CatalogueRoom room;
  TopicId made, changed;
  {
    const auto catalogue = room.open();
    auto settings = settings_of_a_file();
    settings.message_ttl_ms = 60'000;
    made = catalogue->add_topic(name("a"), settings, 0)->id;
    changed = catalogue->add_topic(name("b"), settings, 0)->id;
    ASSERT_TRUE(put_topic_change(*catalogue, changed, {.message_ttl_ms = 1'000}).ok());
    ASSERT_TRUE(put_topic_change(*catalogue, {99}, {.message_ttl_ms = 1'000}).ok())
        << "there is none such; nothing happens";
  }
  const auto catalogue = room.open();
  const auto ttl_of = [](const CatalogueState& state, TopicId topic) {
    return state.find(topic)->definition.settings.message_ttl_ms;
  };
  EXPECT_EQ(ttl_of(catalogue->state(), made), 60'000U);
  EXPECT_EQ(ttl_of(catalogue->state(), changed), 1'000U);
  CatalogueState compacted;
  for (const CatalogueChange& change : catalogue->state().snapshot())
    compacted.apply(decode_change(encode(change)).value());
  EXPECT_EQ(ttl_of(compacted, made), 60'000U);
  EXPECT_EQ(ttl_of(compacted, changed), 1'000U);
  compacted.apply(decode_change(encode(TopicTtl{made, 5})).value());
  EXPECT_EQ(ttl_of(compacted, made), 5U);
}

TEST(CatalogueSettings, RemembersChangedSettingsOfATopic) {
  CatalogueRoom room;
  TopicId changed;
  auto expected = settings_of_a_file();
  {
    const auto catalogue = room.open();
    changed = catalogue->add_topic(name("a"), expected, 0)->id;
    const protocol::TopicChange change{.overflow = protocol::Overflow::reject,
                                       .capacity_bytes = 1 << 20,
                                       .retention_bytes = 2 << 20,
                                       .retention_ms = 3,
                                       .retention_messages = 4,
                                       .retention_over_pending = true};
    expected = change.applied_to(expected);
    ASSERT_TRUE(put_topic_change(*catalogue, changed, change).ok());
    ASSERT_TRUE(put_topic_change(*catalogue, {99}, change).ok()) << "there is none such; nothing happens";
  }
  const auto catalogue = room.open();
  EXPECT_EQ(catalogue->state().find(changed)->definition.settings, expected);
  CatalogueState compacted;
  for (const CatalogueChange& change : catalogue->state().snapshot())
    compacted.apply(decode_change(encode(change)).value());
  EXPECT_EQ(compacted.find(changed)->definition.settings, expected);
  EXPECT_EQ(encode(TopicChanged{{1}, {.retention_ms = 5}}),
            R"({"op":"topic_settings","id":1,"retention_ms":5})")
      << "not optional: older brokers refuse it";
}

}  // namespace
}  // namespace lightq::broker
