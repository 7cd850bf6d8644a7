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
  std::vector<BatchBuilder> batches;  ///< at least one; each has at least one message
  std::size_t longest_bytes = 0;      ///< of a message: attributes and payload
  Confirming confirming = Confirming::topics_default;
  std::chrono::milliseconds wait{};  ///< for space in the topic, and for the disk
};

/// The result of a publication.
struct Published {
  Offset first;                   ///< of the first message
  std::uint64_t messages = 0;     ///< they follow each other, unless other producers' messages are between
  std::uint64_t incarnation = 0;  ///< of the log: offsets of another one have no meaning
  bool is_flushed = false;        ///< they survive a power cut
};

/// Appends the batches of one request to a topic's log, in their order, and answers when they are stored or
/// durable. While the topic has no space, it waits like the producers of sessions do. It is no known
/// producer: a request that is sent again is stored again. MessageDesk owns it; its topic calls it. Thread:
/// the reactor's.
class Publication final : public SessionProducer {
 public:
  /// Called once. An error says how many messages are stored, if some are.
  using Done = std::function<void(Result<Published>)>;

  /// `ended` is called once, when the object has nothing more to do: it must not be destroyed within that
  /// call. Lifetime: the topic ends the publication before it is destroyed.
  Publication(TopicRuntime& topic, const AccessTable& access, Requester requester, MessagesToPublish messages,
              Done done, std::function<void()> ended);
  ~Publication() override;

  /// Stores as many messages as have space. May call `done` and `ended`.
  void begin();
  /// Called when the time to wait is over.
  void give_up();

  // Implements SessionProducer.
  [[nodiscard]] std::uint64_t producer_id() const override { return 0; }
  [[nodiscard]] bool needs_durable() const override { return waits_for_disk_; }
  void admitted() override {}
  bool resume() override;
  bool durable_moved() override;
  void end(ClientError error, const std::string& why) override;

 private:
  enum class Step { on, wait, over };

  bool store_all();
  Step store_next();
  void stored_all();
  void finish(Result<Published> result);
  void fail(Error error);

  TopicRuntime* topic_;  // null once it is over
  const AccessTable& access_;
  const Requester requester_;
  MessagesToPublish messages_;
  Done done_;
  std::function<void()> ended_;
  std::size_t next_ = 0;  // of the batches
  Published published_;
  Offset end_;  // behind the last message
  bool waits_for_space_ = false;
  bool waits_for_disk_ = false;  // is confirmed when it is durable
};

}  // namespace lightq::broker
