/// What a topic remembers of its producers, so that a batch that is sent again is not stored again. Layer:
/// delivery. docs/session.md, "Again".
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/session_producing.hpp>

#include "broker/delivery/producer_shares.hpp"

namespace lightq::broker {

/// One producer, as it is remembered.
struct KnownProducer {
  session::ProducerIdentity identity;
  std::uint64_t expected = 0;  ///< the sequence number of its next message
  Timestamp last_used;         ///< on the table's time, see ProducerTable
  /// The user (TicketHolder::sharer) who may open it; nothing: the next one who does, who has it from then
  /// on.
  std::optional<std::uint64_t> owner = {};
  /// Must be shown to open it; nothing: need not.
  std::optional<session::ProducerSecret> secret = {};
  friend bool operator==(const KnownProducer&, const KnownProducer&) = default;
};

/// Messages of one producer: what a batch's header says.
struct Sequences {
  session::ProducerIdentity producer;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;  ///< at least 1
};

/// What is to be done with a batch.
enum class Admission {
  store,            ///< it is the next one
  repeat,           ///< it is stored already: confirm it again
  out_of_sequence,  ///< something before it is missing, or only a part of it is stored
  fenced,           ///< another process has taken the id over
  unknown,          ///< nothing is known of this id (any more)
};

/// The producers of one topic: at most `producers_max`, and when another one begins none idle for longer than
/// `idle_max_us` but those that a channel has open. Who makes room: ProducerShares. No clock, no threads: the
/// reactor's thread.
///
/// Idle time counts on the table's own time, which follows the wall clock but never its steps: it does not go
/// back, and between two calls it goes on by `step_us_max` at most. The time before the first call after
/// `restore`, as while the broker was down, does not count. So a wrong clock makes nobody idle.
class ProducerTable {
 public:
  ProducerTable(std::size_t producers_max, std::int64_t idle_max_us)
      : producers_max_(producers_max), idle_max_us_(idle_max_us), shares_(producers_max) {}
  ProducerTable(const ProducerTable&) = delete;
  ProducerTable& operator=(const ProducerTable&) = delete;
  ProducerTable(ProducerTable&&) = default;
  ProducerTable& operator=(ProducerTable&&) = default;
  ~ProducerTable() = default;

  /// Who opens a producer.
  struct Opener {
    std::uint64_t user = 0;                             ///< TicketHolder::sharer
    std::optional<session::ProducerSecret> shown = {};  ///< the secret that the client has shown
    std::optional<session::ProducerSecret> fresh = {};  ///< for a client that keeps one, and has none yet
  };
  /// What `open` found.
  struct Opened {
    session::Code refusal = session::Code::ok;  ///< else fenced, unknown_producer or limit_reached
    KnownProducer producer;                     ///< without a refusal
  };
  /// A producer begins, or comes back, and is open until `close`. `fresh_id`: for one that has no id yet; not
  /// 0, and not known. To anybody but its owner an id is as good as unknown.
  Opened open(session::ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now) {
    return open(wanted, fresh_id, now, {});
  }
  Opened open(session::ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now, const Opener& opener);
  /// A channel that had it open has not any more: it was in use until now. Nothing happens to one that is not
  /// known.
  void close(std::uint64_t id, Timestamp now);

  /// What is to be done with these messages; changes nothing.
  [[nodiscard]] Admission admit(const Sequences& batch) const;
  /// They are in the log now.
  void stored(const Sequences& batch, Timestamp now);
  /// The same of what is found there at the start, from the oldest to the newest, where a producer may be
  /// unknown, and a later epoch may begin anywhere.
  void found(const Sequences& batch);
  /// Null if nothing is known of it.
  [[nodiscard]] const KnownProducer* find(std::uint64_t id) const;
  /// Nothing is known of it afterwards.
  void forget(std::uint64_t id);
  /// Forgets who was idle for too long, and is not open.
  void expire(Timestamp now);

  /// From the one that was idle longest on; to be given back to `restore`. Those that are open are in use.
  [[nodiscard]] std::vector<KnownProducer> list() const;
  /// Instead of all that is known; nobody has them open, and they take nobody's share.
  void restore(const std::vector<KnownProducer>& producers);
  /// Asks the processor for who stored last.
  void fetch_ahead_newest() const {
    if (!order_.empty()) fetch_ahead(&order_.back());
  }
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }

  /// How much of a wall clock's step forward may be time that has passed.
  static constexpr std::int64_t step_us_max = 24LL * 3600 * 1'000'000;

 private:
  using Order = std::list<KnownProducer>;  // the one that was idle longest first
  Order::iterator lookup(std::uint64_t id);
  void touch(Order::iterator producer);
  void advance(Timestamp now);
  void add(const KnownProducer& producer, std::uint64_t user);

  std::size_t producers_max_;
  std::int64_t idle_max_us_;
  Order order_;
  std::unordered_map<std::uint64_t, Order::iterator> by_id_;
  ProducerShares shares_;
  Timestamp time_;                 // the table's own
  std::optional<Timestamp> seen_;  // the wall clock, when it was told last; nothing since `restore`
};

}  // namespace lightq::broker
