/// Tests of commands of the control protocol that are requests over HTTP.
#include "http/control_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/base64.hpp>
#include <lightq/protocol/json.hpp>

namespace lightq::broker {

namespace {

using ::testing::HasSubstr;

const CommandRoute& route_of(std::string_view method, std::string_view path) {
  const auto routes = command_routes();
  return *std::ranges::find_if(
      routes, [&](const CommandRoute& each) { return each.method == method && each.path == path; });
}

HttpExchange exchange_of(std::vector<std::string> parts, std::string body = {}, std::string_view query = {},
                         std::string_view login = "ann:secret") {
  HttpExchange exchange;
  exchange.parts = std::move(parts);
  exchange.request.body = std::move(body);
  exchange.request.query = Query::parse(query).value_or_throw();
  if (!login.empty()) exchange.request.authorization = Secret("Basic " + to_base64(login));
  return exchange;
}

std::string json_of(const CommandRoute& route, const HttpExchange& exchange) {
  const auto command = command_of(route, exchange, 65'536);
  return command ? protocol::to_json(*command) : command.error().message;
}

TEST(ControlCommand, JoinsPathParametersContentAndLogin) {
  EXPECT_EQ(
      json_of(route_of("PUT", "/api/v1/topics/{topic}"), exchange_of({"t"}, "{\"broker_type\":\"queue\"}")),
      json_of(route_of("PUT", "/api/v1/topics/{topic}"),
              exchange_of({"t"}, " {\"broker_type\" : \"queue\"} ")));
  const std::string listed = json_of(route_of("GET", "/api/v1/topics/{topic}/groups/{group}/dead"),
                                     exchange_of({"t", "g"}, {}, "limit=3&after_offset=7"));
  for (const char* const part : {"\"cmd\":\"list_dead\"", "\"topic\":\"t\"", "\"group\":\"g\"", "\"limit\":3",
                                 "\"after_offset\":7", "\"user_id\":\"ann\"", "\"password\":\"secret\""})
    EXPECT_THAT(listed, HasSubstr(part));
  EXPECT_THAT(json_of(route_of("DELETE", "/api/v1/users/{user_id}"), exchange_of({"bob"})),
              HasSubstr("\"admin_user_id\":\"ann\""));
}

TEST(ControlCommand, AUserChangesItsOwnPassword) {
  const CommandRoute& route = route_of("PUT", "/api/v1/users/{user_id}/password");
  const std::string content = "{\"new_password\":\"n\"}";
  EXPECT_THAT(json_of(route, exchange_of({"ann"}, content)), HasSubstr("\"user_id\":\"ann\",\"password\":"));
  EXPECT_THAT(json_of(route, exchange_of({"bob"}, content)), HasSubstr("\"admin_user_id\":\"ann\""));
}

TEST(ControlCommand, TakesNothingTwiceAndNoCredentialsFromTheContent) {
  const CommandRoute& create = route_of("PUT", "/api/v1/topics/{topic}");
  for (const char* const name : {"topic", "cmd", "admin_user_id", "admin_password"})
    EXPECT_THAT(json_of(create, exchange_of({"t"}, std::string("{\"") + name + "\":\"x\"}")),
                HasSubstr(name));
  const CommandRoute& join = route_of("POST", "/api/v1/topics/{topic}/join");
  for (const char* const name : {"user_id", "password"})
    EXPECT_THAT(json_of(join, exchange_of({"t"}, std::string("{\"") + name + "\":\"x\"}")),
                HasSubstr("not in the content"));
  const CommandRoute& pause = route_of("POST", "/api/v1/topics/{topic}/pause");
  EXPECT_THAT(json_of(pause, exchange_of({"t"}, "{}")), HasSubstr("no content"));
  EXPECT_THAT(json_of(pause, exchange_of({"t"}, {}, "x=1")), HasSubstr("no such parameter"));
}

TEST(ControlCommand, NeedsALogin) {
  const auto code_of = [](const CommandRoute& route, const HttpExchange& exchange) {
    const auto command = command_of(route, exchange, 65'536);
    return command ? ErrorCode::internal : command.error().code;
  };
  const CommandRoute& list = route_of("GET", "/api/v1/topics");
  for (const char* const login : {"", ":", "ann:", ":secret", "no colon", "\xE4nn:secret", "ann:\xFF"})
    EXPECT_EQ(code_of(list, exchange_of({}, {}, {}, login)), ErrorCode::unauthorized_access) << login;
  // An open topic needs none.
  EXPECT_TRUE(command_of(route_of("GET", "/api/v1/topics/{topic}"), exchange_of({"t"}, {}, {}, ""), 65'536));
  EXPECT_TRUE(command_of(route_of("GET", "/api/v1/version"), exchange_of({}, {}, {}, ""), 65'536));
}

TEST(ControlCommand, ReadsNumbersAndTruthStrictly) {
  const CommandRoute& dead = route_of("GET", "/api/v1/topics/{topic}/dead");
  for (const char* const query : {"limit=", "limit=-1", "limit=1.5", "limit=x", "limit=99999999999999999999"})
    EXPECT_THAT(json_of(dead, exchange_of({"t"}, {}, query)), HasSubstr("limit: ")) << query;
  const CommandRoute& purge = route_of("POST", "/api/v1/topics/{topic}/purge");
  EXPECT_THAT(json_of(purge, exchange_of({"t"}, {}, "delayed=1")), HasSubstr("true or false"));
  EXPECT_THAT(json_of(purge, exchange_of({"t"}, {}, "delayed=true")), HasSubstr("\"delayed\":true"));
}

TEST(ControlCommand, EveryCommandButPingIsAResource) {
  std::set<std::string_view> found;
  for (const CommandRoute& route : command_routes()) found.insert(route.cmd);
  EXPECT_EQ(found.size() + 1, std::variant_size_v<protocol::Request>);
}

}  // namespace

}  // namespace lightq::broker
