/// The definitions of <lightq/json_control.hpp>. Layer: client.
#pragma once

#include <lightq/json_control.hpp>

#include <string>
#include <string_view>

#include <lightq/client.hpp>
#include <lightq/impl/client_state.hpp>
#include <lightq/protocol/json.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE JsonControl JsonControl::of(const Client& client) {
  return JsonControl(client.state());
}

LIGHTQ_INLINE Result<std::string> JsonControl::ask(std::string_view request) const {
  const bool is_admin = !state_->options.admin.user_id.empty();
  const auto parsed = protocol::parse_request_of(request, state_->manager(), is_admin);
  if (!parsed) return parsed.error();
  const auto reply = state_->ask(*parsed);
  if (!reply) return reply.error();
  return protocol::to_json(*reply);
}

}  // namespace lightq::inline v1
