/// Chooses which connections end when large messages take too much memory. Layer: admission.
#include "admission/buffer_budget.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace lightq::broker {

namespace {
// The least time between two searches: each visits all entries
constexpr auto look_interval = std::chrono::milliseconds(100);
}  // namespace

bool BufferBudget::note(Holder& holder, bool moved, Clock::time_point now) {
  auto entry = entries_.find(&holder);
  if (entry == entries_.end()) {
    if (holder.buffered_bytes() < counted_from) return false;
    entry = entries_.emplace(&holder, Entry{0, now}).first;
  }
  if (moved) entry->second.moved = now;
  const std::size_t before = entry->second.bytes;
  if (!update(holder, entry)) return false;
  const bool grew = entry->second.bytes > before;
  if (grew && (bytes_ > bytes_max_ || (bytes_ > bytes_max_ / 4 && now >= next_look_))) make_room(holder, now);
  return true;
}

void BufferBudget::forget(Holder& holder) {
  const auto entry = entries_.find(&holder);
  if (entry == entries_.end()) return;
  bytes_ -= entry->second.bytes;
  entries_.erase(entry);
}

/// Updates the entry to the holder's present bytes. Returns false if they are below `counted_from`; then the
/// entry has been removed.
bool BufferBudget::update(Holder& holder, Entries::iterator entry) {
  const std::size_t bytes = holder.buffered_bytes();
  bytes_ = bytes_ - entry->second.bytes + bytes;
  entry->second.bytes = bytes;
  if (bytes >= counted_from) return true;
  bytes_ -= bytes;
  entries_.erase(entry);
  return false;
}

void BufferBudget::make_room(const Holder& asking, Clock::time_point now) {
  next_look_ = now + look_interval;
  release_spare_memory(asking);
  std::size_t waiting = 0;  // in holders that wait for the broker; no other holder ends because of them
  for (const auto& [holder, entry] : entries_) waiting += holder->waits_for_us() ? entry.bytes : 0;
  while (bytes_ - waiting > bytes_max_ / 4) {
    const auto still = first_that_stands_still(asking, now - still_time);
    if (still == entries_.end()) break;
    end(still, now);
  }
  while (bytes_ > bytes_max_) {
    const auto victim = first_to_go(asking);
    if (victim == entries_.end()) return;
    end(victim, now);
  }
}

void BufferBudget::release_spare_memory(const Holder& asking) {
  std::vector<Holder*> others;
  others.reserve(entries_.size());
  for (const auto& [holder, entry] : entries_) {
    if (holder != &asking) others.push_back(holder);
  }
  for (Holder* const holder : others) {
    holder->release_spare_memory();
    update(*holder, entries_.find(holder));
  }
}

/// Returns the entry to end next when the bound is exceeded: of the user with most bytes, first those that do
/// not wait for the broker, and of these the one that has not moved for longest. Returns end() if only
/// `asking` has an entry.
BufferBudget::Entries::iterator BufferBudget::first_to_go(const Holder& asking) {
  auto bytes = bytes_by_user(true);
  const auto rank = [&](const Entries::value_type& each) {
    const Holder& holder = *each.first;
    return std::tuple(&holder != &asking, bytes[holder.held_by()], !holder.waits_for_us(),
                      -each.second.moved.time_since_epoch());
  };
  const auto found = std::ranges::max_element(entries_, {}, rank);
  return found == entries_.end() || found->first == &asking ? entries_.end() : found;
}

/// Returns the entry of the user with most bytes that has not moved since `since` and for longest. Entries
/// that wait for the broker are neither counted nor chosen. So no user with few bytes loses a connection
/// because of another user's bytes. Returns end() if all of that user's entries have moved since then, or if
/// the user has at most an eighth of the bound.
BufferBudget::Entries::iterator BufferBudget::first_that_stands_still(const Holder& asking,
                                                                      Clock::time_point since) {
  const auto bytes = bytes_by_user(false);
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& user) { return user.second; });
  if (most == bytes.end() || most->second <= bytes_max_ / 8) return entries_.end();
  const auto rank = [&](const Entries::value_type& each) {
    const Holder& holder = *each.first;
    const bool may_end = &holder != &asking && !holder.waits_for_us() && holder.held_by() == most->first &&
                         each.second.moved < since;
    return std::pair(may_end, -each.second.moved.time_since_epoch());
  };
  const auto found = std::ranges::max_element(entries_, {}, rank);
  return found == entries_.end() || !rank(*found).first ? entries_.end() : found;
}

/// Returns the bytes of each user. `with_waiting`: includes entries that wait for the broker.
std::unordered_map<std::uint64_t, std::size_t> BufferBudget::bytes_by_user(bool with_waiting) const {
  std::unordered_map<std::uint64_t, std::size_t> bytes;
  for (const auto& [holder, entry] : entries_) {
    if (with_waiting || !holder->waits_for_us()) bytes[holder->held_by()] += entry.bytes;
  }
  return bytes;
}

void BufferBudget::end(Entries::iterator entry, Clock::time_point now) {
  say_so(*entry->first, now);
  Holder& holder = *entry->first;
  bytes_ -= entry->second.bytes;
  entries_.erase(entry);
  count(refusals_, Limit::unfinished_bytes_total);
  holder.end_soon("partly transferred large messages use more memory than unfinished_bytes_total allows");
}

/// Logs a warning at most once in `said_again_after`. The line that `debug` logs when the connection ends
/// names the connection.
void BufferBudget::say_so(const Holder& ended, Clock::time_point now) {
  if (sink_ == nullptr || now < next_said_) return;
  next_said_ = now + said_again_after;
  sink_->warn("closed a connection: partly transferred large messages use " + std::to_string(bytes_) +
              " of the " + std::to_string(bytes_max_) +
              " bytes that a thread allows (unfinished_bytes_total); bytes of the connection's user: " +
              std::to_string(bytes_by_user(true)[ended.held_by()]));
}

}  // namespace lightq::broker
