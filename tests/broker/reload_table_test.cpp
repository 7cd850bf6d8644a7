/// Tests of broker/reload_table: each setting says whether a reload changes it, and the plan obeys.
#include "broker/reload_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lightq::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ReloadTable, HasARowForEachSettingInTheirOrder) {
  ASSERT_EQ(reload_rows().size(), settings().size());
  for (std::size_t i = 0; i < settings().size(); ++i) EXPECT_EQ(reload_rows()[i].name, settings()[i].name);
}

TEST(ReloadTable, EachRowComparesAndCopiesTheFieldOfItsSetting) {
  for (std::size_t i = 0; i < settings().size(); ++i) {
    const ReloadRow& row = reload_rows()[i];
    Config other;
    const char* const texts[] = {
        "4", "500", "70000", "2000000", "true", "7-8", "debug", "tcp://127.0.0.1:4", "somewhere"};
    bool is_set = false;
    for (const char* const text : texts) is_set = is_set || settings()[i].set(other, text).ok();
    ASSERT_TRUE(is_set) << row.name;
    EXPECT_FALSE(row.is_same(Config(), other)) << row.name;
    Config copied;
    row.copy(other, copied);
    EXPECT_TRUE(row.is_same(copied, other)) << row.name;
    for (const ReloadRow& each : reload_rows()) EXPECT_TRUE(each.is_same(copied, other)) << each.name;
  }
}

TEST(ReloadTable, APlanChangesWhatItMayAndNamesTheRest) {
  Config in_force;
  Config read;
  read.log_level = LogLevel::debug;
  read.topics_max = 7;
  read.bind_host = "127.0.0.2";
  const ReloadPlan plan = plan_reload(in_force, read);
  EXPECT_THAT(plan.changed, ElementsAre("log_level", "topics_max"));
  EXPECT_THAT(plan.needs_restart, ElementsAre("bind"));
  EXPECT_EQ(plan.config.log_level, LogLevel::debug);
  EXPECT_EQ(plan.config.topics_max, 7U);
  EXPECT_EQ(plan.config.bind_host, in_force.bind_host);
  take_reloadable(plan.config, in_force);
  EXPECT_THAT(plan_reload(in_force, read).changed, IsEmpty());
  EXPECT_THAT(plan_reload(in_force, read).needs_restart, ElementsAre("bind"))
      << "it still waits for a restart";
}

TEST(ReloadTable, CertificatesWaitForTheRestartThatChangesEncryption) {
  Config in_force;
  in_force.encrypt = true;
  Config read = in_force;
  read.tls_certificate = "other.crt";
  EXPECT_THAT(plan_reload(in_force, read).changed, ElementsAre("tls_certificate"));
  in_force.encrypt = false;
  const ReloadPlan plan = plan_reload(in_force, read);
  EXPECT_THAT(plan.changed, IsEmpty());
  EXPECT_THAT(plan.needs_restart, ElementsAre("encrypt", "tls_certificate"));
  EXPECT_TRUE(plan.config.tls_certificate.empty());
}

TEST(ReloadTable, TheLogNamesWhatHasChanged) {
  EXPECT_EQ(reload_text({}), "reload: nothing has changed");
  EXPECT_EQ(reload_text({{"log_level", "topics_max"}, {}}), "reload: changed: log_level, topics_max");
  EXPECT_EQ(reload_text({{}, {"bind"}}), "reload: nothing has changed; needs a restart: bind");
}

}  // namespace
}  // namespace lightq::broker
