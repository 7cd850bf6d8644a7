/// A model of a group under failures and settings: the messages that are not finished, and checks that the
/// group agrees. The steps are in group_failures_random_test.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/consumer_group_harness.hpp"
#include "delivery/consumer_groups.hpp"
#include "support/random.hpp"

namespace lightq::broker {

using std::chrono::milliseconds;
using test::FakeConsumer;
using test::Random;

/// A message that is not finished.
struct FailingMessage {
  std::uint32_t attempts = 0;
  const void* holder = nullptr;
  std::uint32_t hand_out = 0;
  bool started = false;
  bool is_alone = false;     // it was delivered so, and the settings did not change since
  bool is_single = false;    // its next delivery is a slice of one
  SteadyTime until = never;  // if it is started
  SteadyTime not_before{};
  std::optional<DeadState> dead;
  DeathCause cause = DeathCause::attempts;
  std::string reason;
  std::optional<std::int64_t> first_failed_us;
  std::int64_t died_us = 0;
};

struct FailingHolder {
  FakeConsumer consumer;
  GroupMember* member = nullptr;
  bool leases = false;
  std::uint32_t timeout_ms = 0;
  std::uint32_t last_hand_out = 1;
  OffsetRange window{};
  std::uint32_t window_hand_out = 0;
  bool silent = false;
};

class FailureModel {
 public:
  explicit FailureModel(Random& random) : random_(random) {}

  void check() {
    const Offset next = group_->next();
    const auto first = open_.begin();
    const std::uint64_t committed = first == open_.end() ? next.value : std::min(first->first, next.value);
    ASSERT_EQ(group_->committed().value, committed);
    std::uint64_t held = 0;
    std::uint64_t parked = 0;
    std::uint64_t waiting = 0;
    for (const auto& [offset, message] : open_) {
      held += message.holder != nullptr ? 1 : 0;
      parked += message.dead == DeadState::parked ? 1 : 0;
      waiting += message.dead == DeadState::dead_waiting ? 1 : 0;
    }
    const GroupMessages& messages = group_->messages();
    ASSERT_EQ(messages.unacknowledged(), held);
    ASSERT_EQ(messages.parked(), parked);
    ASSERT_EQ(messages.dead_waiting(), waiting);
    ASSERT_EQ(messages.ready(log_.first_offset(), log_.next_offset()) + messages.in_flight() +
                  messages.retrying() + messages.parked() + messages.dead_waiting(),
              open_.size())
        << "each message that is not done with is in one state";
    counters_.acknowledged = acknowledged_;
    ASSERT_EQ(group_->failures().counters(), counters_);
    check_outbox();
    check_stored();
  }

  int in_vain = 0;
  int deaths = 0, alone = 0, singles = 0, retries = 0, transfers = 0, restarts = 0, drained = 0;
  int settled = 0;  // former dead-letter topics that have answered

 protected:
  [[nodiscard]] std::uint32_t max() const { return settings_.max_attempts; }
  [[nodiscard]] std::uint32_t alone_from() const { return std::max<std::uint32_t>(1, max() / 2); }

  // Returned messages.

  void die(std::uint64_t offset, FailingMessage& message, DeathCause cause, std::string reason = {}) {
    ++deaths;
    ++counters_.dead;
    message.dead = settings_.dead_letter_topic.empty() ? DeadState::parked : DeadState::dead_waiting;
    message.cause = cause;
    message.reason = std::move(reason);
    message.died_us = wall_.us;
    message.is_single = false;
    if (message.dead == DeadState::dead_waiting)
      outbox_.insert(std::lower_bound(first_waiting(), outbox_.end(), offset), offset);
  }
  void come_back(std::uint64_t offset, FailingMessage& message, bool failed, std::uint32_t delay_ms = 0) {
    message.holder = nullptr;
    message.started = message.is_alone = false;
    message.until = never;
    message.not_before = now_ + milliseconds(delay_ms);
    if (failed) {
      ++message.attempts;
      if (max() != 0 && !message.first_failed_us) message.first_failed_us = wall_.us;
    }
    if (max() != 0 && message.attempts >= max()) return die(offset, message, DeathCause::attempts);
    if (!failed || delay_ms != 0 || settings_.backoff_ms.empty()) return;
    const auto step = std::min<std::size_t>(message.attempts, settings_.backoff_ms.size());
    message.not_before = now_ + milliseconds(settings_.backoff_ms[step - 1]) * 9 / 10;
  }

  void check_outbox() {
    const GroupDead dead = group_->dead();
    const auto under_way = dead.under_way();
    ASSERT_EQ(under_way.size(), under_way_);
    for (std::size_t i = 0; i < under_way.size(); ++i) {
      ASSERT_EQ(under_way[i].number, first_number_ + i);
      ASSERT_EQ(under_way[i].message.offset.value, outbox_[i]);
    }
    check_set(dead.messages().outbox().messages());
  }
  void check_set(const log::OffsetSet& outbox) {
    ASSERT_EQ(outbox.size(), outbox_.size());
    for (const std::uint64_t offset : outbox_) ASSERT_TRUE(outbox.contains({offset})) << "message " << offset;
  }
  /// Returns the first message of the outbox that is not under way. They ascend from here on.
  [[nodiscard]] std::vector<std::uint64_t>::iterator first_waiting() {
    return outbox_.begin() + static_cast<std::ptrdiff_t>(under_way_);
  }
  /// A new incarnation begins. Messages under way wait again, or are parked.
  void renew() {
    under_way_ = 0;
    first_number_ = 1;
    bound_ = {};
    std::ranges::sort(outbox_);
    park_without_target();
  }
  void park_without_target() {
    if (!settings_.dead_letter_topic.empty()) return;
    for (auto at = first_waiting(); at != outbox_.end(); ++at) open_[*at].dead = DeadState::parked;
    outbox_.erase(first_waiting(), outbox_.end());
  }

  [[nodiscard]] bool is_meant(std::uint64_t offset, const FailingMessage& message,
                              const DeadFilter& filter) const {
    if (!message.dead || (filter.state && *filter.state != *message.dead)) return false;
    if (filter.cause && *filter.cause != message.cause) return false;
    if (filter.ranges.empty()) return true;
    return std::ranges::any_of(filter.ranges, [&](OffsetRange range) {
      return range.begin <= Offset{offset} && Offset{offset} < range.end;
    });
  }
  [[nodiscard]] bool is_under_way(std::uint64_t offset) const {
    return std::find(outbox_.begin(), outbox_.begin() + static_cast<std::ptrdiff_t>(under_way_), offset) !=
           outbox_.begin() + static_cast<std::ptrdiff_t>(under_way_);
  }

  void check_list(const DeadFilter& filter) {
    std::vector<DeadMessage> listed;
    for (std::optional<Offset> from = Offset{0}; from;) {
      DeadList list = group_->dead().list(filter, *from, random_.between(1, 20));
      listed.insert(listed.end(), list.messages.begin(), list.messages.end());
      from = list.next;
    }
    auto at = listed.begin();
    for (const auto& [offset, message] : open_) {
      if (!is_meant(offset, message, filter)) continue;
      ASSERT_NE(at, listed.end()) << "message " << offset << " is not listed";
      ASSERT_EQ(at->offset.value, offset);
      ASSERT_EQ(at->state, *message.dead);
      ASSERT_EQ(at->cause, message.cause);
      ASSERT_EQ(at->attempts, message.attempts);
      ASSERT_TRUE(at->record);
      ASSERT_EQ(at->record->reason, message.reason);
      ASSERT_EQ(at->record->last_failure.us, message.died_us) << "message " << offset;
      const std::int64_t first = message.first_failed_us.value_or(message.died_us);
      ASSERT_LE(at->record->first_failure.us, first) << "message " << offset;
      ASSERT_LT(first - at->record->first_failure.us, 16'000'000) << "message " << offset;
      ++at;
    }
    ASSERT_EQ(at, listed.end());
  }

  void check_stored() {
    log::NamedCursor stored;
    for (log::NamedCursor& cursor : test::stored_cursors(*set_, {now_, wall_})) {
      if (cursor.name.starts_with("group:")) stored = std::move(cursor);
    }
    const DeliveryCounts counts(stored.unfinished.delivery_bits);
    for (const auto& [offset, message] : open_) {
      if (group_->next() <= Offset{offset}) continue;
      ASSERT_TRUE(stored.unfinished.messages.contains({offset})) << "message " << offset;
      ASSERT_EQ(counts.of({offset}), stored_attempts(message)) << "message " << offset;
      ASSERT_EQ(stored.unfinished.dead.parked.contains({offset}), message.dead == DeadState::parked);
    }
    const log::SavedDead& dead = stored.unfinished.dead;
    check_set(dead.outbox);
    const auto begun = std::span(outbox_).first(under_way_);
    ASSERT_TRUE(std::ranges::equal(dead.under_way, begun, {}, &Offset::value));
    if (under_way_ != 0) {
      ASSERT_EQ(dead.target, bound_.value);
    }
  }
  /// Returns the attempts that a restart finds. It kills no message.
  [[nodiscard]] std::uint32_t stored_attempts(const FailingMessage& message) const {
    if (message.holder == nullptr) return message.attempts;
    const std::uint32_t counted = message.attempts + (message.started ? 1U : 0U);
    return max() == 0 ? counted : std::min(counted, max() - 1);
  }

  // Dispatch.

  /// Takes back the messages that members without leases have not acknowledged in time.
  void overdue() {
    for (const auto& holder : holders_) {
      if (holder->leases) continue;
      for (auto& [offset, message] : open_) {
        if (message.holder != holder.get() || now_ < message.until) continue;
        ++counters_.timed_out;
        come_back(offset, message, true);
      }
    }
  }
  void check_revocations() {
    for (const auto& holder : holders_) {
      for (const auto& revocation : std::exchange(holder->consumer.revocations, {})) {
        for (const OffsetRange& range : revocation.ranges) {
          for (std::uint64_t at = range.begin.value; at < range.end.value; ++at) {
            const auto found = open_.find(at);
            ASSERT_NE(found, open_.end());
            ASSERT_EQ(found->second.holder, holder.get());
            const bool timed_out = revocation.cause == RevokeCause::processing_timeout;
            ++(timed_out ? counters_.timed_out : counters_.revoked);
            come_back(at, found->second, timed_out);
          }
        }
      }
    }
  }

  void dispatch_all() {
    do {
      while (set_->dispatch({.now = now_, .wall = wall_, .cursor_bytes_max = 1000}, damage_).more) {
      }
    } while (log_of_topic_.arrive());
  }

  void dispatch() {
    // The model takes messages back in a first dispatch, in which nobody can take messages.
    for (const auto& holder : holders_) holder->consumer.is_writable = false;
    dispatch_all();
    overdue();
    check_revocations();
    for (const auto& holder : holders_) {
      holder->consumer.is_writable = !holder->silent;
      if (!holder->silent) holder->member->wake();
    }
    dispatch_all();
    check_revocations();
    for (const auto& holder : holders_) look_at(*holder);
    check_liveness();
    if (const auto passed = set_->passed(); passed && random_.one_in(4)) log_.trim(*passed);
  }

  void look_at(FailingHolder& holder) {
    for (const auto& frame : std::exchange(holder.consumer.frames, {})) {
      ASSERT_FALSE(holder.silent);
      if (holder.leases) holder.last_hand_out = frame.hand_out;
      const bool is_alone = max() != 0 && frame.delivery - 1 >= alone_from();
      if (is_alone) draining_since_.clear();  // the next suspect begins anew
      if (!holder.leases) {
        for (const auto& [offset, message] : open_) {
          if (message.holder != &holder) continue;
          ASSERT_FALSE(is_alone) << "a member with other messages got message " << frame.range.begin.value;
          ASSERT_FALSE(message.is_alone) << "message " << offset << " is not alone";
        }
      }
      for (std::uint64_t at = frame.range.begin.value; at < frame.range.end.value; ++at) {
        const auto found = open_.find(at);
        ASSERT_NE(found, open_.end()) << "message " << at << " is done, and was delivered again";
        FailingMessage& message = found->second;
        ASSERT_EQ(message.holder, nullptr) << "message " << at << " is held by two";
        ASSERT_FALSE(message.dead) << "message " << at << " is dead";
        ASSERT_LE(message.not_before, now_) << "message " << at << " was to wait";
        ASSERT_EQ(frame.delivery, message.attempts + 1) << "message " << at;
        ASSERT_TRUE((!is_alone && !message.is_single) || distance(frame.range.begin, frame.range.end) == 1);
        alone += is_alone ? 1 : 0;
        singles += message.is_single && !is_alone ? 1 : 0;
        message.is_single = false;
        message.is_alone = is_alone;
        message.holder = &holder;
        message.hand_out = frame.hand_out;
        message.started =
            !holder.leases || (frame.delivery == 1 && frame.hand_out == holder.window_hand_out &&
                               holder.window.begin <= Offset{at} && Offset{at} < holder.window.end);
        message.until = message.started ? deadline_after(now_, holder.timeout_ms) : never;
      }
    }
  }

  /// After a dispatch, no member that could take a message is left without one.
  void check_liveness() {
    if (group_->pause_cause() != PauseCause::none) return;
    const WaitingMessages& waiting = group_->messages().redelivery().waiting();
    int resting = 0;
    for (const auto& holder : holders_) {
      GroupMember& member = *holder->member;
      if (!member.can_take()) {
        if (draining_since_.erase(holder.get()) != 0) {
          ++in_vain_[holder.get()];
          ++in_vain;
        }
        continue;
      }
      const bool has_others = !holder->leases && !member.outstanding().empty();
      if (member.is_resting()) {
        const auto since = draining_since_.try_emplace(holder.get(), now_).first->second;
        ASSERT_TRUE(has_others) << "a member rests that can take any message";
        const bool has_alone = member.outstanding().messages() == 1 && max() != 0 &&
                               member.outstanding().front().value.count > alone_from();
        ASSERT_TRUE(has_alone || !waiting.alone().empty());
        resting += has_alone ? 0 : 1;
        if (has_alone) {
          draining_since_.erase(holder.get());
        } else if (now_ != since) {
          const auto doublings = std::min(in_vain_[holder.get()], 10U);
          ASSERT_LT(now_ - since, Draining::time_min * (1U << doublings)) << "it drains for too long";
        }
        continue;
      }
      if (draining_since_.erase(holder.get()) != 0 && has_others && !waiting.alone().empty()) {
        ++in_vain_[holder.get()];
        ++in_vain;
      }
      ASSERT_TRUE(waiting.ready().empty());
      ASSERT_EQ(group_->next(), log_.next_offset());
      ASSERT_TRUE(has_others || waiting.alone().empty()) << "a member could take a message alone";
    }
    if (waiting.alone().empty()) in_vain_.clear();
    ASSERT_LE(resting, 1) << "one member at a time finishes its messages for one that is to be alone";
    drained += resting;
  }

  Random& random_;
  test::LogOfTopic log_of_topic_{
      std::make_unique<log::RingLog>(log::RingLogOptions{.capacity_bytes = 16 * limits::MiB})};
  log::BatchLog& log_ = log_of_topic_.log_to_use();
  std::unique_ptr<ConsumerGroups> set_;
  ConsumerGroup* group_ = nullptr;
  protocol::GroupSettings settings_;
  DamageCount damage_;
  SteadyTime now_{std::chrono::hours(1)};
  Timestamp wall_{1'000'000'000'000};
  std::vector<std::unique_ptr<FailingHolder>> holders_;
  std::map<const void*, SteadyTime> draining_since_;  // members that rest with other messages
  std::map<const void*, unsigned> in_vain_;           // how often they drained in vain, at most
  std::uint64_t published_ = 0;
  std::map<std::uint64_t, FailingMessage> open_;
  TopicId target_;                     // the dead-letter topic; 0: none
  std::vector<std::uint64_t> outbox_;  // those under way by their numbers, then the others by offset
  std::size_t under_way_ = 0;
  TopicId bound_;  // the target of the incarnation
  std::uint64_t first_number_ = 1;
  std::uint64_t incarnation_ = 0;
  GroupCounters counters_;
  std::uint64_t acknowledged_ = 0;
};

}  // namespace lightq::broker
