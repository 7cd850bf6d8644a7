/// The producers that reach a topic over sessions, as the topic sees them. Layer: endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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
  /// There may be room again. False: it is held still.
  virtual bool resume() = 0;
  /// More may be durable than before.
  virtual void durable_moved() = 0;
  /// The topic has nothing more to do with it, and has forgotten it.
  virtual void end(session::Code code, const std::string& why) = 0;
};

/// The connected ones. The reactor's thread.
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
  /// Lets those that are held go on, as many as find room. True if all did.
  bool resume();
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
  [[nodiscard]] std::uint64_t fresh_id() const;
  void fence(std::uint64_t id);
  void end_these(const std::vector<SessionProducer*>& producers, session::Code code, const std::string& why);

  DurableProducers& known_;
  const WallClock& clock_;
  std::vector<SessionProducer*> attached_;
  std::vector<Waiting> waiting_;  // of these
  std::size_t resume_turn_ = 0;
};

}  // namespace lightq::broker
