/// The commands of the control protocol as resources. Layer: http.
#include "http/resources/control_resource.hpp"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <lightq/protocol/json.hpp>

#include "http/document/api_document.hpp"
#include "http/problem.hpp"

namespace lightq::broker {

namespace {
HttpResponse response_to(const protocol::Reply& reply, unsigned status) {
  if (const auto* const refused = std::get_if<protocol::ErrorReply>(&reply))
    return refused_command({refused->code, refused->description});
  return {.status = status, .content_type = "application/json", .body = protocol::to_json(reply) + "\n"};
}
}  // namespace

void ControlResource::add_to(Router& router) {
  router.add("GET", "/api/v1/openapi.json", [text = api_document()](const HttpExchange& exchange) {
    exchange.reply({.content_type = "application/json", .body = text});
  });
  for (const CommandRoute& route : command_routes()) {
    router.add(std::string(route.method), route.path,
               [this, &route](const HttpExchange& exchange) { run(route, exchange); });
  }
}

void ControlResource::run(const CommandRoute& route, const HttpExchange& exchange) const {
  auto command = command_of(route, exchange, parts_.request_bytes_max);
  if (!command) return exchange.reply(refused_command(command.error()));
  parts_.gate.command(
      std::move(*command), exchange.source,
      [&loop = parts_.loop, reply = exchange.reply, status = route.status](protocol::Reply replied) {
        const auto kept = std::make_shared<const protocol::Reply>(std::move(replied));
        loop.post([kept, reply, status] { reply(response_to(*kept, status)); });
      });
}

}  // namespace lightq::broker
