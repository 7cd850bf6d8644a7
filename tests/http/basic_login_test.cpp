/// Tests of logins by HTTP Basic.
#include "http/basic_login.hpp"

#include <gtest/gtest.h>

#include <string>

#include <lightq/base/base64.hpp>
#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {

std::optional<protocol::Credentials> read(const std::string& pair, const std::string& scheme = "Basic ") {
  return basic_credentials(Secret(scheme + to_base64(pair)));
}

TEST(BasicLogin, ReadsUserAndPassword) {
  const auto found = read("ann:pass:word");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->user_id, "ann");
  EXPECT_EQ(found->password.expose(), "pass:word") << "only the first colon counts";
  EXPECT_TRUE(read("ann:x", "bAsIc "));
  EXPECT_TRUE(read("ann:", "Basic  "));
}

TEST(BasicLogin, RefusesOtherTexts) {
  for (const char* wrong :
       {"", "Basic", "Basic ", "Basic ann:x", "Bearer YTpi", "Basic YTpi=", "Basic YTp", "Basic YW5u"})
    EXPECT_FALSE(basic_credentials(Secret(wrong))) << wrong;
}

TEST(BasicLogin, HasTheLimitsOfTheControlSocket) {
  EXPECT_TRUE(
      read(std::string(limits::user_id_bytes_max, 'a') + ":" + std::string(limits::password_bytes_max, 'b')));
  EXPECT_FALSE(read(std::string(limits::user_id_bytes_max + 1, 'a') + ":b"));
  EXPECT_FALSE(read("a:" + std::string(limits::password_bytes_max + 1, 'b')));
}

}  // namespace

}  // namespace lightq::broker
