/// The way from HTTP to the operations of the control thread. Layer: http.
#include "http/control_gate.hpp"

#include <memory>
#include <utility>

#include "http/basic_login.hpp"
#include "http/problem.hpp"

namespace lightq::broker {

namespace {
HttpResponse too_busy() {
  return problem({ErrorCode::busy, "the broker has too many requests under way; try again"});
}

HttpResponse refusal_of(const Error& error) {
  return error.code == ErrorCode::unauthorized_access ? login_wanted("the user or the password is wrong")
                                                      : problem(error);
}
}  // namespace

void ControlGate::as_user(HttpExchange exchange, Work work) const {
  if (exchange.request.authorization.empty())
    return exchange.reply(login_wanted("this needs a user and a password, by HTTP Basic"));
  with_credentials(
      std::move(exchange), refusal_of, std::move(work),
      [permissions = &parts_.permissions](protocol::Credentials credentials, const RequestContext& context,
                                          const Permissions::Then& then) {
        permissions->permit_user(std::move(credentials), context, then);
      });
}

void ControlGate::command(protocol::Request request, const RequestSource& source,
                          std::function<void(protocol::Reply reply)> done) const {
  const auto kept = std::make_shared<protocol::Request>(std::move(request));
  const auto then = std::make_shared<const std::function<void(protocol::Reply)>>(std::move(done));
  const bool posted = parts_.control.post([execute = parts_.execute, kept, source, then] {
    execute(std::move(*kept), Answer([then](protocol::Reply reply) { (*then)(std::move(reply)); }, source));
  });
  if (!posted)
    (*then)(protocol::ErrorReply{{}, ErrorCode::busy, "the broker has too many requests under way"});
}

void ControlGate::on_topic(HttpExchange exchange, const TopicName& topic, Permissions::Need need,
                           Work work) const {
  with_credentials(
      std::move(exchange), refused_command, std::move(work),
      [permissions = &parts_.permissions, topic, need = std::move(need)](
          protocol::Credentials credentials, const RequestContext& context, const Permissions::Then& then) {
        permissions->permit_topic(topic, need, std::move(credentials), false, context, then);
      });
}

/// Reads the credentials of the request, if it has any, and checks them with `permit` on the control thread.
/// Then calls `work`, or answers with the response that `refused` makes of the error.
void ControlGate::with_credentials(HttpExchange exchange, Refused refused, Work work, Permit permit) const {
  const auto credentials = std::make_shared<protocol::Credentials>();
  if (!exchange.request.authorization.empty()) {
    auto given = basic_credentials(exchange.request.authorization);
    if (!given) return exchange.reply(login_wanted("Authorization is not HTTP Basic, or is too long"));
    *credentials = std::move(*given);
  }
  const HttpReply reply = exchange.reply;
  const bool posted =
      parts_.control.post([&operations = parts_.operations, credentials, source = std::move(exchange.source),
                           reply, refused, work = std::move(work), permit = std::move(permit)] {
        permit(std::move(*credentials), RequestContext(source),
               [&operations, reply, refused, work](const Result<Asker>& asker) {
                 if (!asker) return reply(refused(asker.error()));
                 work(*asker, operations, reply);
               });
      });
  if (!posted) reply(too_busy());
}

bool ControlGate::as_broker(std::function<void(Operations& operations)> work) const {
  return parts_.control.post([parts = parts_, work = std::move(work)] { work(parts.operations); });
}

}  // namespace lightq::broker
