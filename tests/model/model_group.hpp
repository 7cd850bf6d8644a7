/// The reference model of a consumer group: plain containers, one entry for each message that is not done.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "delivery/consumer_group.hpp"
#include "model/disagreement.hpp"
#include "model/model_member.hpp"

namespace lightq::model {

using broker::SteadyTime;
using std::chrono::milliseconds;

/// A message that a group is not done with.
struct GroupMessage {
  enum class Dead : std::uint8_t { no, parked, waiting };
  std::uint32_t attempts = 0;
  int holder = 0;  // the member's number; 0: none
  std::uint32_t hand_out = 0;
  bool is_started = false;
  bool is_alone = false;                    // it was delivered so, and the settings did not change since
  bool is_unsent = false;                   // a plain consumer has it, and the system has not
  bool is_single = false;                   // its next delivery is a slice of one
  bool may_return = false;                  // it was given back at a moment that the model does not know
  SteadyTime until = broker::never;         // taken back then, if it is started
  SteadyTime until_latest = broker::never;  // at the latest
  SteadyTime waits_until{};                 // not delivered before
  SteadyTime ready_by{};                    // ready then at the latest
  Dead dead = Dead::no;
  broker::DeathCause cause = broker::DeathCause::attempts;
  std::string reason;
  bool is_vague = false;         // a start has restored a death that the model does not know
  bool has_letter = false;       // the dead-letter topic has it
  bool may_have_letter = false;  // it died twice: a crash may have restored the first death, which has one
  bool was_dropped = false;      // by the log, when it began to wait
  bool is_computed = false;      // it has expired ahead of the group, which keeps it
  enum class Protection : std::uint8_t { no, perhaps, surely };
  Protection protection = Protection::no;  // from expiry: it was given back
};

/// The statement of a save about a message.
struct SavedView {
  bool is_done = false;
  std::uint32_t attempts = 0;
  GroupMessage::Dead dead = GroupMessage::Dead::no;
  friend bool operator==(const SavedView&, const SavedView&) = default;
};

/// A group of the model. Its functions follow the operations of a test and the calls of consumers, and
/// complain if they must not happen. No code is shared with the broker's groups.
class ModelGroup {
 public:
  /// The surroundings of a group.
  struct Parts {
    std::function<SteadyTime()> now;
    std::function<std::int64_t()> ticked_ms;
    std::function<std::uint64_t(std::uint64_t offset)> number_at;  ///< of the content in the topic
    std::function<bool(std::uint64_t offset)> has_expired;         ///< by the wall clock now
    std::function<bool(std::uint64_t offset)> may_have_expired;    ///< now, or at an earlier time
    /// Returns true if a letter of this message is being given back, and notes that the group has it.
    std::function<bool(std::uint64_t offset)> was_given_back;
    std::function<bool(std::uint64_t offset)> is_dropped;  ///< by the log, without a copy
    std::function<bool()> keeps_waiting;                   ///< the log drops nothing that waits
    /// Returns true if a message that fails for good is lost, because the log had dropped it before.
    std::function<bool(std::uint64_t offset)> is_lost;
    /// Counts events of one kind, so that a test can tell that they happen.
    std::function<void(const char* what, std::uint64_t times)> count;
  };
  ModelGroup(std::string of_name, std::uint64_t from, Parts parts)
      : name(std::move(of_name)), start(from), next(from), parts_(std::move(parts)) {}

  // Operations of the test.

  void appended(std::uint64_t offset) { open[offset] = {}; }
  void set_settings(const protocol::GroupSettings& settings);
  void start_work(ModelMember& member, OffsetRange range, std::uint32_t hand_out);
  void extend(ModelMember& member, OffsetRange range, std::uint32_t hand_out, std::uint32_t ms);
  void acknowledge(ModelMember& member, OffsetRange range, std::uint32_t hand_out,
                   const std::set<std::uint64_t>& under_way);
  void reject(ModelMember& member, OffsetRange range, const broker::Rejection& rejection);
  void leave(int number, broker::MemberEnd end);
  void puller_left(int number);
  void seek(std::uint64_t to, std::uint64_t log_end);
  void retry_dead(std::uint64_t offset);
  void finish(std::uint64_t offset);
  void give_back(std::uint64_t offset);
  /// A letter of a message that the group has was given back.
  void protect(std::uint64_t offset, GroupMessage::Protection protection);

  // Expiry. The broker does it at a moment within a second; the world looks when.

  /// The message has expired: it is done, or dead if the group keeps it.
  void expire(std::uint64_t offset);
  /// The group keeps expired messages now, or does not any more.
  void keep_expired(std::uint64_t offset);
  void let_expired_go(std::uint64_t offset);
  [[nodiscard]] bool keeps_expired() const {
    return settings.dead_letter_expired && !settings.dead_letter_topic.empty();
  }
  /// Returns true if the message may have expired, and nothing surely protects it from that.
  [[nodiscard]] bool may_expire(std::uint64_t offset, const GroupMessage& message) const {
    return message.protection != GroupMessage::Protection::surely && parts_.may_have_expired(offset);
  }
  /// Returns true if the message has surely expired, and nothing may protect it from that.
  [[nodiscard]] bool must_expire(std::uint64_t offset, const GroupMessage& message) const {
    return message.protection == GroupMessage::Protection::no && parts_.has_expired(offset);
  }
  /// Returns true if the message has expired and may be there again after a start.
  [[nodiscard]] bool may_revive(std::uint64_t offset, const SavedView& found) const {
    const auto held = open.find(offset);
    if (held != open.end() && held->second.holder != 0 && may_expire(offset, held->second))
      return found.is_done || found.dead == GroupMessage::Dead::waiting;  // it was returned
    const auto known = expired_.find(offset);
    return known != expired_.end() && (known->second == found || found.dead == GroupMessage::Dead::waiting);
  }

  // Acts of the broker.

  /// Takes messages back that members without leases have not acknowledged in time.
  void take_overdue();
  void told(const Told& told);
  void parked(std::uint64_t offset);
  /// Follows messages that the log, which begins at `first` now, has dropped without a copy. Those that
  /// consumers have, and those `under_way` to the dead-letter topic, are not lost yet.
  void lose_dropped(std::uint64_t first, const std::set<std::uint64_t>& under_way);
  /// Follows messages that plain consumers have sent.
  void settle_pulled();

  // Crashes and restarts.

  [[nodiscard]] SavedView view(std::uint64_t offset, std::uint64_t log_end) const;
  /// Forgets changes that every later crash keeps.
  void forget_changes(std::int64_t before_ms);
  /// Returns true if a crash may restore this view of the message.
  [[nodiscard]] bool is_possible(std::uint64_t offset, const SavedView& found, std::uint64_t log_end) const;
  /// Replaces the state by a restored one.
  void restore(const std::map<std::uint64_t, SavedView>& views, std::uint64_t cursor, bool has_jumped);

  [[nodiscard]] std::uint32_t max() const { return settings.max_attempts; }
  [[nodiscard]] std::uint32_t alone_from() const { return std::max<std::uint32_t>(1, max() / 2); }
  [[nodiscard]] bool is_alone(const GroupMessage& message) const {
    return max() != 0 && message.attempts >= alone_from();
  }
  [[nodiscard]] std::uint64_t committed() const {
    return open.empty() ? next : std::min(open.begin()->first, next);
  }
  [[nodiscard]] ModelMember* member_of(int number);

  const std::string name;
  const std::uint64_t start;  // its first position
  std::uint64_t next;         // the first message that was never delivered
  std::map<std::uint64_t, GroupMessage> open;
  std::map<int, ModelMember> members;
  std::map<int, ModelPuller> pullers;
  protocol::GroupSettings settings;
  bool has_computed = false;  // a message may be `is_computed`
  bool is_paused = false;
  bool is_saved = false;  // a consumer was admitted, so a start finds the group
  broker::GroupCounters counters;
  std::uint64_t lost = 0;
  std::uint64_t perhaps_dead = 0;     // in addition to counters.dead
  std::uint64_t perhaps_expired = 0;  // in addition to counters.expired
  std::uint64_t perhaps_lost = 0;     // in addition to lost

 private:
  struct Change {
    std::int64_t ms;
    std::uint64_t offset;
    SavedView before;
    SteadyTime ready_by;                  // before
    GroupMessage::Protection protection;  // before
  };

  [[nodiscard]] std::string of(std::uint64_t offset) const {
    return "group " + name + ", message " + std::to_string(offset) + ": ";
  }
  GroupMessage& change(std::uint64_t offset);
  void note(std::uint64_t offset);
  void come_back(std::uint64_t offset, bool has_failed, std::uint32_t delay_ms = 0);
  void die(std::uint64_t offset, broker::DeathCause cause, const std::string& reason);
  void lose(std::uint64_t offset);
  /// Ends a message at a request of the test. Messages that the log has dropped by now were dropped before.
  template <typename End>
  void exactly(End&& end) {
    knows_order_ = true;
    end();
    knows_order_ = false;
  }
  void obey_limit();
  void delivered(const Told& told);
  void pulled(const Told& told);
  void revoked(const Told& told);
  void check_order(std::uint64_t first, std::uint32_t delivery) const;
  void check_place(OffsetRange range, std::uint32_t delivery);
  void check_alone(const ModelMember& member, std::uint64_t first, bool takes_alone) const;
  void check_delivered(const Told& told, std::uint64_t at, bool takes_alone);
  void deliver(ModelMember& member, const Told& told, std::uint64_t at, bool takes_alone);
  void set_deadline(GroupMessage& message, std::uint32_t ms) const;
  void set_wait(GroupMessage& message, milliseconds least, milliseconds most) const;
  template <typename Visit>
  void each_held(const ModelMember& member, OffsetRange range, std::uint32_t hand_out, Visit&& visit);

  Parts parts_;
  bool knows_order_ = false;  // of a death and a drop
  std::deque<Change> changes_;
  std::map<std::uint64_t, SavedView> expired_;  // before they expired
  std::set<std::uint64_t> counted_;             // as expired
  std::set<std::uint64_t> perhaps_counted_;     // if they expire: they were done, and a seek went back
};

}  // namespace lightq::model
