/// The consumers of a topic that are connected over sessions. Layer: topic.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "admission/limit_counts.hpp"
#include "delivery/session_consumer.hpp"
#include "delivery/topic.hpp"
#include "topic/runtime/topic_activity.hpp"

namespace lightq::broker {

/// Keeps the connected consumers, and sets the membership of each. The topic calls it. Acknowledgements go to
/// the consumer's group directly (member_acks.hpp). Consumers are called back from `dispatch` and `end`, and
/// may detach during such a call. Calls for a consumer that is not attached have no effect. Thread: the
/// reactor's. A call that may change what can be delivered requests a dispatch.
class TopicConsumers {
 public:
  /// `durable`: groups survive a restart, so a consumer waits until its new group is on disk.
  /// `limits_reached`: null if refusals are not counted. Lifetime: `topic`, `activity`
  /// and `limits_reached` outlive this.
  TopicConsumers(Topic& topic, TopicActivity& activity, bool durable, LimitCounts* limits_reached = nullptr)
      : topic_(topic), activity_(activity), durable_(durable), limits_reached_(limits_reached) {}

  /// Returns the wall time.
  [[nodiscard]] Timestamp now() const { return activity_.now(); }

  /// The reason why a consumer was not opened.
  struct Refusal {
    ClientError code = ClientError::none;  ///< none: the consumer was opened
    ConsumerGroups::Crowd crowd =
        ConsumerGroups::Crowd::groups;  ///< with limit_reached: the limit that was reached
    friend bool operator==(const Refusal& refusal, ClientError other) { return refusal.code == other; }
  };
  /// Opens the group and attaches the consumer. The consumer is admitted by a later `dispatch`. Opening a
  /// consumer's own cursor again ends its former consumer as fenced; the new one is admitted when the former
  /// one's messages are requeued. `owner`: see ConsumerGroups::open.
  Refusal open(const ConsumeRequest& asked, SessionConsumer& consumer, const LogLives& lives,
               std::uint64_t user, std::uint64_t owner);
  /// Says how the consumer ends: its client has closed it or said goodbye, or the broker stops. Its detaching
  /// follows.
  static void ends_by(const SessionConsumer& consumer, MemberEnd end);
  /// Removes the consumer. Its messages in flight are requeued, now or in later turns.
  void detach(SessionConsumer& consumer);
  /// Called when the consumer has become writable again.
  void wake(SessionConsumer& consumer);
  /// Adds credit. Returns false, and changes nothing, if that is more than the protocol allows.
  [[nodiscard]] bool add_credit(SessionConsumer& consumer, const Credit& credit);
  /// Ends the consumer, in the next dispatch, because its messages in flight are in too many ranges.
  void end_in_pieces(SessionConsumer& consumer);
  /// Returns true if the consumer has messages in flight that are not overdue.
  [[nodiscard]] static bool has_in_flight(const SessionConsumer& consumer);
  /// Called when the consumer's client has become silent, or is heard again. With leases, another consumer
  /// may receive what a silent client has not started.
  void set_silent(SessionConsumer& consumer, bool silent);
  /// Tells the consumer, if it has leases, that all its messages are revoked. Its detaching follows.
  static void tell_end(const SessionConsumer& consumer, RevokeCause cause);
  /// Returns true if the consumer's group has members of other users, or plain consumers.
  [[nodiscard]] static bool shares_group_with_others(const SessionConsumer& consumer);
  /// Moves the cursor of the consumer's group. Returns the offset that is delivered next. Errors: see
  /// ConsumerGroups::seek.
  Result<Offset> seek(SessionConsumer& consumer, const StartPosition& to);
  [[nodiscard]] std::size_t connected() const { return attached_.size(); }

  /// Calls `end` of consumers that have to end, admits consumers that need not wait any longer, and
  /// dispatches messages.
  Topic::DispatchResult dispatch(const DeliveryContext& context);
  /// Returns true if a consumer waits to be admitted, which may need a save of the cursors.
  [[nodiscard]] bool waits_for_save() const { return !waiting_.empty(); }
  /// Called when the save of the cursors has ended, after topic.groups() was told. If it succeeded, the next
  /// dispatch admits the consumers that waited for it. If it failed, the next dispatch ends them.
  void saved(const Result<void>& result);
  /// Detaches and ends all consumers.
  void end(ClientError code, const std::string& why);

 private:
  using Membership = SessionConsumer::Membership;
  struct Condemned {
    SessionConsumer* consumer;
    ClientError code;
    std::string why;
  };

  void leave(const Membership& left);
  void condemn(SessionConsumer& consumer, ClientError code, std::string why);
  void end_condemned();
  bool admit();
  template <typename Turn>
  void in_turn(Turn&& turn);
  void let_go();

  Topic& topic_;
  TopicActivity& activity_;
  const bool durable_;
  LimitCounts* const limits_reached_;
  bool in_turn_ = false;  // consumers are being called, so members must be kept
  std::unordered_set<SessionConsumer*> attached_;
  std::vector<SessionConsumer*> waiting_;  // attached, and not admitted yet
  std::deque<Condemned> condemned_;        // detached, and `end` not called yet
  std::deque<Membership> left_;            // detached; their members go after the turn or in a later one
};

}  // namespace lightq::broker
