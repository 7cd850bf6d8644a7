/// Unique messages of the power cut tests; see cut_messages.hpp.
#include "powercut/cut_messages.hpp"

#include <cstdlib>

namespace lightq::test {

namespace {

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

std::size_t bytes_of(std::uint64_t random) {
  const std::size_t kind = random % 64;
  if (kind == 0) return 24'000;
  return kind < 6 ? 5000 : 20 + random / 64 % 300;
}

}  // namespace

std::string cut_message(std::uint64_t life, std::uint64_t offset) {
  std::uint64_t random = mixed(life * 0x9E3779B97F4A7C15 + offset + 1);
  std::string made = std::to_string(life) + ' ' + std::to_string(offset) + ' ';
  const std::size_t bytes = bytes_of(random);
  made.reserve(bytes);
  while (made.size() < bytes) {
    random = mixed(random + 0x9E3779B97F4A7C15);
    made.append(reinterpret_cast<const char*>(&random), sizeof random);
  }
  return made;
}

CutHistory::CutHistory(const std::vector<std::string>& lives) {
  for (const std::string& life : lives) {
    char* rest = nullptr;
    const std::uint64_t number = std::strtoull(life.c_str(), &rest, 10);
    lives_.push_back({number, std::strtoull(rest + 1, nullptr, 10)});
  }
}

std::string CutHistory::fault_of(std::uint64_t offset, std::string_view payload) const {
  std::uint64_t writer = 0;
  for (const Life& life : lives_) {
    if (life.begin <= offset) writer = life.number;
  }
  if (payload == cut_message(writer, offset)) return {};
  return "offset " + std::to_string(offset) + " was written by life " + std::to_string(writer) +
         ", but what is there begins with '" + std::string(payload.substr(0, payload.find(' ', 3))) + "'";
}

}  // namespace lightq::test
