/// A read of messages that changes nothing. Layer: requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/record_reader.hpp"
#include "delivery/state/consume_request.hpp"
#include "requests/copied_bytes.hpp"
#include "requests/received_message.hpp"
#include "requests/requester.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// The wishes of a client that reads messages without a group.
struct BrowseWish {
  StartPosition start;
  std::uint64_t messages_max = 1;
  std::uint64_t bytes_max = 1;       ///< more only by one message
  std::chrono::milliseconds wait{};  ///< for messages that the disk does not have ready
  /// Only messages with exactly this key; nothing: all messages.
  std::optional<std::string> key = {};
  /// The read ends after so many messages, and after so many bytes of them, whether or not the key fits.
  std::uint64_t scanned_max = UINT64_MAX;
  std::uint64_t scanned_bytes_max = UINT64_MAX;
};

/// The messages of a read.
struct Browsed {
  Offset next;             ///< to read on from
  std::uint64_t lost = 0;  ///< messages before `next` that cannot be read any more
  std::vector<ReceivedMessage> messages;
  std::shared_ptr<CopiedBytes::Holding> held;  ///< keep it as long as the messages, or texts made of them
  std::optional<std::uint64_t> scanned = {};   ///< with a key: the messages that were read
};

/// Reads messages once, without a cursor, perhaps only those with a key: no group, no counter of deliveries
/// and no other consumer sees it. MessageDesk owns it. Thread: the reactor's.
class Browse final : private ReadWaiter {
 public:
  /// Called once. Errors: io_error, topic_not_found, unauthorized_access, timeout, busy.
  using Done = std::function<void(Result<Browsed>)>;
  struct Parts {
    std::function<TopicRuntime*()> find;  ///< returns the topic, or null once it is removed
    const AccessTable& access;
    Requester requester;
    std::shared_ptr<CopiedBytes> copies;
    std::function<void()> later;  ///< asks for a call of `go_on` in a later turn of the loop
  };

  Browse(Parts parts, const BrowseWish& wish, Done done);
  Browse(const Browse&) = delete;
  Browse& operator=(const Browse&) = delete;
  ~Browse() override { stop_waiting(); }

  /// Reads a bounded amount. Calls `done`, or asks to be called again.
  void go_on();
  /// Answers with the messages that it has, because the time to wait is over.
  void give_up();
  [[nodiscard]] bool is_over() const { return done_ == nullptr; }

 private:
  class Turn;
  void readable() override;
  void stop_waiting();
  void answer();
  void fail(Error why);

  const Parts parts_;
  const BrowseWish wish_;
  Done done_;
  std::optional<RecordReader> reader_;  // once the start is found
  Browsed browsed_;
  std::uint64_t bytes_ = 0;    // of browsed_
  std::uint64_t scanned_ = 0;  // messages that were read, with a key
  std::uint64_t scanned_bytes_ = 0;
  bool is_waiting_ = false;  // for pending messages
};

}  // namespace lightq::broker
