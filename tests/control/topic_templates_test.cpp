/// Tests of topic_templates: which template a topic gets, and which settings it takes from it.
#include "control/templates/topic_templates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using protocol::GivenSettings;
using protocol::Overflow;
using protocol::TopicSettings;

GivenSettings given(const std::vector<std::string>& names) {
  GivenSettings all;
  for (const std::string& name : names) all.add(name);
  return all;
}

std::string chosen_in_order(std::string_view topic, const std::vector<std::string>& patterns) {
  std::vector<TopicTemplate> list;
  for (const std::string& pattern : patterns) list.push_back({pattern, {}, {}});
  const TopicTemplates templates(std::move(list));
  const TopicTemplate* const found = templates.find(topic);
  return found == nullptr ? "" : found->pattern;
}

/// Returns the pattern of the template for a topic; empty if there is none. Expects the same for every order
/// of the patterns.
std::string chosen(std::string_view topic, std::vector<std::string> patterns) {
  std::ranges::sort(patterns);
  const std::string first = chosen_in_order(topic, patterns);
  while (std::ranges::next_permutation(patterns).found) EXPECT_EQ(chosen_in_order(topic, patterns), first);
  return first;
}

TEST(TopicTemplates, TheMostSpecificPatternThatMatchesIsChosen) {
  EXPECT_EQ(chosen("orders.eu", {"*", "orders.*", "orders.e*"}), "orders.e*");
  EXPECT_EQ(chosen("orders.us", {"*", "orders.*", "orders.e*"}), "orders.*");
  EXPECT_EQ(chosen("audit", {"*", "orders.*", "orders.e*"}), "*");
  EXPECT_EQ(chosen("orders", {"orders*", "orders", "*orders*"}), "orders") << "no star is the most specific";
  EXPECT_EQ(chosen("orders", {"orders*", "*orders*"}), "orders*") << "fewer stars";
  EXPECT_EQ(chosen("ab", {"a*", "*b"}), "*b") << "the first in the order of bytes";
  EXPECT_EQ(chosen("other", {"orders.*", "audit"}), "");
  EXPECT_EQ(TopicTemplates().find("t"), nullptr);
}

TEST(TopicTemplates, WhatTheRequestGivesWins) {
  TopicTemplate from{"orders.*", {}, given({"broker_type", "retention_ms", "overflow", "capacity_bytes"})};
  from.settings.broker_type = BrokerType::file;
  from.settings.retention_ms = 7;
  from.settings.overflow = Overflow::reject;
  from.settings.capacity_bytes = 1 << 20;
  TopicSettings asked;
  asked.overflow = Overflow::block;  // the default, but given
  asked.retention_ms = 9;            // not given
  const auto settings = settings_of_new_topic(asked, given({"overflow"}), &from);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->broker_type, BrokerType::file);
  EXPECT_EQ(settings->overflow, Overflow::block);
  EXPECT_EQ(settings->retention_ms, 7U);
  EXPECT_EQ(settings->capacity_bytes, 1U << 20);
  EXPECT_EQ(settings->ring_bytes, TopicSettings().ring_bytes);
}

TEST(TopicTemplates, SettingsThatTheTypeDoesNotHaveStayOut) {
  TopicTemplate from{"*", {}, given({"retention_ms", "message_ttl_ms"})};
  from.settings.retention_ms = 7;
  from.settings.message_ttl_ms = 8;
  TopicSettings queue;
  const auto settings = settings_of_new_topic(queue, given({"broker_type"}), &from);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->retention_ms, 0U);
  EXPECT_EQ(settings->message_ttl_ms, 8U);
}

TEST(TopicTemplates, AGivenSettingMustFitTheTypeOfTheTemplate) {
  TopicTemplate from{"*", {}, given({"broker_type"})};
  from.settings.broker_type = BrokerType::direct;
  TopicSettings asked;
  const auto refused = settings_of_new_topic(asked, given({"ring_bytes"}), &from);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(refused.error().message,
            "ring_bytes: only for broker_type queue, queue_file; this topic would be a direct");
  asked.retention_ms = 5;
  EXPECT_FALSE(settings_of_new_topic(asked, given({"retention_ms"}), nullptr).ok()) << "it would be a queue";
  EXPECT_TRUE(settings_of_new_topic(asked, {}, nullptr).ok());
}

}  // namespace
}  // namespace lightq::broker
