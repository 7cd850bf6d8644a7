/// Fuzz target: cron rules and names of time zones. The input is a byte that chooses a zone, eight bytes of a
/// time, and the rule. No rule may crash or take long. If a rule is accepted, its next firing is behind
/// the time, and is the last one up to itself.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "recurring/firing_times.hpp"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

constexpr std::array<std::string_view, 4> zones = {"UTC", "Europe/Berlin", "Australia/Lord_Howe",
                                                   "America/New_York"};
constexpr std::int64_t century_us = 3'155'760'000'000'000;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq;
  using namespace lightq::broker;
  std::int64_t number = 0;
  if (size < 1 + sizeof number) return 0;
  std::memcpy(&number, data + 1, sizeof number);
  const std::string_view rule(reinterpret_cast<const char*>(data) + 1 + sizeof number,
                              size - 1 - sizeof number);
  static_cast<void>(TimeZone::find(rule));
  const auto times = FiringTimes::of(rule, zones.at(data[0] % zones.size()));
  if (!times) {
    must(!times.error().message.empty());
    return 0;
  }
  const Timestamp time{(number < 0 ? -(number + 1) : number) % century_us};
  const auto next = times->next_after(time);
  if (!next) return 0;
  must(time < *next);
  must(times->last_within(time, *next) == next);
  must(!times->last_within(time, {next->us - 1}));
  const auto second = times->next_after(*next);
  must(!second || *next < *second);
  return 0;
}
