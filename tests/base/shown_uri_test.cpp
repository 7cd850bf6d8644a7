/// Tests of lightq/base/shown_uri.hpp: which parts of addresses and user names error texts repeat.
#include <lightq/base/shown_uri.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace lightq {
namespace {

TEST(ShownUri, HidesEverythingBeforeTheHost) {
  EXPECT_EQ(shown_uri("tcp://ann:hunter2@127.0.0.1:5000"), "tcp://...@127.0.0.1:5000");
  EXPECT_EQ(shown_uri("tcp://ann:hunter@2@h:1"), "tcp://...@h:1");
  EXPECT_EQ(shown_uri("tcp://ann:hun/ter2@h:1"), "tcp://...@h:1");
  EXPECT_EQ(shown_uri("ann:hunter2@127.0.0.1:5000"), "...@127.0.0.1:5000");
  EXPECT_EQ(shown_uri("hunter2@"), "...@");
}

TEST(ShownUri, RepeatsAddressesAsTheyAre) {
  const std::vector<std::string> addresses = {
      "tcp://127.0.0.1:5000",       "tcp://[::1]:5000", "127.0.0.1", "",
      "ipc:///var/lib/a@b/control", "ipc://@abstract"};
  for (const std::string& address : addresses) EXPECT_EQ(shown_uri(address), address);
}

TEST(ShownUser, HidesEverythingAfterAColon) {
  EXPECT_EQ(shown_user("ann:hunter2"), "ann:...");
  EXPECT_EQ(shown_user(":hunter2"), ":...");
  EXPECT_EQ(shown_user("ann"), "ann");
}

}  // namespace
}  // namespace lightq
