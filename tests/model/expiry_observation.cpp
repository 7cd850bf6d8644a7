/// Follows messages that expire.
#include <algorithm>

#include "model/world.hpp"

namespace lightq::model {

using namespace broker;
using Dead = GroupMessage::Dead;

namespace {
constexpr std::int64_t us_per_ms = 1000;
constexpr std::int64_t late_ms_max = 1'200;  // a second, and two ticks

/// Tells whether a set has each of some ascending offsets. Lifetime: the set's, which does not change.
class AscendingLook {
 public:
  explicit AscendingLook(const log::OffsetSet* set)
      : set_(set), run_(set == nullptr ? std::nullopt : set->first_behind({0})) {}
  [[nodiscard]] bool finds(std::uint64_t offset) {
    if (run_ && run_->end <= Offset{offset}) run_ = set_->first_behind({offset});
    return run_ && run_->begin <= Offset{offset};
  }

 private:
  const log::OffsetSet* set_;
  std::optional<OffsetRange> run_;
};

/// The group passes expired messages without a delivery, and with them others, which then count as returned.
void pass_expired(ModelGroup& group, std::uint64_t next) {
  if (next <= group.next) return;
  for (auto at = group.open.lower_bound(group.next); at != group.open.end() && at->first < next; ++at)
    demand(at->second.holder == 0 && at->second.attempts == 0, [&] {
      return "group " + group.name + ", message " + std::to_string(at->first) +
             ": the group passed it from " + std::to_string(group.next) + " to " + std::to_string(next) +
             ", holder " + std::to_string(at->second.holder) + ", attempts " +
             std::to_string(at->second.attempts) + ", state " +
             std::to_string(static_cast<int>(at->second.dead));
    });
  group.next = next;
}
}  // namespace

/// A message expires at its own time to live or at the topic's, by the wall clock.
bool World::has_expired(std::uint64_t offset) {
  if (has_expired_.size() <= offset) has_expired_.resize(log_.size(), 0);
  const std::int64_t own = Content{log_.at(offset)}.ttl_ms();
  const auto of_topic = static_cast<std::int64_t>(broker_.catalogue().orders.message_ttl_ms);
  std::int64_t ttl = own == 0 ? of_topic : own;
  if (of_topic != 0) ttl = std::min(ttl, of_topic);
  const bool has = ttl != 0 && appended_us_[offset] + ttl * us_per_ms <= broker_.wall().us;
  if (has) has_expired_[offset] = 1;
  return has;
}

/// Once expired, messages stay so.
bool World::may_have_expired(std::uint64_t offset) {
  return has_expired(offset) || (has_expired_[offset] != 0 && has_stepped_);
}

void World::observe_expired() {
  if (next_content_ < Content::ttl_from) return;
  // Those that consumers have expire too, and stay so.
  std::erase_if(alive_, [&](std::uint64_t offset) { return log_.size() <= offset || has_expired(offset); });
  for (auto& [name, group] : groups_) observe_expired(*group);
}

void World::observe_expired(ModelGroup& group) {
  ConsumerGroup* const found = real(group);
  if (found == nullptr) return;
  GroupMessages& messages = found->messages();
  const ExpiryIndex* const index = messages.expiry().index();
  const log::OffsetSet* const expired = index == nullptr ? nullptr : &index->expired();
  const std::uint64_t next = messages.next().value;
  const WaitingMessages& waiting = messages.redelivery().waiting();
  AscendingLook is_expired(expired), ready(&waiting.ready()), alone(&waiting.alone()),
      delayed(&waiting.delayed());
  std::vector<std::uint64_t> gone;
  for (const auto& [offset, message] : group.open) {
    if (message.holder != 0 || message.dead != Dead::no) continue;
    const bool is_gone = next <= offset
                             ? is_expired.finds(offset)
                             : !ready.finds(offset) && !alone.finds(offset) && !delayed.finds(offset);
    if (is_gone) {
      gone.push_back(offset);
    } else if (group.must_expire(offset, message) && !has_stepped_ && !broker_.is_dead()) {
      const auto since = expired_ms_.try_emplace(offset, broker_.ticked_ms()).first->second;
      demand(broker_.ticked_ms() - since <= late_ms_max,
             [&] { return "group " + group.name + ", message " + std::to_string(offset) + " expires late"; });
    }
  }
  for (const std::uint64_t offset : gone) {
    if (!group.open.at(offset).may_return) group.expire(offset);
  }
  // Those ahead of the group follow its settings.
  const bool keeps = group.keeps_expired();
  const auto ahead = expired == nullptr ? std::nullopt : expired->first_behind({next});
  for (auto run = ahead; run; run = expired->first_behind(run->end)) {
    for (std::uint64_t at = std::max(run->begin.value, next); at < std::min(run->end.value, log_.size());
         ++at) {
      const auto known = group.open.find(at);
      if (keeps && known == group.open.end()) group.keep_expired(at);
      if (!keeps && known != group.open.end() && known->second.dead == Dead::waiting)
        group.let_expired_go(at);
    }
  }
  if (!keeps && group.has_computed) {
    for (auto at = group.open.begin(); at != group.open.end();) {
      const auto here = at++;
      if (here->second.is_computed) group.let_expired_go(here->first);
    }
  }
  if (const DeadMessages* const dead = messages.redelivery().dead()) {
    for (auto run = dead->waiting().first_behind({0}); run; run = dead->waiting().first_behind(run->end)) {
      for (std::uint64_t at = run->begin.value; at < run->end.value; ++at) {
        if (group.open.contains(at)) continue;
        demand(keeps && may_have_expired(at), [&] {
          return "group " + group.name + ", message " + std::to_string(at) + " is dead, and was done";
        });
        group.keep_expired(at);
      }
    }
  }
  if (ahead || group.has_computed) {
    AscendingLook is_ahead(expired);
    group.has_computed = false;
    for (auto& [offset, message] : group.open) {
      message.is_computed = message.dead == Dead::waiting && next <= offset && is_ahead.finds(offset);
      group.has_computed |= message.is_computed;
    }
  }
  pass_expired(group, next);
}

}  // namespace lightq::model
