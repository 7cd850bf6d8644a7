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
  auto given = basic_credentials(exchange.request.authorization);
  if (!given) return exchange.reply(login_wanted("Authorization is not HTTP Basic, or is too long"));
  const auto credentials = std::make_shared<protocol::Credentials>(std::move(*given));
  const HttpReply reply = exchange.reply;
  const bool posted = parts_.control.post(
      [parts = parts_, credentials, source = std::move(exchange.source), reply, work = std::move(work)] {
        parts.permissions.permit_user(std::move(*credentials), RequestContext(source),
                                      [parts, reply, work](const Result<Asker>& asker) {
                                        if (!asker) return reply(refusal_of(asker.error()));
                                        work(*asker, parts.operations, reply);
                                      });
      });
  if (!posted) reply(too_busy());
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
  const auto credentials = std::make_shared<protocol::Credentials>();
  if (!exchange.request.authorization.empty()) {
    auto given = basic_credentials(exchange.request.authorization);
    if (!given) return exchange.reply(login_wanted("Authorization is not HTTP Basic, or is too long"));
    *credentials = std::move(*given);
  }
  const HttpReply reply = exchange.reply;
  const bool posted = parts_.control.post([parts = parts_, credentials, source = std::move(exchange.source),
                                           topic, need = std::move(need), reply, work = std::move(work)] {
    parts.permissions.permit_topic(topic, need, std::move(*credentials), false, RequestContext(source),
                                   [parts, reply, work](const Result<Asker>& asker) {
                                     if (!asker) return reply(refused_command(asker.error()));
                                     work(*asker, parts.operations, reply);
                                   });
  });
  if (!posted) reply(too_busy());
}

bool ControlGate::as_broker(std::function<void(Operations& operations)> work) const {
  return parts_.control.post([parts = parts_, work = std::move(work)] { work(parts.operations); });
}

}  // namespace lightq::broker
