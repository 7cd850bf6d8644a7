/// One producer of one topic on a session: batches in, confirms out. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/protocol/session_producing.hpp>

#include "broker/endpoint/hosted_topic.hpp"
#include "broker/session/channel.hpp"

namespace lightq::broker {

/// docs/session.md, "Producing". The reactor's thread. Keeps at most one batch, while the topic has no room.
class ProduceChannel final : public Channel, public SessionProducer {
 public:
  /// What a channel needs of its session.
  class Link {
   public:
    virtual ~Link() = default;
    /// The producer may begin.
    virtual void channel_opened(ProduceChannel& channel, const session::ProduceOpened& answer) = 0;
    /// There is something to confirm: ask with `take_confirm` when the output takes it.
    virtual void confirm_due(ProduceChannel& channel) = 0;
    virtual void refuse(ProduceChannel& channel, const session::Refuse& refused) = 0;
    /// The session is not to be read from until channel_resumed.
    virtual void channel_held(ProduceChannel& channel) = 0;
    virtual void channel_resumed(ProduceChannel& channel) = 0;
    /// The topic has ended it; it is destroyed later, not within the call.
    virtual void channel_ended(ProduceChannel& channel, session::Code code, const std::string& why) = 0;
  };

  ProduceChannel(HostedTopic& topic, Link& link, std::uint32_t number);
  ~ProduceChannel() override;

  /// Null once the topic has ended the channel.
  [[nodiscard]] HostedTopic* topic() const { return topic_; }
  void leave() override;
  void fetch_ahead_for_input(unsigned step) const override;

  /// What a channel has to know of the session that it is opened on.
  struct Client {
    std::uint64_t user = 0;             ///< TicketHolder::sharer
    bool keeps_secrets = false;         ///< the hello says so
    std::uint64_t batch_bytes_max = 0;  ///< that the session takes
  };
  /// Once, before anything else. Without a refusal the link is told later, of the channel's opening or of its
  /// end.
  session::Code open(const session::ProduceOpen& asked, const Client& client);

  /// Where the body of the next produce frame may be put, if it comes now: see Log::place_for_next.
  std::span<std::byte> place_for_next(std::size_t bytes) {
    return topic_ == nullptr ? std::span<std::byte>() : topic_->place_for_next(bytes);
  }
  /// A produce frame's body, at least a batch's header long. Written over.
  void produce(std::span<std::byte> body, bool flush);
  /// Refuses a batch that is longer than the session takes. Of its header, which is all that is given, the
  /// checksum cannot be verified.
  void refuse_too_large(ByteView batch_header);
  [[nodiscard]] bool held() const override { return !held_.empty(); }
  [[nodiscard]] std::size_t held_bytes() const override { return held_.capacity(); }
  /// The next confirm, which the caller is going to send.
  session::Confirm take_confirm();
  /// Every batch that came is confirmed at the channel's level, or refused.
  [[nodiscard]] bool settled() const override;

  [[nodiscard]] std::uint64_t producer_id() const override { return identity_.id; }
  [[nodiscard]] bool needs_durable() const override { return level_ == session::ConfirmLevel::flushed; }
  void admitted() override;
  bool resume() override;
  bool durable_moved() override;
  void end(session::Code code, const std::string& why) override;

 private:
  /// A batch that has come, as it goes to the topic.
  struct Arrived {
    OfferedBatch batch;
    Sequences sequences;
    bool flush = false;
  };
  void break_off(const std::string& why);
  bool check_packed(const BatchView& batch, const Sequences& sequences);
  void take(const Arrived& arrived);
  bool store(const Arrived& arrived);
  void hold(const Arrived& arrived);
  void stored(const Arrived& arrived);
  void note_unflushed();
  void refuse(const Sequences& sequences, session::Code code, const std::string& why);
  void refuse_too_long(const Sequences& sequences);
  void note_progress(bool again);

  /// Once the log is durable up to the offset, messages before the sequence number are.
  struct Unflushed {
    std::uint64_t sequence = 0;
    Offset offset;
  };

  HostedTopic* topic_;
  Link& link_;
  session::ProducerIdentity identity_;
  std::optional<session::ProducerSecret> secret_;  // that the client is told
  std::uint64_t batch_bytes_max_ = 0;
  session::ConfirmLevel level_ = session::ConfirmLevel::received;
  std::uint64_t received_ = 0;  // every sequence number before it is in the log
  std::uint64_t flushed_ = 0;
  std::uint64_t told_ = 0;  // of what the level speaks of
  Offset next_offset_;
  std::deque<Unflushed> unflushed_;
  bool refusing_ = false;  // until a batch comes that begins with `received_`
  bool confirm_due_ = false;
  Arrived held_batch_;
  std::vector<std::byte> held_;
};

}  // namespace lightq::broker
