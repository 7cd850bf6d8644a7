/// Messages as JSON, and back. Layer: http. docs/http.md, "Messages".
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/protocol/json_schema.hpp>

#include "http/http_request.hpp"
#include "http/messages/sent_message.hpp"
#include "http/messages/sent_message_packer.hpp"
#include "requests/browse.hpp"
#include "requests/lease.hpp"
#include "requests/publication.hpp"
#include "requests/received_message.hpp"

namespace lightq::broker {

/// Returns the schema of a line with a message, made of the code that reads lines. Thread: any.
protocol::detail::ObjectSchema::Schema message_schema();

/// Packs the message of a request: its content is the payload, and its headers `Lightq-…` the attributes.
/// Errors: invalid_request, too_large.
Result<MessagesToPublish> message_of_request(const HttpRequest& request);

/// Packs the messages of a text in which each line is a message in JSON, step by step, so that a thread can
/// do other work between two steps.
class MessageLines {
 public:
  static constexpr std::size_t lines_at_once = 1'000;
  static constexpr std::size_t bytes_at_once = 64 * limits::KiB;

  explicit MessageLines(std::string text) : text_(std::move(text)) {}

  /// Does a step: at most `lines_at_once` lines or messages, and no further one after `bytes_at_once`.
  /// Returns true after the last step.
  [[nodiscard]] bool work();
  /// Returns the messages. Requires: `work` has returned true. Errors: invalid_request (naming the line),
  /// too_large.
  [[nodiscard]] Result<MessagesToPublish> take();

 private:
  void read_line();
  void begin_packing();
  /// Packs the first message that is left. Returns the length of its payload.
  std::size_t pack_message();

  const std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  AttributeKinds kinds_;              // of the messages that were read
  std::deque<SentMessage> messages_;  // read, and not packed yet; a vector would copy all when it grows
  std::optional<SentMessagePacker> packer_;  // set once all lines are read
  bool are_delayed_ = false;
  std::optional<Error> fault_;
};

/// Returns the name of a lease for clients: 16 hexadecimal digits.
std::string name_of_lease(std::uint64_t lease);
/// Returns the number of a lease; 0, which no lease has, for another text.
std::uint64_t lease_named(std::string_view name);

/// Appends the message as one line of JSON, without the line's end.
void append_message(const ReceivedMessage& message, std::string& to);
/// Returns the lease and its messages as an object in JSON. `lease`: its name for clients; empty: there is
/// none.
std::string text_of(const Leased& leased, std::string_view lease);
/// Returns the messages of a read as an object in JSON.
std::string text_of(const Browsed& browsed);
/// Returns the offsets of ranges as JSON: a list of pairs, the first and the last of each.
std::string text_of(const std::vector<OffsetRange>& ranges);
/// Returns the ranges that `3,5-9` names: ascending, and not adjacent. Errors: invalid_request.
Result<std::vector<OffsetRange>> ranges_of(std::string_view text);

}  // namespace lightq::broker
