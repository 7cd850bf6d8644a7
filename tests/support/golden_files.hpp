/// Loads the golden files of each format version, and of versions that do not exist yet. Requires: the macro
/// LIGHTQ_GOLDEN_DIR.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::test {

/// Returns the bytes of tests/golden/NAME.
inline std::vector<std::byte> golden_file(const std::string& name) {
  std::ifstream file(std::string(LIGHTQ_GOLDEN_DIR) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const ByteView bytes = as_byte_view(text);
  return {bytes.begin(), bytes.end()};
}

/// Returns a file of a future version: tests/golden/newer/NAME, made by tests/vectors/newer_bytes.py.
inline std::vector<std::byte> newer_file(const std::string& name) {
  return golden_file("newer/" + name);
}

}  // namespace lightq::test
