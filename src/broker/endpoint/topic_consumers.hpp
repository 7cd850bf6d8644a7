/// The consumers that reach a topic over sessions, as the topic sees them. Layer: endpoint.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "broker/delivery/session_consumer.hpp"
#include "broker/delivery/topic.hpp"
#include "broker/endpoint/limit_counts.hpp"

namespace lightq::broker {

/// The connected ones, each with its place in a group. They are called back from `pump`, `saved` and `end`
/// only, and may detach from within; of one that is not attached all else is passed over. The reactor's
/// thread.
class TopicConsumers {
 public:
  /// `durable`: groups outlive the broker, so that a consumer waits until its new group is on the disk. The
  /// topic outlives it.
  /// `limits_reached`: outlives it; null: not counted.
  TopicConsumers(Topic& topic, bool durable, LimitCounts* limits_reached = nullptr)
      : topic_(topic), durable_(durable), limits_reached_(limits_reached) {}

  /// Why a consumer is not opened.
  struct Refusal {
    session::Code code = session::Code::ok;           ///< ok: it is
    GroupSet::Crowd crowd = GroupSet::Crowd::groups;  ///< limit_reached: of what there may be no more
    friend bool operator==(const Refusal& refusal, session::Code other) { return refusal.code == other; }
  };
  /// `owner`: see GroupSet::open.
  Refusal open(const session::ConsumeOpen& asked, SessionConsumer& consumer, const LogLives& lives,
               std::uint64_t user, std::uint64_t owner);
  void detach(SessionConsumer& consumer);
  /// The consumer was not writable, and is.
  void wake(SessionConsumer& consumer);
  [[nodiscard]] bool add_credit(SessionConsumer& consumer, const session::Credit& credit);
  void acknowledge(SessionConsumer& consumer, const session::Acknowledge& acknowledged);
  void reject(SessionConsumer& consumer, const session::Reject& rejected, SteadyTime now);
  void extend(SessionConsumer& consumer, const session::Extend& extended, SteadyTime now);
  /// The consumer has messages whose time to be acknowledged is not over.
  [[nodiscard]] bool has_in_flight(SessionConsumer& consumer) const;
  /// Members of the consumer's group belong to other users.
  [[nodiscard]] bool shares_group_with_others(SessionConsumer& consumer) const;
  /// The offset that comes next.
  Result<Offset> seek(SessionConsumer& consumer, const session::Place& to);
  [[nodiscard]] std::size_t connected() const { return attached_.size(); }

  /// Ends who is to be ended, admits who need not wait any longer, and hands out.
  Topic::Pumped pump(SteadyTime now);
  /// Somebody waits for cursors to be saved.
  [[nodiscard]] bool waits_for_save() const { return !waiting_.empty(); }
  /// The save that topic.groups() was told of has ended: who waits for it may begin at the next pump, or is
  /// ended.
  void saved(const Result<void>& result);
  /// Ends all.
  void end(session::Code code, const std::string& why);

 private:
  struct Attached {
    Group* group = nullptr;
    GroupMember* member = nullptr;
  };
  struct Condemned {
    SessionConsumer* consumer;
    session::Code code;
    std::string why;
  };

  Attached* find(SessionConsumer& consumer);
  void leave(const Attached& attached);
  void condemn(SessionConsumer& consumer, session::Code code, std::string why);
  void end_in_pieces(SessionConsumer& consumer, const GroupMember& member);
  void end_condemned();
  void admit();
  template <typename Turn>
  void in_turn(Turn&& turn);
  void let_go();

  Topic& topic_;
  const bool durable_;
  LimitCounts* const limits_reached_;
  bool in_turn_ = false;  // consumers are being called: no member may go
  std::unordered_map<SessionConsumer*, Attached> attached_;
  std::vector<SessionConsumer*> waiting_;  // of these: to be admitted
  std::deque<Condemned> condemned_;        // not attached any more: to be told
  std::deque<Attached> left_;              // to be forgotten after the turn, or in a later one
};

}  // namespace lightq::broker
