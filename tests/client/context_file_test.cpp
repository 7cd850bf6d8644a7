/// Tests of the file that names brokers.
#include "client/contexts/context_file.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace lightq::cli {
namespace {

Contexts two_contexts() {
  Contexts contexts;
  contexts.current = "prod";
  contexts.named["prod"] = {"tcp://h:5000", "ann", "/keys/ann.txt", "KEY", "/keys/client.key", ""};
  contexts.named["a \"b\" \\ c/d"] = {"", "", "", "", "", "/data"};
  return contexts;
}

TEST(ContextFile, ReadsWhatItWrites) {
  const auto read = parse_contexts(contexts_text(two_contexts()));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->current, "prod");
  ASSERT_EQ(read->named.size(), 2U);
  EXPECT_EQ(read->named.at("prod").user, "ann");
  EXPECT_EQ(read->named.at("prod").client_key_file, "/keys/client.key");
  EXPECT_EQ(read->named.at("a \"b\" \\ c/d").data_dir, "/data");
}

TEST(ContextFile, ReadsControlCharactersThatItWrites) {
  Contexts contexts;
  const std::string name = "a\x1b[31m\t\n\r\x01\x7f";
  contexts.named[name].broker = "tcp://h:1\x02";
  const auto read = parse_contexts(contexts_text(contexts));
  ASSERT_TRUE(read.has_value());
  ASSERT_TRUE(read->named.contains(name));
  EXPECT_EQ(read->named.at(name).broker, "tcp://h:1\x02");
  for (const char* text : {R"({"current":"\u"})", R"({"current":"\u00"})", R"({"current":"\u00 1"})",
                           R"({"current":"\u-001"})", R"({"current":"\ud800"})"})
    EXPECT_FALSE(parse_contexts(text).has_value()) << text;
}

TEST(ContextFile, IgnoresMembersThatItDoesNotKnow) {
  const auto read = parse_contexts(
      R"({"note":"x", "contexts":{"a":{"broker":"tcp://h:1","colour":"red"}} , "current":"a"} )");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->named.at("a").broker, "tcp://h:1");
}

TEST(ContextFile, RefusesEverythingElse) {
  for (const char* text :
       {"", "{", "[]", "{}x", R"({"contexts":[]})", R"({"contexts":{"a":"b"}})", R"({"current":1})",
        R"({"current":"a})", R"({"current":"\q"})", R"({"current":"a",})", "{\"current\":\"\n\"}"})
    EXPECT_FALSE(parse_contexts(text).has_value()) << text;
  EXPECT_FALSE(parse_contexts(std::string(100'000, '{')).has_value());
}

TEST(ContextFile, OnlyItsOwnerMayReadItAndNobodyElseMayHaveChangedIt) {
  const test::TempDir home;
  const std::string directory = home.path();
  ASSERT_EQ(::setenv("XDG_CONFIG_HOME", directory.c_str(), 1), 0);
  ASSERT_TRUE(read_contexts().ok());
  EXPECT_TRUE(read_contexts()->named.empty());
  ASSERT_TRUE(write_contexts(two_contexts()).ok());
  struct stat about{};
  const std::string path = contexts_path().string();
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  ASSERT_TRUE(read_contexts().ok());
  EXPECT_EQ(read_contexts()->current, "prod");
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  EXPECT_EQ(read_contexts().error().code, ErrorCode::invalid_argument);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  std::ofstream(path) << "nonsense";
  EXPECT_EQ(read_contexts().error().code, ErrorCode::invalid_argument);
  ::unsetenv("XDG_CONFIG_HOME");
}

TEST(ContextFile, AnythingButARegularFileIsAnErrorAndNeverWaitsOrThrows) {
  const test::TempDir home;
  const std::string directory = home.path();
  ASSERT_EQ(::setenv("XDG_CONFIG_HOME", directory.c_str(), 1), 0);
  const std::string path = contexts_path().string();
  std::filesystem::create_directories(path);  // a directory in its place
  EXPECT_EQ(read_contexts().error().code, ErrorCode::invalid_argument);
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_contexts().error().code, ErrorCode::invalid_argument);
  std::filesystem::remove(path);
  std::ofstream(path) << std::string(2'000'000, ' ');
  EXPECT_EQ(read_contexts().error().code, ErrorCode::invalid_argument);
  ::unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace lightq::cli
