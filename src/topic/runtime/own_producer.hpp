/// A producer of the broker's own in a topic. Layer: topic.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "net/event_loop.hpp"
#include "topic/runtime/topic_producers.hpp"
#include "topic/runtime/topic_publishing.hpp"

namespace lightq::broker {

/// Appends messages that the broker itself publishes to a topic's log, each number once. It is a producer of
/// the topic like those of sessions: its id is known durably before it begins, it waits for space as they do,
/// and it ends with the topic. Its id is the broker's own (ProducerTable::brokers_own), so a number that is
/// stored again after a start is not stored twice.
///
/// If the topic has no place for it, or no space and rejects messages, it tries again after a pause, which
/// becomes longer each time. Its user states the pauses. Thread: the reactor's.
class OwnProducer final : public SessionProducer {
 public:
  /// The part of the broker that publishes. Calls come from the loop, from the topic, or from within `open`,
  /// and never from within `store`.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual ~User() = default;

    /// Called when the topic knows the producer. `expected`: the lowest number that it may store.
    virtual void opened(std::uint64_t /*expected*/) {}
    /// Called when the producer may begin, also when it was opened again. Requires of the user: stores
    /// nothing before.
    virtual void admitted() = 0;
    /// Called when the topic may have space, or a pause is over.
    virtual void go_on() = 0;
    /// Called when more of the topic's log is durable, or may be.
    virtual void durable_moved() {}
    /// Called when the topic has ended the producer. If the topic stays, it is opened again after a pause.
    virtual void ended() = 0;
    /// Called when `waiting_by` was set because the producer is not open.
    virtual void cannot_open(const std::string& why) = 0;
  };
  struct Settings {
    std::uint64_t id = 0;    ///< not 0
    bool has_place = false;  ///< the topic reserves a place for it: ProducerTable::Opener::has_place
    std::chrono::milliseconds pause_min{500};
    std::chrono::milliseconds pause_max{500};
  };

  /// Lifetime: `loop` and `user` outlive this object. The topic ends the producer before it is destroyed, or
  /// this object is destroyed first.
  OwnProducer(EventLoop& loop, TopicPublishing& publishing, const Settings& settings, User& user)
      : loop_(loop), publishing_(publishing), settings_(settings), user_(user), pause_(settings.pause_min) {}
  ~OwnProducer() override;

  /// Opens the producer; later again if the topic has no place for it.
  void open();
  /// Does nothing more. The topic still knows the producer.
  void stop();
  /// Returns true if `store` may be called.
  [[nodiscard]] bool is_ready() const { return is_open_ && is_admitted_ && !is_held_ && !is_stopped_; }
  /// Returns true if the topic holds the producer until it has space.
  [[nodiscard]] bool is_held() const { return is_held_; }

  enum class Stored : std::uint8_t {
    yes,
    repeat,           ///< the topic has all of these numbers, or higher ones
    out_of_sequence,  ///< the topic has some of these numbers
    no_space,         ///< `waiting_by` says why; `go_on` follows
    too_large,        ///< the topic can never store the batch
    forgotten,        ///< the topic does not know the producer any more; it is opened again after a pause
  };
  /// Stores a batch whose header has this producer's id and the sequence number `sequence_of(first)`.
  /// Requires: is_ready().
  Stored store(const OfferedBatch& batch, std::uint64_t first);
  static constexpr std::uint64_t sequence_of(std::uint64_t number) { return own_sequences_begin + number; }

  /// Calls `go_on` after a pause, unless a call is due already.
  void try_later();
  void try_after(std::chrono::milliseconds pause);

  /// Returns why messages wait that should be in the topic; empty: none does.
  [[nodiscard]] const std::string& waiting_by() const { return waiting_by_; }
  /// Returns the former reason.
  std::string set_waiting_by(std::string why) { return std::exchange(waiting_by_, std::move(why)); }

  // Implements SessionProducer.
  [[nodiscard]] std::uint64_t producer_id() const override { return settings_.id; }
  /// No client waits for the messages. So a failing disk does not end the producer.
  [[nodiscard]] bool needs_durable() const override { return false; }
  void admitted() override;
  bool resume() override;
  bool durable_moved() override;
  void end(ClientError code, const std::string& why) override;

 private:
  void wait_to_open(const std::string& why);

  EventLoop& loop_;
  TopicPublishing& publishing_;
  const Settings settings_;
  User& user_;
  bool is_open_ = false;
  bool is_admitted_ = false;
  bool is_held_ = false;  // waits for space in the topic
  bool is_stopped_ = false;
  std::string waiting_by_;
  std::chrono::milliseconds pause_;
  EventLoop::TimerId retry_ = 0;
};

}  // namespace lightq::broker
