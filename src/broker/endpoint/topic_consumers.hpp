/// The consumers that reach a topic over sessions, as the topic sees them. Layer: endpoint.
#pragma once

#include <cstdint>
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

  session::Code open(const session::ConsumeOpen& asked, SessionConsumer& consumer, std::uint64_t incarnation,
                     std::uint64_t user);
  void detach(SessionConsumer& consumer);
  [[nodiscard]] bool add_credit(SessionConsumer& consumer, const session::Credit& credit);
  void acknowledge(SessionConsumer& consumer, const session::Acknowledge& acknowledged);
  void reject(SessionConsumer& consumer, const session::Reject& rejected, SteadyTime now);
  void extend(SessionConsumer& consumer, const session::Extend& extended, SteadyTime now);
  /// The offset that comes next.
  Offset seek(SessionConsumer& consumer, const session::Place& to);
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
  [[nodiscard]] SessionConsumer* consumer_of(const Group& group) const;
  void leave(const Attached& attached);
  void condemn(SessionConsumer& consumer, session::Code code, std::string why);
  void end_if_in_pieces(SessionConsumer& consumer, const Attached& attached);
  void end_condemned();
  void admit();
  template <typename Turn>
  void in_turn(Turn&& turn);

  Topic& topic_;
  const bool durable_;
  LimitCounts* const limits_reached_;
  bool in_turn_ = false;  // consumers are being called: no member may go
  std::unordered_map<SessionConsumer*, Attached> attached_;
  std::vector<SessionConsumer*> waiting_;  // of these: to be admitted
  std::vector<Condemned> condemned_;       // not attached any more: to be told
  std::vector<Attached> left_;             // to be forgotten after the turn
};

}  // namespace lightq::broker
