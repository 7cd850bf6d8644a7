/// A producer of one topic on a session: batches come in, confirms go out. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/protocol/session_producing.hpp>

#include "delivery/batches/header_content.hpp"
#include "session/channel.hpp"
#include "session/channel_numbers.hpp"
#include "session/session_channels.hpp"
#include "topic/runtime/produce_target.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Checks a producer's batches, stores them in its topic's log or schedule, and notes the confirms that are
/// due. docs/session.md, "Producing". Refusals go to the session's output directly. ChannelBook owns it;
/// ProduceSide and its topic call it. Keeps at most one batch, while the topic has no space. Thread: the
/// reactor's.
class ProduceChannel final : public Channel, public SessionProducer {
 public:
  /// `target`: the part of the topic that stores the batches. `due`: the channel adds its number when a
  /// confirm is due. The caller then calls `take_confirm` when the output has space. Lifetime: all outlive
  /// the channel.
  ProduceChannel(TopicRuntime& topic, ProduceTarget& target, SessionChannels& session, ChannelNumbers& due,
                 std::uint32_t number);
  ~ProduceChannel() override;

  /// Returns the topic, or null once it has ended the channel.
  [[nodiscard]] TopicRuntime* topic() const { return topic_; }
  /// Returns the part of the topic that stores the batches, or null once the topic has ended the channel.
  [[nodiscard]] ProduceTarget* target() const { return topic_ == nullptr ? nullptr : &target_; }
  void leave() override;
  void fetch_ahead_for_input(unsigned step) const override;

  /// The properties of the session that the channel needs.
  struct Client {
    std::uint64_t user = 0;             ///< TicketHolder::sharer
    bool keeps_secrets = false;         ///< the client's hello announces it
    std::uint64_t batch_bytes_max = 0;  ///< the longest batch that the session accepts
  };
  /// Opens the producer. Called once, before anything else. Without a refusal, the channel answers the
  /// client's request later: it begins or ends.
  session::Code open(const session::ProduceOpen& asked, const Client& client);

  /// Returns memory for the body of the next produce frame, if that is received immediately; see
  /// BatchLog::place_for_next.
  std::span<std::byte> place_for_next(std::size_t bytes) {
    return topic_ == nullptr ? std::span<std::byte>() : target_.place_for_next(bytes);
  }
  /// Handles the body of a produce frame, and overwrites it. Requires: it is at least as long as a batch
  /// header.
  void produce(std::span<std::byte> body, bool flush);
  /// Refuses a batch that is longer than the session accepts. Only its header is given, so its checksum
  /// cannot be verified.
  void refuse_too_large(ByteView batch_header);
  [[nodiscard]] bool held() const override { return !held_.empty(); }
  [[nodiscard]] std::size_t held_bytes() const override { return held_.capacity(); }
  /// Returns the next confirm, which the caller sends.
  session::Confirm take_confirm();
  /// Returns true if another confirm follows the last one that was taken, for a later batch.
  [[nodiscard]] bool has_more_confirms() const { return !untold_.empty(); }
  /// Returns true if every received batch is confirmed at the channel's level, or refused.
  [[nodiscard]] bool settled() const override;

  [[nodiscard]] std::uint64_t producer_id() const override { return identity_.id; }
  [[nodiscard]] bool needs_durable() const override { return level_ == session::ConfirmLevel::flushed; }
  void admitted() override;
  bool resume() override;
  bool durable_moved() override;
  void end(ClientError error, const std::string& why) override;

 private:
  /// A received batch on its way to the topic.
  struct Arrived {
    OfferedBatch batch;
    Sequences sequences;
    bool flush = false;
  };
  void break_off(const std::string& why);
  bool check_content(const BatchView& batch, const Sequences& sequences, HeaderContent& content);
  bool check_kinds(const BatchView& batch, const Sequences& sequences);
  bool check_packed(const BatchView& batch, const Sequences& sequences, HeaderContent& content);
  bool check_headers(const HeaderContent& content, const Sequences& sequences);
  [[nodiscard]] const char* fault_in_schedule(const BatchView& batch) const;
  [[nodiscard]] bool is_scheduled() const { return asked_target_ == session::ProduceTarget::schedule; }
  void take(const Arrived& arrived);
  bool store(const Arrived& arrived);
  void hold(const Arrived& arrived);
  void stored(const Arrived& arrived);
  void note_unflushed();
  void note_untold();
  void refuse(const Sequences& sequences, session::Code code, const std::string& why);
  void refuse_too_long(const Sequences& sequences);
  bool note_progress(bool again);

  /// A pair of positions: when the log is durable up to `offset`, the messages before `sequence` are durable.
  struct Unflushed {
    std::uint64_t sequence = 0;
    Offset offset;
  };

  TopicRuntime* topic_;
  ProduceTarget& target_;
  session::ProduceTarget asked_target_ = session::ProduceTarget::log;
  SessionChannels& session_;
  ChannelNumbers& due_;
  ProducerIdentity identity_;
  std::optional<ProducerSecret> secret_;  // sent to the client
  std::uint64_t batch_bytes_max_ = 0;
  session::ConfirmLevel level_ = session::ConfirmLevel::received;
  std::uint64_t received_ = 0;  // every sequence number before it is in the log
  std::uint64_t flushed_ = 0;
  // Confirmed to the client, at the channel's level. With level flushed, `produce_opened` confirms nothing:
  // messages of earlier channels are confirmed again once they are durable.
  std::uint64_t told_ = 0;
  Offset next_offset_;
  std::deque<Unflushed> unflushed_;
  std::deque<Unflushed> untold_;  // batches in the schedule that need a confirm of their own
  bool refusing_ = false;         // until a batch begins with `received_`
  bool confirm_due_ = false;
  Arrived held_batch_;
  std::vector<std::byte> held_;
};

}  // namespace lightq::broker
