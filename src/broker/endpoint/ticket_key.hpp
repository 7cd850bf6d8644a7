/// The broker's ticket key: makes tickets, and tells those that it made from all others. Layer: endpoint.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "broker/endpoint/ticket.hpp"

namespace lightq::broker {

/// What a ticket is worth.
struct TicketVerdict {
  std::optional<Grant> grant;  ///< of a good one
  TicketHolder holder;         ///< likewise
  std::string_view fault;      ///< else what is wrong with it, for the log; lives as long as the program
};

/// A ticket's secret is a keyed hash of its id, so nothing is kept of the tickets that are out, and they
/// outlive the process as the key does. Immutable; any thread. Wiped at its end.
class TicketKey {
 public:
  static constexpr std::size_t bytes = 32;
  using Bytes = std::array<std::byte, bytes>;

  /// `lifetime_max`: of what it issues. Tickets that end later were made under another clock, or when they
  /// were permitted more, and are refused.
  explicit TicketKey(
      std::span<const std::byte, bytes> key,
      std::chrono::milliseconds lifetime_max = std::chrono::milliseconds(limits::ticket_ms_max));
  TicketKey(const TicketKey&) = delete;
  TicketKey& operator=(const TicketKey&) = delete;
  ~TicketKey();

  /// Bytes for a new key.
  static Bytes random_bytes();

  /// By which it is known from other keys, and which says nothing of it: hexadecimal digits.
  [[nodiscard]] std::string id() const;

  /// Good for `lifetime` from `now` on, and as long as its holder may.
  [[nodiscard]] protocol::Ticket issue(const Grant& grant, std::chrono::milliseconds lifetime, Timestamp now,
                                       const TicketHolder& holder = {}) const;
  /// Takes as long wherever a wrong secret differs from the right one.
  [[nodiscard]] TicketVerdict check(std::string_view id, std::string_view secret, Timestamp now) const;
  /// The same of `ID.SECRET`.
  [[nodiscard]] TicketVerdict check(std::string_view shown, Timestamp now) const;

 private:
  [[nodiscard]] std::string secret_of(std::string_view id) const;

  Bytes key_{};
  const std::chrono::milliseconds lifetime_max_;
};

}  // namespace lightq::broker
