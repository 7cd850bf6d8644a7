/// Session frames of producers. docs/session.md, "Producing". Layer: protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/protocol/session_link.hpp>

namespace lightq::inline v1::session {

/// The state of a message that a confirm states. The values are those on the wire.
enum class ConfirmLevel : std::uint8_t {
  topics_default = 0,  ///< flushed on durable topics, received on others
  received = 1,        ///< in the log
  flushed = 2,         ///< survives a power cut
};

/// The numbers that identify a producer to the broker. With them the broker recognizes a batch that is sent
/// again, and stores it once.
struct ProducerIdentity {
  std::uint64_t id = 0;  ///< 0: none assigned yet
  std::uint16_t epoch = 0;
  friend bool operator==(const ProducerIdentity&, const ProducerIdentity&) = default;
};

/// Proves that a client without a user is the one that a producer id was assigned to. Random bytes.
using ProducerSecret = std::array<std::byte, 16>;

/// The part of a topic in which a producer's messages are stored. The values are those on the wire.
enum class ProduceTarget : std::uint8_t {
  log = 0,       ///< the topic's log: consumers receive the messages at once
  schedule = 1,  ///< the topic's schedule: the messages wait there until they are due
};

struct ProduceOpen {
  static constexpr Op op = Op::produce_open;
  ProducerIdentity producer;
  ConfirmLevel level = ConfirmLevel::topics_default;
  std::string topic;
  std::optional<ProducerSecret> secret;  ///< the secret received with the producer id
  ProduceTarget target = ProduceTarget::log;

  static Result<ProduceOpen> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    ProduceOpen open;
    open.producer.id = fields.number<std::uint64_t>();
    open.producer.epoch = fields.number<std::uint16_t>();
    open.level = static_cast<ConfirmLevel>(fields.number<std::uint8_t>("level", 0, 2));
    open.target = static_cast<ProduceTarget>(fields.number<std::uint8_t>("target", 0, 1));
    open.topic = fields.text("the topic", limits::topic_name_bytes_max);
    if (open.topic.empty()) fields.fail("the topic is missing");
    const std::size_t secret_bytes = fields.number<std::uint16_t>();
    if (secret_bytes == std::tuple_size_v<ProducerSecret>) {
      open.secret = fields.bytes<std::tuple_size_v<ProducerSecret>>();
    } else if (secret_bytes != 0) {
      fields.fail("the secret is not 16 bytes long");
    }
    return fields.finish(std::move(open));
  }
  void encode(FieldWriter fields) const {
    fields.number(producer.id).number(producer.epoch).number(static_cast<std::uint8_t>(level));
    fields.number(static_cast<std::uint8_t>(target)).text(topic);
    fields.text(secret ? as_text(*secret) : std::string_view());
  }
  friend bool operator==(const ProduceOpen&, const ProduceOpen&) = default;
};

struct ProduceOpened {
  static constexpr Op op = Op::produce_opened;
  ProducerIdentity producer;
  ConfirmLevel level = ConfirmLevel::received;
  std::uint32_t batch_bytes_max = 0;
  std::uint64_t message_bytes_max = 0;
  std::uint64_t expected = 0;     ///< the sequence number of the next message
  std::uint64_t next_offset = 0;  ///< on a channel to the schedule: the number of the next message there
  std::uint64_t incarnation = 0;
  std::optional<ProducerSecret> secret;  ///< to be sent with the next produce_open of this id
  ProduceTarget target = ProduceTarget::log;

  static Result<ProduceOpened> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    ProduceOpened opened;
    opened.producer.id = fields.number<std::uint64_t>("the producer id", 1, UINT64_MAX);
    opened.producer.epoch = fields.number<std::uint16_t>();
    opened.level = static_cast<ConfirmLevel>(fields.number<std::uint8_t>("level", 1, 2));
    opened.target = static_cast<ProduceTarget>(fields.number<std::uint8_t>("target", 0, 1));
    opened.batch_bytes_max = fields.number<std::uint32_t>();
    opened.message_bytes_max = fields.number<std::uint64_t>();
    opened.expected = fields.number<std::uint64_t>();
    opened.next_offset = fields.number<std::uint64_t>();
    opened.incarnation = fields.number<std::uint64_t>();
    if (!fields.left().empty()) opened.secret = fields.bytes<std::tuple_size_v<ProducerSecret>>();
    return fields.finish(opened);
  }
  void encode(FieldWriter fields) const {
    fields.number(producer.id).number(producer.epoch).number(static_cast<std::uint8_t>(level));
    fields.number(static_cast<std::uint8_t>(target));
    fields.number(batch_bytes_max).number(message_bytes_max).number(expected);
    fields.number(next_offset).number(incarnation);
    if (secret) fields.bytes(*secret);
  }
  friend bool operator==(const ProduceOpened&, const ProduceOpened&) = default;
};

/// Reports how far a producer's messages are stored, in sequence numbers.
struct Confirm {
  static constexpr Op op = Op::confirm;
  std::uint64_t received = 0;  ///< everything below it is in the log
  std::uint64_t flushed = 0;   ///< everything below it survives a power cut
  /// One past the offset of the last received message. In the schedule: one past its number there.
  std::uint64_t next_offset = 0;

  static Result<Confirm> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Confirm confirm;
    confirm.received = fields.number<std::uint64_t>();
    confirm.flushed = fields.number<std::uint64_t>("flushed", 0, confirm.received);
    confirm.next_offset = fields.number<std::uint64_t>();
    return fields.finish(confirm);
  }
  void encode(FieldWriter fields) const { fields.number(received).number(flushed).number(next_offset); }
  friend bool operator==(const Confirm&, const Confirm&) = default;
};

/// Reports a batch that was not stored.
struct Refuse {
  static constexpr Op op = Op::refuse;
  std::uint64_t begin = 0;     ///< the first sequence number of the batch
  std::uint64_t end = 0;       ///< one past its last sequence number
  std::uint64_t expected = 0;  ///< the sequence number that the next batch must begin with
  Code code = Code::internal;
  std::string sentence;

  static Result<Refuse> decode(ByteView body, std::uint8_t /*flags*/) {
    FieldParser fields(body);
    Refuse refuse;
    refuse.begin = fields.number<std::uint64_t>("begin", 0, UINT64_MAX - 1);
    refuse.end = fields.number<std::uint64_t>("end", refuse.begin + 1, UINT64_MAX);
    refuse.expected = fields.number<std::uint64_t>();
    refuse.code = static_cast<Code>(fields.number<std::uint16_t>("code", 1, UINT16_MAX));
    refuse.sentence = fields.text("the sentence", sentence_bytes_max);
    return fields.finish(std::move(refuse));
  }
  void encode(FieldWriter fields) const {
    fields.number(begin).number(end).number(expected).number(static_cast<std::uint16_t>(code)).text(sentence);
  }
  friend bool operator==(const Refuse&, const Refuse&) = default;
};

}  // namespace lightq::inline v1::session
