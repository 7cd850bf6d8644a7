/// The messages of the power cut tests: each tells which life of the writer made it, and for which offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lightq::test {

/// From 20 bytes to what needs a segment of its own; the same for the same arguments.
std::string cut_message(std::uint64_t life, std::uint64_t offset);

/// Which life wrote which offsets: each began to append at the end of what it had found.
class CutHistory {
 public:
  /// From `LIFE:OFFSET` of each life, oldest first.
  explicit CutHistory(const std::vector<std::string>& lives);
  /// What is wrong with the message at this offset; empty: nothing.
  [[nodiscard]] std::string fault_of(std::uint64_t offset, std::string_view payload) const;

 private:
  struct Life {
    std::uint64_t number;
    std::uint64_t begin;
  };
  std::vector<Life> lives_;
};

}  // namespace lightq::test
