/// Tests of the OpenAPI document, and of the members that it describes by the code that reads them.
#include "http/document/api_document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <lightq/protocol/json_fields.hpp>

namespace lightq::broker {

namespace {

using protocol::detail::Json;
using ::testing::ElementsAre;

const Json& document() {
  static const Json parsed = Json::parse(api_document());
  return parsed;
}

const Json& content_of(const char* path, const char* method) {
  return document()
      .at("paths")
      .at(path)
      .at(method)
      .at("requestBody")
      .at("content")
      .at("application/json")
      .at("schema");
}

const Json& answer_of(const char* path, const char* method, const char* status = "200") {
  return document()
      .at("paths")
      .at(path)
      .at(method)
      .at("responses")
      .at(status)
      .at("content")
      .at("application/json")
      .at("schema");
}

TEST(ApiDocument, NamesMembersWithTheirBounds) {
  const Json& group = content_of("/api/v1/topics/{topic}/groups/{group}", "patch").at("properties");
  EXPECT_EQ(group.at("max_attempts"), Json({{"type", "integer"}, {"minimum", 0}, {"maximum", 1'000'000}}));
  EXPECT_THAT(group.at("processing_timeout_ms").at("type"), ElementsAre("integer", "null"));
  EXPECT_EQ(group.at("backoff_ms").at("maxItems"), 16);
  const Json& topic = content_of("/api/v1/topics/{topic}", "put").at("properties");
  EXPECT_THAT(topic.at("overflow").at("enum"), ElementsAre("block", "reject", "drop_oldest"));
}

TEST(ApiDocument, LeavesOutMembersOfTheUrlAndOfTheLogin) {
  for (const auto& [path, operations] : document().at("paths").items()) {
    for (const auto& [method, operation] : operations.items()) {
      if (!operation.contains("requestBody")) continue;
      if (!operation.at("requestBody").at("content").contains("application/json")) continue;
      const Json& members = content_of(path.c_str(), method.c_str()).at("properties");
      EXPECT_FALSE(members.empty()) << method << " " << path;
      for (const char* const name : {"cmd", "admin_user_id", "admin_password"})
        EXPECT_FALSE(members.contains(name)) << method << " " << path;
      for (const Json& parameter : operation.at("parameters"))
        EXPECT_FALSE(members.contains(parameter.at("name").get<std::string>())) << method << " " << path;
    }
  }
}

TEST(ApiDocument, SaysWhichMembersAreNeeded) {
  EXPECT_THAT(content_of("/api/v1/topics/{topic}/schedules/{name}", "put").at("required"),
              ElementsAre("cron"));
  EXPECT_EQ(content_of("/api/v1/topics/{topic}/groups/{group}/seek", "post").at("oneOf").size(), 3U);
  EXPECT_EQ(content_of("/api/v1/users/{user_id}", "put").at("anyOf").size(), 2U);
  EXPECT_TRUE(content_of("/api/v1/topics/{topic}", "put").contains("dependentRequired"));
  EXPECT_EQ(content_of("/api/v1/topics/{topic}", "patch").at("anyOf").size(), 7U);
}

TEST(ApiDocument, DescribesAnswersByTheirTables) {
  const Json& stats = answer_of("/api/v1/topics/{topic}", "get");
  EXPECT_EQ(stats.at("properties").at("settings").at("$ref"), "#/components/schemas/TopicSettings");
  const Json& schemas = document().at("components").at("schemas");
  EXPECT_THAT(schemas.at("TopicSettings").at("required"), ElementsAre("broker_type", "open"));
  EXPECT_TRUE(schemas.at("TopicSettings").at("properties").contains("encrypt_at_rest"));
  EXPECT_TRUE(schemas.at("GroupStats").at("properties").contains("members"));
  EXPECT_EQ(answer_of("/api/v1/topics/{topic}/delayed/cancel", "post").at("required").size(), 5U);
  EXPECT_EQ(answer_of("/api/v1/topics/{topic}", "put", "201").at("properties").at("cmd").at("const"),
            "create_topic");
}

}  // namespace

}  // namespace lightq::broker
