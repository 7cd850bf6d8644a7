/// The operations that open and close endpoints. Layer: control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/z85.hpp>
#include <lightq/protocol/control.hpp>

#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// How a client reaches the endpoint or session that it joined.
struct Joined {
  std::string bind_uri;
  std::optional<protocol::Ticket> ticket;  ///< missing for raw consumers
  std::string server_key;                  ///< Z85; empty: CURVE does not encrypt the endpoint
  std::optional<protocol::Tls> tls;        ///< set for sessions that TLS encrypts
};

/// Joins and leaves topics. The asker's permission was checked before each call. Thread: the control thread.
/// Lifetime: the parts must outlive it.
class EndpointOperations {
 public:
  struct Parts {
    Catalogue& catalogue;
    CommitQueue& commits;
    DataPlane& data_plane;
    const ReadyTopics& ready;
    const AskerRights& rights;
    const OperationSettings& settings;
  };

  explicit EndpointOperations(Parts parts) : parts_(parts) {}

  /// Opens an endpoint or session for the asker, durably. `wish.holder` is set to the asker. `client_key`:
  /// the public key of the plain ZeroMQ socket that will connect; a broker that encrypts requires it. Errors:
  /// those of ReadyTopics::find; invalid_request, not_supported, limit_reached, and those of the catalogue
  /// and the data plane.
  void join(const Asker& asker, const TopicName& topic, JoinWish wish,
            const std::optional<CurvePublicKey>& client_key, const Done<Joined>& done);
  /// Closes an endpoint that the asker may close. Returns the number of messages that were sent to it, when
  /// its removal is durable. Errors: those of ReadyTopics::find; endpoint_not_found, and those of the
  /// catalogue.
  void leave(const Asker& asker, const TopicName& topic, const std::string& bind_uri,
             const Done<std::uint64_t>& done);

 private:
  [[nodiscard]] bool wants_client_key(const JoinWish& wish, bool open) const;
  [[nodiscard]] std::optional<Error> objection_to(const std::optional<CurvePublicKey>& key,
                                                  const Grant& grant, const TicketHolder& holder) const;
  [[nodiscard]] Result<std::vector<ClientKeyRecord>> put_client_key(const ClientKeyRecord& key);
  void keep_joined(const JoinedEndpoint& joined, const std::optional<ClientKeyRecord>& key,
                   const Done<Joined>& done);
  [[nodiscard]] Joined as_joined(const JoinedEndpoint& joined) const;
  [[nodiscard]] Leaver leaver_of(const Asker& asker, const TopicName& topic) const;

  const Parts parts_;
};

}  // namespace lightq::broker
