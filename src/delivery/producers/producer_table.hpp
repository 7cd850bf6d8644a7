/// A topic's known producers, so that a batch that is sent again is not stored again. Layer: delivery.
/// docs/session.md, "Again".
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/base/types.hpp>

#include "admission/producer_shares.hpp"
#include "delivery/producers/producer_identity.hpp"
#include "delivery/state/client_error.hpp"

namespace lightq::broker {

/// A known producer.
struct KnownProducer {
  ProducerIdentity identity;
  std::uint64_t expected = 0;  ///< the sequence number of its next message
  Timestamp last_used;         ///< on the table's time, see ProducerTable
  /// The user (TicketHolder::sharer) that may open it. Nothing: the next user that opens it becomes its
  /// owner.
  std::optional<std::uint64_t> owner = {};
  /// The secret that a client must show to open it. Nothing: no secret is needed.
  std::optional<ProducerSecret> secret = {};
  friend bool operator==(const KnownProducer&, const KnownProducer&) = default;
};

/// Messages of one producer, as a batch's header states them.
struct Sequences {
  ProducerIdentity producer;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;  ///< at least 1
};

/// How to treat a batch.
enum class Admission {
  store,            ///< it is the producer's next batch
  repeat,           ///< it is stored already: confirm it again
  out_of_sequence,  ///< a message before it is missing, or only a part of it is stored
  fenced,           ///< another process has taken over the id
  unknown,          ///< the id is not known, or no longer
};

/// The producers of one topic: at most `producers_max`. ProducerShares chooses the one to forget for a new
/// one.
/// When a producer is opened, producers idle for longer than `idle_max_us` are forgotten, except those that a
/// channel has open.
/// Thread: the reactor's. Has no clock and starts no threads.
///
/// The broker's own producers (Opener::brokers_own) have their place beside those of users, in at most an
/// eighth of the table. One with a place of its own (Opener::has_place) may come on top. The sequence numbers
/// of each begin at own_sequences_begin, ascend, and may leave out some. They are never idle for too long,
/// and no user's producer takes their place. A new one takes the place of the longest closed one when there
/// are too many: of one that belongs to a run or has stored nothing, if there is one.
///
/// A request with an id is a producer, too, of one message (is_of_request). It is never open for long, so
/// there are at most half as many as producers: a new one takes the place of the oldest.
///
/// Idle time is measured on the table's own time. It follows the wall clock but not its steps: it never goes
/// back, and between two calls it advances by `step_us_max` at most.
/// Time before the first call after `restore` does not count, for example while the broker was down. So a
/// wrong clock makes no producer idle.
class ProducerTable {
 public:
  ProducerTable(std::size_t producers_max, std::int64_t idle_max_us)
      : producers_max_(producers_max), idle_max_us_(idle_max_us), shares_(producers_max) {}
  ProducerTable(const ProducerTable&) = delete;
  ProducerTable& operator=(const ProducerTable&) = delete;
  ProducerTable(ProducerTable&&) = default;
  ProducerTable& operator=(ProducerTable&&) = default;
  ~ProducerTable() = default;

  /// The owner of the broker's own producers. No user has this number.
  static constexpr std::uint64_t brokers_own = FairShare::anonymous - 2;

  /// The client that opens a producer.
  struct Opener {
    std::uint64_t user = 0;                    ///< TicketHolder::sharer, or brokers_own
    std::optional<ProducerSecret> shown = {};  ///< the secret that the client has shown
    std::optional<ProducerSecret> fresh = {};  ///< for a client that keeps one and has none yet
    bool has_place = false;  ///< an own producer that others of the broker's own cannot keep out
  };
  /// The result of `open`.
  struct Opened {
    ClientError refusal = ClientError::none;  ///< else fenced, unknown_producer or limit_reached
    KnownProducer producer;                   ///< without a refusal
  };
  /// Opens a new producer, or a known one again. It is open until `close`. `fresh_id` becomes the id of a
  /// producer that has none yet. Requires: fresh_id is not 0 and not known.
  /// If the opener is not the owner, the id counts as unknown. The broker chooses the ids of its own
  /// producers itself: an unknown one is added.
  Opened open(ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now) {
    return open(wanted, fresh_id, now, {});
  }
  Opened open(ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now, const Opener& opener);
  /// Closes the producer for one channel, and counts it as used until now. Does nothing if it is not known.
  void close(std::uint64_t id, Timestamp now);

  /// Returns how to treat these messages. Changes nothing.
  [[nodiscard]] Admission admit(const Sequences& batch) const;
  /// Records that the messages are in the log.
  void stored(const Sequences& batch, Timestamp now);
  /// Records messages found in the log at a start, from the oldest to the newest. Here a producer may be
  /// unknown, and a later epoch may begin anywhere.
  void found(const Sequences& batch);
  /// Returns the producer, or null if it is not known.
  [[nodiscard]] const KnownProducer* find(std::uint64_t id) const;
  /// Removes the producer.
  void forget(std::uint64_t id);
  /// Forgets the producers that are idle for too long and not open.
  void expire(Timestamp now);

  /// Returns all producers for `restore`, the longest idle first. Open ones count as used now.
  [[nodiscard]] std::vector<KnownProducer> list() const;
  /// Replaces all producers by these. No channel has them open, and they count for no user.
  void restore(const std::vector<KnownProducer>& producers);
  /// Prefetches the producer that stored most recently.
  void fetch_ahead_newest() const {
    if (!order_.empty()) fetch_ahead(&order_.back());
  }
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }

  /// The longest step of the wall clock that counts as elapsed time.
  static constexpr std::int64_t step_us_max = 24LL * 3600 * 1'000'000;

 private:
  using Order = std::list<KnownProducer>;  // the longest idle producer first
  Order::iterator lookup(std::uint64_t id);
  void touch(Order::iterator producer);
  void advance(Timestamp now);
  Opened open_own(ProducerIdentity wanted, bool has_place);
  [[nodiscard]] bool is_open(std::uint64_t id) const;
  bool make_place(std::uint64_t user);
  bool make_place_for_own(std::size_t places);
  [[nodiscard]] std::size_t places_of_own() const;
  [[nodiscard]] std::optional<std::uint64_t> own_to_forget() const;
  bool add(const KnownProducer& producer, std::uint64_t user);
  void insert(const KnownProducer& producer, std::uint64_t user);
  void note_request(std::uint64_t id);

  std::size_t producers_max_;
  std::int64_t idle_max_us_;
  Order order_;
  std::unordered_map<std::uint64_t, Order::iterator> by_id_;
  ProducerShares shares_;                                 // of users' producers
  std::unordered_map<std::uint64_t, std::uint32_t> own_;  // the broker's own, by id: how often each is open
  std::deque<std::uint64_t> requests_;  // ids of requests, the oldest first; some may be forgotten
  Timestamp time_;                      // the table's own
  std::optional<Timestamp> seen_;       // the wall clock at the last call; nothing since `restore`
};

}  // namespace lightq::broker
