/// Parses and encodes PLAIN's HELLO and subscriptions. Layer: zmtp.
#include "zmtp/zmtp.hpp"

namespace lightq::broker::zmtp {

std::optional<PlainCredentials> credentials_of_hello(ByteView data) {
  const auto text = [&data]() -> std::optional<std::string_view> {
    const auto length = zmtp_detail::take(data, 1);
    const auto bytes =
        length ? zmtp_detail::take(data, std::to_integer<std::size_t>((*length)[0])) : std::nullopt;
    return bytes ? std::optional(as_text(*bytes)) : std::nullopt;
  };
  const auto username = text();
  const auto password = username ? text() : std::nullopt;
  if (!password || !data.empty()) return std::nullopt;
  return PlainCredentials{*username, *password};
}

std::optional<SubscriptionChange> subscription_of_message(ByteView payload) {
  if (payload.empty() || std::to_integer<int>(payload[0]) > 1) return std::nullopt;
  return SubscriptionChange{payload[0] == std::byte{1}, as_text(payload.subspan(1))};
}

std::optional<SubscriptionChange> subscription_of_command(const Command& command) {
  if (command.name == "SUBSCRIBE") return SubscriptionChange{true, as_text(command.data)};
  if (command.name == "CANCEL") return SubscriptionChange{false, as_text(command.data)};
  return std::nullopt;
}

}  // namespace lightq::broker::zmtp
