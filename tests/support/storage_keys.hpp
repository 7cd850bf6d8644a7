/// Storage keys for tests.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "crypto/storage_keys.hpp"

namespace lightq::test {

/// Returns a line of a key file: 32 times the same byte.
inline std::string key_line(unsigned char byte) {
  constexpr const char* digits = "0123456789abcdef";
  std::string line;
  for (std::size_t i = 0; i < rest::key_bytes; ++i) line += {digits[byte >> 4], digits[byte & 15]};
  return line + "\n";
}

/// Returns the keys of such lines. The first key encrypts.
inline std::unique_ptr<rest::StorageKeys> storage_keys(std::initializer_list<unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += key_line(byte);
  auto keys = rest::StorageKeys::parse(text, "keys of a test");
  EXPECT_TRUE(keys.ok()) << keys.error().text();
  return keys ? std::move(*keys) : nullptr;
}

}  // namespace lightq::test
