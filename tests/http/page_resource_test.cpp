/// Tests of the files of the page.
#include "http/resources/page_resource.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace lightq::broker {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

HttpResponse page_answer(const std::string& path) {
  Router router;
  PageResource::add_to(router);
  HttpResponse got;
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  router.handle({std::move(request), {}, {}, [&got](HttpResponse response) { got = std::move(response); }});
  return got;
}

TEST(PageResourceTest, ServesEveryFileUnderAPathOfItsOwn) {
  std::set<std::string_view> paths;
  for (const PageFile& file : page_files()) {
    EXPECT_TRUE(paths.insert(file.path).second) << file.path;
    const HttpResponse got = page_answer(std::string(file.path));
    EXPECT_EQ(got.status, 200U) << file.path;
    EXPECT_EQ(got.body, file.text) << file.path;
    EXPECT_EQ(got.content_type, file.content_type) << file.path;
  }
  EXPECT_TRUE(paths.contains("/"));
  EXPECT_THAT(page_answer("/").body, StartsWith("<!doctype html>"));
}

TEST(PageResourceTest, PermitsOnlyFilesOfItsOwnOrigin) {
  for (const PageFile& file : page_files()) {
    std::string policy;
    for (const auto& [name, value] : page_answer(std::string(file.path)).headers)
      if (name == "Content-Security-Policy") policy = value;
    EXPECT_THAT(policy, StartsWith("default-src 'none'; ")) << file.path;
    EXPECT_THAT(policy, HasSubstr("require-trusted-types-for 'script'")) << file.path;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe"))) << file.path;
  }
}

TEST(PageResourceTest, KnowsNoOtherFile) {
  for (const char* const path :
       {"/page", "/page/", "/page/index.html", "/page/../page/main.js", "/index.html"})
    EXPECT_EQ(page_answer(path).status, 404U) << path;
}

}  // namespace

}  // namespace lightq::broker
