/// Tests of the router.
#include "http/router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lightq::broker {

namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    router_.add("GET", "/topics", answer("list"));
    router_.add("GET", "/topics/{topic}", answer("one"));
    router_.add("DELETE", "/topics/{topic}", answer("remove"));
    router_.add("POST", "/topics/{topic}/groups/{group}/pause", answer("pause"));
  }
  static Router::Handler answer(const std::string& name) {
    return [name](const HttpExchange& exchange) {
      HttpResponse response{.body = name};
      for (const std::string& part : exchange.parts) response.body += " " + part;
      exchange.reply(response);
    };
  }
  HttpResponse ask(const std::string& method, const std::string& path) {
    HttpResponse got;
    HttpRequest request;
    request.method = method;
    request.path = path;
    router_.handle(
        {std::move(request), {}, {}, [&got](HttpResponse response) { got = std::move(response); }});
    return got;
  }

 private:
  Router router_;
};

TEST_F(RouterTest, FindsTheRoute) {
  EXPECT_EQ(ask("GET", "/topics").body, "list");
  EXPECT_EQ(ask("GET", "/topics/a").body, "one a");
  EXPECT_EQ(ask("DELETE", "/topics/a").body, "remove a");
  EXPECT_EQ(ask("POST", "/topics/a/groups/b/pause").body, "pause a b");
  EXPECT_EQ(ask("HEAD", "/topics/a").body, "one a");
}

TEST_F(RouterTest, UnknownPathsAreNotFound) {
  for (const char* path :
       {"/", "", "/topic", "/topics/", "/topics/a/", "//topics", "/topics/a/groups//pause", "/TOPICS"})
    EXPECT_EQ(ask("GET", path).status, 404U) << path;
}

TEST_F(RouterTest, OtherMethodsAreNamed) {
  const HttpResponse response = ask("PUT", "/topics/a");
  EXPECT_EQ(response.status, 405U);
  EXPECT_THAT(response.headers, Contains(Pair("Allow", "GET, HEAD, DELETE")));
}

TEST_F(RouterTest, WhatThePathSaysIsShownWithoutControlCharacters) {
  const HttpResponse response = ask("GET", "/\x1b[31m\"<script>");
  EXPECT_EQ(response.status, 404U);
  EXPECT_EQ(response.body.find('\x1b'), std::string::npos);
  EXPECT_THAT(response.body, HasSubstr("\\\"<script>"));
}

}  // namespace

}  // namespace lightq::broker
