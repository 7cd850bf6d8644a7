/// The producers of a topic that are connected over sessions. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "delivery/producers/durable_producers.hpp"
#include "net/call_clock.hpp"

namespace lightq::broker {

/// A producer of a topic: a channel of a session. Thread: the reactor's.
class SessionProducer {
 public:
  SessionProducer() = default;
  SessionProducer(const SessionProducer&) = delete;
  SessionProducer& operator=(const SessionProducer&) = delete;
  virtual ~SessionProducer() = default;

  /// Returns the producer's id, or 0 before it is known.
  [[nodiscard]] virtual std::uint64_t producer_id() const = 0;
  /// Returns true if the producer gets confirms only for durable messages.
  [[nodiscard]] virtual bool needs_durable() const = 0;
  /// Called when the producer may begin: its id is now as durable as the topic.
  virtual void admitted() = 0;
  /// Called when the log may have space again for the batch that the producer waits with. Returns false if
  /// the producer still waits.
  virtual bool resume() = 0;
  /// Called when more of the log is durable, or may be. Returns true to be called again, because the producer
  /// waits for more.
  virtual bool durable_moved() = 0;
  /// Called when the topic has ended the producer and keeps no reference to it.
  virtual void end(ClientError code, const std::string& why) = 0;
};

/// Keeps the connected producers. The topic calls it. A flush takes one step for each producer that waits for
/// durability. New space takes one step for each producer that waits for space. Thousands of other producers
/// cost nothing. Thread: the reactor's.
class TopicProducers {
 public:
  /// `known`: the table of all known producers, connected or not. Lifetime: `known` and `clock` outlive this.
  TopicProducers(DurableProducers& known, const WallClock& clock) : known_(known), clock_(clock) {}

  /// Opens `producer`, for a client of `opener`, with the id `wanted` or a fresh one. The producer that had
  /// the id ends as fenced. Without a refusal the new producer is attached, and `admit_settled` calls it when
  /// it may begin.
  ProducerTable::Opened open(ProducerIdentity wanted, SessionProducer& producer,
                             const ProducerTable::Opener& opener = {});
  /// Opens `producer` with the id of a request, known or new. Otherwise as `open`. Requires:
  /// !is_connected(id).
  ProducerTable::Opened open_request(std::uint64_t id, SessionProducer& producer,
                                     const ProducerTable::Opener& opener);
  /// Returns true if a producer with this id is connected.
  [[nodiscard]] bool is_connected(std::uint64_t id) const { return by_id_.contains(id); }
  /// Attaches a producer without an id, which the table of known producers does not have: its messages have
  /// no sequence numbers. It need not be admitted.
  void attach(SessionProducer& producer) { attached_.try_emplace(&producer, Attached{}); }
  /// Removes the producer. Its id stays known, unless it is fresh and no client was told of it.
  void detach(SessionProducer& producer);
  /// Decides whether the batch is stored, is a duplicate, or is refused. Changes nothing.
  [[nodiscard]] Admission admit(const Sequences& batch) const { return known_.admit(batch); }
  /// Calls `admitted` of the producers with ids that have become durable. Requires: not called from within
  /// `open`.
  void admit_settled();
  /// Returns the end of the part that a publish uses. The part starts with the object.
  [[nodiscard]] const void* hot_end() const { return &attached_; }

  [[nodiscard]] std::size_t connected() const { return attached_.size(); }
  /// Returns the number of connected producers that are not the broker's own.
  [[nodiscard]] std::size_t connected_clients() const { return attached_.size() - own_; }
  /// Called when the log has no space for the producer's batch. `resume` will call the producer. Requires: it
  /// is attached.
  void note_held(SessionProducer& producer);
  /// Resumes producers that wait for space, until one finds none. Returns true if none waits any more.
  bool resume();
  /// Called when the producer waits until more is durable. The next `durable_moved` calls the producer.
  /// Requires: it is attached.
  void await_durable(SessionProducer& producer) { awaiting_.insert(&producer); }
  /// Called when more of the log is durable, or may be. Calls the producers that wait for it.
  void durable_moved();
  /// Ends the producers that wait to begin.
  void end_waiting(ClientError code, const std::string& why);
  /// Ends the producers that get confirms only for durable messages.
  void end_needing_durable(ClientError code, const std::string& why);
  /// Ends all producers.
  void end(ClientError code, const std::string& why);

 private:
  /// A producer that waits until its change of the table of known producers is on disk.
  struct Waiting {
    SessionProducer* producer;
    std::uint64_t change;
    std::uint64_t fresh_id;  // a new id that no client was told of yet; 0: the client sent the id
  };
  using Turn = std::uint64_t;
  [[nodiscard]] std::uint64_t fresh_id() const;
  void opened(std::uint64_t id, std::uint64_t fresh_id, SessionProducer& producer, bool is_own);
  void forget(SessionProducer& producer);
  void fence(std::uint64_t id);
  void end_these(const std::vector<SessionProducer*>& producers, ClientError code, const std::string& why);

  // A publish uses these, up to attached_: hot_end() depends on this order.
  DurableProducers& known_;
  const WallClock& clock_;
  std::vector<Waiting> waiting_;  // wait to begin

  /// A connected producer.
  struct Attached {
    std::uint64_t id = 0;
    bool is_own = false;  // the broker's: ProducerTable::brokers_own
  };
  std::unordered_map<SessionProducer*, Attached> attached_;
  std::size_t own_ = 0;                                        // the broker's own of attached_
  std::unordered_map<std::uint64_t, SessionProducer*> by_id_;  // the connected producers by id
  std::unordered_set<SessionProducer*> awaiting_;              // wait until more is durable
  std::map<Turn, SessionProducer*> held_;                      // wait for space, in the order of resuming
  std::unordered_map<SessionProducer*, Turn> turns_;           // the turns of the producers in held_
  Turn next_turn_ = 0;
};

}  // namespace lightq::broker
