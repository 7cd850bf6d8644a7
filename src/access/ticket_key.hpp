/// The broker's ticket key: issues tickets and checks whether a ticket was issued with it. Layer: access.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "access/ticket.hpp"

namespace lightq::broker {

/// The result of checking a ticket.
struct TicketVerdict {
  std::optional<Grant> grant;  ///< the permission of a valid ticket; nothing for an invalid one
  TicketHolder holder;         ///< the holder of a valid ticket
  std::string_view fault;      ///< the fault of an invalid ticket, for the log; lives as long as the program
};

/// The key of all tickets. A ticket's secret is a keyed hash of its id, so the broker keeps no list of issued
/// tickets. Tickets stay valid over a restart as long as the key is kept. Immutable. The destructor wipes the
/// key. Thread: any.
class TicketKey {
 public:
  static constexpr std::size_t bytes = 32;
  using Bytes = std::array<std::byte, bytes>;

  /// `lifetime_max`: the longest lifetime of tickets. `check` refuses tickets that end later (ends_too_late).
  explicit TicketKey(
      std::span<const std::byte, bytes> key,
      std::chrono::milliseconds lifetime_max = std::chrono::milliseconds(limits::ticket_ms_max));
  TicketKey(const TicketKey&) = delete;
  TicketKey& operator=(const TicketKey&) = delete;
  ~TicketKey();

  /// Returns random bytes for a new key.
  static Bytes random_bytes();

  /// Returns hexadecimal digits that identify the key and reveal nothing about it.
  [[nodiscard]] std::string id() const;

  /// Returns a number for the id that a user has given to a request. Others cannot compute it. Different
  /// pairs have different numbers, but for a chance of 2^-64. Never 0.
  [[nodiscard]] std::uint64_t number_of_request(std::uint64_t user, std::string_view id) const;

  /// Issues a ticket. It is valid for `lifetime` from `now` on, as long as its holder keeps the permission.
  /// Requires: `lifetime` is at most `lifetime_max`.
  [[nodiscard]] protocol::Ticket issue(const Grant& grant, std::chrono::milliseconds lifetime, Timestamp now,
                                       const TicketHolder& holder = {}) const;
  /// Checks a ticket: its secret and its time. The comparison of secrets takes constant time.
  [[nodiscard]] TicketVerdict check(std::string_view id, std::string_view secret, Timestamp now) const;
  /// Checks a ticket in the form `ID.SECRET`.
  [[nodiscard]] TicketVerdict check(std::string_view shown, Timestamp now) const;

 private:
  [[nodiscard]] std::string secret_of(std::string_view id) const;

  Bytes key_{};
  const std::chrono::milliseconds lifetime_max_;
};

}  // namespace lightq::broker
