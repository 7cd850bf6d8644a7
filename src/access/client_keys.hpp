/// The public keys that plain ZeroMQ clients registered when they joined. Layer: access. docs/protocol.md,
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

#include "access/ticket.hpp"

namespace lightq::broker {

/// A registered key. It is as good as a ticket: a client that has the matching secret key is admitted.
struct ClientKeyRecord {
  CurvePublicKey key{};
  Grant grant;
  std::uint64_t expires_ms = 0;  ///< since 1970
  TicketHolder holder;           ///< the user who registered the key
  friend bool operator==(const ClientKeyRecord&, const ClientKeyRecord&) = default;
};

/// The catalogue's keys, for the threads that serve connections. The control thread writes them; a thread
/// reads them when a client presents a key. The catalogue's limits bound their number. Thread: any.
class ClientKeys {
 public:
  /// `lifetime_max`: the longest lifetime of a registered key. As with tickets, a key that ends later is
  /// refused.
  explicit ClientKeys(
      std::chrono::milliseconds lifetime_max = std::chrono::milliseconds(limits::ticket_ms_max))
      : lifetime_max_(lifetime_max) {}

  /// Adds a record. Replaces the record of the same key, topic and role.
  void put(const ClientKeyRecord& record);
  void remove(const CurvePublicKey& key, const Grant& grant);
  void remove_topic(TopicId topic);

  /// The result of checking a key.
  struct Verdict {
    std::string_view fault;  ///< why the key is refused; empty: it is accepted. Static text
    ClientKeyRecord record;  ///< the key's record, if it is accepted
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
