/// The messages of the power cut tests. Each one shows which life of the writer made it, and for which
/// offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lightq::test {

/// Returns a message of 20 bytes up to a size that needs a segment of its own. The same arguments give the
/// same message.
std::string cut_message(std::uint64_t life, std::uint64_t offset);

/// Records which life wrote which offsets: each life begins to append at the end that it found.
class CutHistory {
 public:
  /// Takes one `LIFE:OFFSET` for each life, oldest first.
  explicit CutHistory(const std::vector<std::string>& lives);
  /// Returns the fault of the message at this offset, or an empty string.
  [[nodiscard]] std::string fault_of(std::uint64_t offset, std::string_view payload) const;

 private:
  struct Life {
    std::uint64_t number;
    std::uint64_t begin;
  };
  std::vector<Life> lives_;
};

}  // namespace lightq::test
