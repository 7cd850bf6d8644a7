/// The messages of one request on their way into a topic. Layer: requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <lightq/base/batch_builder.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "access/ticket_key.hpp"
#include "delivery/batches/header_content.hpp"
#include "requests/requester.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// When messages are confirmed.
enum class Confirming : std::uint8_t {
  topics_default,  ///< flushed if the topic is durable, else received
  received,        ///< when they are in the log
  flushed,         ///< when they survive a power cut
};

/// The messages that a request brings, packed in batches. Made on the thread of the request, and moved to the
/// reactor.
struct MessagesToPublish {
  std::string request_id;             ///< of the request, which has one message then; empty: it has none
  bool are_delayed = false;           ///< they have due times, and go to the topic's schedule
  std::vector<BatchBuilder> batches;  ///< at least one; each has at least one message
  std::size_t longest_bytes = 0;      ///< of a message: attributes and payload
  Confirming confirming = Confirming::topics_default;
  std::chrono::milliseconds wait{};  ///< for space in the topic, and for the disk
};

/// The result of a publication.
struct Published {
  Offset first;                   ///< of the first message; of delayed messages its number in the schedule
  std::uint64_t messages = 0;     ///< they follow each other, unless other producers' messages are between
  std::uint64_t incarnation = 0;  ///< of the log: offsets of another one have no meaning
  bool is_flushed = false;        ///< they survive a power cut
  bool is_repeated = false;       ///< an earlier request with this id has stored the message
  bool are_delayed = false;
};

/// Appends the batches of one request to a topic's log, in their order, and answers when they are stored or
/// durable. While the topic has no space, it waits like the producers of sessions do. With an id it is a
/// known producer of one message: a request that is sent again is stored once. Otherwise it is stored again.
/// Delayed messages go to the topic's schedule. MessageDesk owns it; its topic calls it. Thread: the
/// reactor's.
class Publication final : public SessionProducer {
 public:
  /// Called once. An error says how many messages are stored, if some are.
  using Done = std::function<void(Result<Published>)>;

  struct Parts {
    TopicRuntime& topic;
    const AccessTable& access;
    const TicketKey& tickets;
    Requester requester;
    /// Called once, when the object has nothing more to do: it must not be destroyed within that call.
    std::function<void()> ended;
  };

  /// Lifetime: the topic ends the publication before it is destroyed.
  Publication(Parts parts, MessagesToPublish messages, Done done);
  ~Publication() override;

  /// Stores as many messages as have space. May call `done` and `ended`.
  void begin();
  /// Called when the time to wait is over.
  void give_up();

  // Implements SessionProducer.
  [[nodiscard]] std::uint64_t producer_id() const override { return number_; }
  [[nodiscard]] bool needs_durable() const override { return waits_for_disk_; }
  void admitted() override;
  bool resume() override;
  bool durable_moved() override;
  void end(ClientError error, const std::string& why) override;

 private:
  enum class Step { on, wait, over };

  bool find_target();
  void begin_request();
  void begin_storing();
  bool store_all();
  Step store_next();
  void stored_all();
  void finish(Result<Published> result);
  void fail(Error error);

  TopicRuntime* topic_;              // null once it is over
  ProduceTarget* target_ = nullptr;  // of topic_
  const AccessTable& access_;
  const TicketKey& tickets_;
  const Requester requester_;
  MessagesToPublish messages_;
  Done done_;
  std::function<void()> ended_;
  std::uint64_t number_ = 0;  // of the request's id; 0: it has none
  std::size_t next_ = 0;      // of the batches
  Published published_;
  Offset end_;  // behind the last message
  bool is_admitted_ = false;
  bool waits_for_space_ = false;
  bool waits_for_disk_ = false;  // is confirmed when it is durable
};

}  // namespace lightq::broker
