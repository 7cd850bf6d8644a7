/// A dead message with the account of its death, as a dead-letter topic stores it. Layer: delivery.
/// docs/session.md, "Dead letters", lists the headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/state/delivery_failure.hpp"

namespace lightq::broker {

/// How, where and when a message died.
struct DeathAccount {
  DeathCause cause = DeathCause::attempts;
  std::string topic = {};         ///< the name of the topic in which it died
  std::string group = {};         ///< the group in which it died
  std::uint64_t incarnation = 0;  ///< of that topic's log
  Offset offset = {};             ///< in that log
  std::uint32_t attempts = 0;     ///< failures
  /// Wall time in milliseconds since 1970; 0: not known.
  std::int64_t first_failure_ms = 0;
  std::int64_t last_failure_ms = 0;
  std::string reason = {};  ///< a consumer's, at most 256 bytes; empty: none
  friend bool operator==(const DeathAccount&, const DeathAccount&) = default;
};

/// A message with the headers of its death. Owns its data. Any thread may use and destroy it.
class DeadLetter {
 public:
  /// Makes the letter of a message: key, other headers, time and payload are the message's. If it died
  /// before, the first of its deaths is kept, and its deaths are counted. Errors: too_large if the attributes
  /// would exceed their limits.
  static Result<DeadLetter> of(const AttributesView& message, ByteView payload, const DeathAccount& death);

  /// Makes the message again of which a letter was made, without the headers of its last death. If it died
  /// before, it keeps the first of its deaths, and the number of the others.
  static Result<DeadLetter> original_of(const AttributesView& letter, ByteView payload);

  /// Removes the message's own time to live, so that it does not end again before anybody has received it.
  void forget_ttl();
  /// Returns true if this message has the same payload, key, time and headers. Headers of deaths are not
  /// compared.
  [[nodiscard]] bool is_same(const AttributesView& message, ByteView payload) const;
  /// Adds the letter to a batch, which has all kinds of attributes.
  void add_to(BatchBuilder& batch) const;
  /// Returns the length in bytes of the letter's message: attributes and payload.
  [[nodiscard]] std::size_t message_bytes() const;

 private:
  struct OwnHeader {
    std::string name;
    std::string value;
  };

  DeadLetter() = default;
  [[nodiscard]] std::vector<Header> views() const;
  void add(std::string_view name, std::string value);
  void add_account(std::string_view prefix, const DeathAccount& death);

  std::string key_;
  std::vector<OwnHeader> headers_;
  Timestamp time_;
  std::vector<std::byte> payload_;
};

/// Returns the last death of a letter, as its headers state it. Returns nothing if the message is no letter.
[[nodiscard]] std::optional<DeathAccount> last_death_of(const AttributesView& letter);

}  // namespace lightq::broker
