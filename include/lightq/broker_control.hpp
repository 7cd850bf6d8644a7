/// Requests about a running broker, its topics and their messages. Layer: client.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/reload.hpp>

namespace lightq::inline v1 {

class Client;
struct ClientState;

using protocol::CreatedTopic;
using protocol::GivenSettings;
using protocol::MessageTrace;
using protocol::ReloadReply;
using protocol::TopicSettings;

/// Requests about the broker and its topics. `reload` needs an administrator's credentials. The client may be
/// destroyed before it. Thread: as Client.
///
///     const auto reloaded = BrokerControl::of(client).reload().value_or_throw();
class BrokerControl {
 public:
  static BrokerControl of(const Client& client);

  /// Makes the broker read its settings, its certificate, its CURVE key and its list of clients' keys again.
  /// Returns the names of the settings that have changed, and of those that need a restart. Errors: those of
  /// a broker's start, for example invalid_argument (nothing has changed then); not_supported;
  /// unauthorized_access.
  Result<ReloadReply> reload();

  /// Creates a topic with those of the settings that `given` names. A topic template of the broker, or a
  /// default, sets the others. Returns the settings of the topic. Needs the right to manage the topic.
  /// Errors: as of Client::create_topic.
  Result<CreatedTopic> create_topic(std::string_view topic, const TopicSettings& settings,
                                    GivenSettings given);

  /// Returns the state of one message of the topic, and where it is in each group. Needs the right to consume
  /// from the whole topic. Errors: topic_not_found, unauthorized_access; invalid_request: the topic has no
  /// message of this offset yet.
  Result<MessageTrace> trace(std::string_view topic, std::uint64_t offset);

 private:
  explicit BrokerControl(std::shared_ptr<ClientState> state) : state_(std::move(state)) {}

  std::shared_ptr<ClientState> state_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/group_control.hpp>  // IWYU pragma: export
#endif
