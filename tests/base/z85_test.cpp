/// Tests of keys as Z85 text.
#include <lightq/base/z85.hpp>

#include <gtest/gtest.h>

namespace lightq {
namespace {

/// Returns a key that repeats the 8 bytes of RFC 32's test case four times. In Z85 they are "HelloWorld".
CurvePublicKey sample() {
  constexpr unsigned char bytes[] = {0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B};
  CurvePublicKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key.at(i) = std::byte{bytes[i % sizeof bytes]};
  return key;
}

TEST(Z85, IsThatOfTheRfc) {
  EXPECT_EQ(to_z85(sample()), "HelloWorldHelloWorldHelloWorldHelloWorld");
  EXPECT_EQ(curve_key_of_z85("HelloWorldHelloWorldHelloWorldHelloWorld"), sample());
  CurvePublicKey greatest{};
  greatest.fill(std::byte{0xFF});
  EXPECT_EQ(to_z85(greatest), "%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0");
  EXPECT_EQ(curve_key_of_z85(to_z85(greatest)), greatest);
  EXPECT_EQ(curve_key_of_z85(to_z85({})), CurvePublicKey{});
}

TEST(Z85, OtherTextIsNoKey) {
  for (const char* text :
       {"", "HelloWorld", "HelloWorldHelloWorldHelloWorldHelloWorl",
        "HelloWorldHelloWorldHelloWorldHelloWorldx", "HelloWorldHelloWorldHelloWorldHello orld",
        "HelloWorldHelloWorldHelloWorldHello,orld", "%nSc1%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0",
        "#####HelloHelloHelloHelloHelloHelloHello"})
    EXPECT_EQ(curve_key_of_z85(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lightq
