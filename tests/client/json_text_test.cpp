/// Tests of JSON as the commands write it.
#include "client/json_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace lightq::cli {
namespace {

TEST(JsonText, WritesObjectsMemberByMember) {
  EXPECT_EQ(JsonObject().text(), "{}");
  EXPECT_EQ(
      JsonObject().add("a", "b\"c").add("n", std::uint64_t{18446744073709551615U}).add("t", true).text(),
      "{\"a\":\"b\\\"c\",\"n\":18446744073709551615,\"t\":true}");
  EXPECT_EQ(JsonObject().add("i", -1).add_bytes("p", "\xff").text(), "{\"i\":-1,\"p_base64\":\"/w==\"}");
}

TEST(JsonText, WritesArrays) {
  JsonArray array;
  EXPECT_EQ(array.text(), "[]");
  array.add("1");
  array.add("{}");
  EXPECT_EQ(array.text(), "[1,{}]");
}

}  // namespace
}  // namespace lightq::cli
