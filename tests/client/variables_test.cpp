/// Tests of unknown environment variables: they are refused by name, and no others are.
#include "client/text/variables.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace lightq::cli {
namespace {

std::string told(std::initializer_list<const char*> entries) {
  const std::set<std::string> known = {"LIGHTQ_TOPICS_MAX", "LIGHTQ_PORTS", "LIGHTQ_PASSWORD",
                                       "LIGHTQ_BROKER"};
  std::vector<const char*> environment(entries);
  environment.push_back(nullptr);
  return unknown_variable(known, environment.data()).value_or("");
}

TEST(Variables, AMistypedOneIsRefusedWithTheNearestName) {
  EXPECT_EQ(told({"HOME=/", "LIGHTQ_TOPIC_MAX=5"}),
            "the environment sets LIGHTQ_TOPIC_MAX, but there is no such setting; did you mean "
            "LIGHTQ_TOPICS_MAX?");
  EXPECT_EQ(
      told({"LIGHTQ_PASWORD=hunter2"}),
      "the environment sets LIGHTQ_PASWORD, but there is no such setting; did you mean LIGHTQ_PASSWORD?");
}

TEST(Variables, AnUnknownVariableWithoutASimilarOneIsRefusedToo) {
  EXPECT_EQ(told({"LIGHTQ_FROBNICATION=secret"}),
            "the environment sets LIGHTQ_FROBNICATION, but there is no such setting; unset it, or see --help "
            "for the settings");
  EXPECT_NE(told({("LIGHTQ_" + std::string(100'000, 'X') + "=1").c_str()}), "");
}

TEST(Variables, KnownOnesEmptyOnesAndOthersAreFine) {
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told({"LIGHTQ_TOPICS_MAX=5", "LIGHTQ_TOPIC_MAX=", "LIGHTQX=1", "XLIGHTQ_A=1", "LIGHTQ_A"}), "");
}

TEST(Variables, VariablesOfContainerServicesAreNotSettings) {
  EXPECT_EQ(
      told({"LIGHTQ_SERVICE_HOST=10.0.0.1", "LIGHTQ_SERVICE_PORT=5000", "LIGHTQ_SERVICE_PORT_CONTROL=5000",
            "LIGHTQ_PORT=tcp://10.0.0.1:5000", "LIGHTQ_PORT_5000_TCP=tcp://10.0.0.1:5000",
            "LIGHTQ_PORT_5000_TCP_ADDR=10.0.0.1", "LIGHTQ_NAME=/web/lightq"}),
      "");
  EXPECT_NE(told({"LIGHTQ_PORT=5001-5999"}), "") << "LIGHTQ_PORTS was meant";
  EXPECT_NE(told({"LIGHTQ_PORT_RANGE=5001-5999"}), "");
}

}  // namespace
}  // namespace lightq::cli
