/// The public keys that plain ZeroMQ clients registered when they joined. Layer: endpoint. docs/protocol.md,
/// "Encryption".
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>
#include <lightq/base/z85.hpp>

#include "broker/endpoint/ticket.hpp"

namespace lightq::broker {

/// A key that is as good as a ticket: who has its secret one may come in.
struct ClientKeyRecord {
  CurvePublicKey key{};
  Grant grant;
  std::uint64_t expires_ms = 0;  ///< since 1970
  TicketHolder holder;           ///< whose it is
  friend bool operator==(const ClientKeyRecord&, const ClientKeyRecord&) = default;
};

/// What the catalogue has, for the threads that connections come to: written by the control thread, read
/// where somebody shows a key. Bounded by what the catalogue takes. Any thread.
class ClientKeys {
 public:
  /// `lifetime_max`: of what is registered. What ends later is refused, as of tickets.
  explicit ClientKeys(
      std::chrono::milliseconds lifetime_max = std::chrono::milliseconds(limits::ticket_ms_max))
      : lifetime_max_(lifetime_max) {}

  /// Another record of the same key, topic and role is replaced.
  void put(const ClientKeyRecord& record);
  void remove(const CurvePublicKey& key, const Grant& grant);
  void remove_topic(TopicId topic);

  /// What a key is worth.
  struct Verdict {
    std::string_view fault;  ///< why it does not open this door; empty: it does. Lives as long as the program
    ClientKeyRecord record;  ///< of one that does
  };
  [[nodiscard]] Verdict check(const CurvePublicKey& key, const Grant& grant, Timestamp now) const;
  [[nodiscard]] std::size_t size() const;

 private:
  using Id = std::tuple<CurvePublicKey, std::uint64_t, EndpointRole>;
  static Id id_of(const CurvePublicKey& key, const Grant& grant) {
    return {key, grant.topic.value, grant.role};
  }

  const std::chrono::milliseconds lifetime_max_;
  mutable std::mutex mutex_;
  std::map<Id, ClientKeyRecord> records_;
};

}  // namespace lightq::broker
