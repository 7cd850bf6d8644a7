/// Derives incarnations from the stored lives of a log. Layer: delivery.
#include "delivery/state/log_lives.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace lightq::broker {

namespace {

constexpr std::uint64_t upper_half = 0xFFFFFFFF00000000;
constexpr std::uint32_t spread = 0x9E3779B9;  // odd, so distinct 32-bit numbers give distinct products

std::optional<std::uint64_t> number_in(std::string_view name) {
  if (!name.starts_with(LogLives::cursor_prefix)) return std::nullopt;
  name.remove_prefix(LogLives::cursor_prefix.size());
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
  return whole && number != 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

LogLives::LogLives(std::uint64_t log_incarnation, const std::vector<log::NamedCursor>& stored)
    : LogLives(log_incarnation) {
  for (const log::NamedCursor& cursor : stored) {
    if (const auto number = number_in(cursor.name)) lives_.push_back({*number, cursor.offset});
  }
  std::ranges::sort(lives_, {}, &Life::number);
  if (!lives_.empty()) shown_ = incarnation_of(lives_.back().number);
}

std::uint64_t LogLives::incarnation_of(std::uint64_t number) const {
  const auto lower = static_cast<std::uint32_t>(log_) ^ static_cast<std::uint32_t>(number) * spread;
  return (log_ & upper_half) | lower;
}

std::optional<Offset> LogLives::same_up_to(std::uint64_t incarnation) const {
  Offset same{~std::uint64_t{0}};
  if (incarnation == shown_) return same;
  // Walks from the newest life to the oldest. Below its beginning, each life has the messages of the life
  // before it.
  for (std::size_t life = lives_.size(); life-- > 0;) {
    same = std::min(same, lives_[life].begin);
    if (incarnation == incarnation_of(number_before(life))) return same;
  }
  return std::nullopt;
}

/// Returns the number of the life before `lives_[life]`. If the oldest lives are no longer kept, the one
/// before the first is known only if earlier versions have counted it: they numbered lives one by one.
std::uint64_t LogLives::number_before(std::size_t life) const {
  if (life > 0) return lives_[life - 1].number;
  return lives_.size() < kept_max ? 0 : lives_[life].number - 1;
}

void LogLives::begin(Offset end, std::uint32_t random) {
  std::uint64_t number = (lives_.empty() ? 0 : lives_.back().number) + 1 + random / 2;
  while (same_up_to(incarnation_of(number))) ++number;
  for (Life& life : lives_) life.begin = std::min(life.begin, end);
  lives_.push_back({number, end});
  if (lives_.size() > kept_max) lives_.erase(lives_.begin());
  shown_ = incarnation_of(lives_.back().number);
}

void LogLives::hide(std::uint32_t random) {
  shown_ = (log_ & upper_half) | random;
}

std::vector<log::NamedCursor> LogLives::cursors() const {
  std::vector<log::NamedCursor> cursors;
  for (const Life& life : lives_)
    cursors.push_back({std::string(cursor_prefix) + std::to_string(life.number), life.begin, {}});
  return cursors;
}

}  // namespace lightq::broker
