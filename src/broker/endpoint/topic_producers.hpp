/// The producers that reach a topic over sessions, as the topic sees them. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <lightq/protocol/session_producing.hpp>

#include "broker/delivery/durable_producers.hpp"
#include "broker/endpoint/call_clock.hpp"

namespace lightq::broker {

/// One of them: a channel of a session. The reactor's thread.
class SessionProducer {
 public:
  SessionProducer() = default;
  SessionProducer(const SessionProducer&) = delete;
  SessionProducer& operator=(const SessionProducer&) = delete;
  virtual ~SessionProducer() = default;

  /// Who it is; 0 before it is known.
  [[nodiscard]] virtual std::uint64_t producer_id() const = 0;
  /// It is told nothing before what it sent is durable.
  [[nodiscard]] virtual bool needs_durable() const = 0;
  /// It may begin: that it has the id survives what the topic survives.
  virtual void admitted() = 0;
  /// There may be room again for what it holds. False: it is held still.
  virtual bool resume() = 0;
  /// More is durable than before, or may be. Returns true if it waits for more than that: it is called again.
  virtual bool durable_moved() = 0;
  /// The topic has nothing more to do with it, and has forgotten it.
  virtual void end(session::Code code, const std::string& why) = 0;
};

/// The connected ones. A flush costs as many steps as producers wait for it, and room as many as are held;
/// the others, who may be thousands, cost nothing. The reactor's thread.
class TopicProducers {
 public:
  /// `known`: what is remembered of all. Both outlive it.
  TopicProducers(DurableProducers& known, const WallClock& clock) : known_(known), clock_(clock) {}

  /// `producer`, a client of `opener`'s, begins, or comes back, as `wanted`; whoever had the id is ended as
  /// fenced. Without a refusal it is attached, and told by `admit_settled` when it may begin.
  ProducerTable::Opened open(session::ProducerIdentity wanted, SessionProducer& producer,
                             const ProducerTable::Opener& opener = {});
  void detach(SessionProducer& producer);
  [[nodiscard]] Admission admit(const Sequences& batch) const { return known_.admit(batch); }
  /// Tells those that have waited for it that they may begin. Not from within `open`.
  void admit_settled();

  [[nodiscard]] std::size_t connected() const { return attached_.size(); }
  /// `producer` holds a batch for which there is no room: `resume` asks it. It is attached.
  void note_held(SessionProducer& producer);
  /// Lets those that are held go on, as many as find room. True if all did.
  bool resume();
  /// `producer` waits until more is durable: the next `durable_moved` tells it. It is attached.
  void await_durable(SessionProducer& producer) { awaiting_.insert(&producer); }
  void durable_moved();
  /// Ends those that wait to begin.
  void end_waiting(session::Code code, const std::string& why);
  /// Ends those that are told nothing before what they sent is durable.
  void end_needing_durable(session::Code code, const std::string& why);
  /// Ends all.
  void end(session::Code code, const std::string& why);

 private:
  /// One that waits for its change of the table to be on disk.
  struct Waiting {
    SessionProducer* producer;
    std::uint64_t change;
    std::uint64_t fresh_id;  // nobody has been told of it yet; 0: it came with its id
  };
  using Turn = std::uint64_t;
  [[nodiscard]] std::uint64_t fresh_id() const;
  void forget(SessionProducer& producer);
  void fence(std::uint64_t id);
  void end_these(const std::vector<SessionProducer*>& producers, session::Code code, const std::string& why);

  DurableProducers& known_;
  const WallClock& clock_;
  std::unordered_map<SessionProducer*, std::uint64_t> attached_;  // and the ids that they have
  std::unordered_map<std::uint64_t, SessionProducer*> by_id_;     // the same
  std::vector<Waiting> waiting_;                                  // of these
  std::unordered_set<SessionProducer*> awaiting_;                 // likewise
  std::map<Turn, SessionProducer*> held_;                         // likewise, in the order they are asked in
  std::unordered_map<SessionProducer*, Turn> turns_;              // of these
  Turn next_turn_ = 0;
};

}  // namespace lightq::broker
