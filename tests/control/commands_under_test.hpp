/// A command handler with its permissions and operations, for tests of commands.
#pragma once

#include <functional>
#include <utility>

#include "control/commands/command_handler.hpp"
#include "control/commands/operations.hpp"
#include "control/rights/permissions.hpp"

namespace lightq::broker::test {

/// Connects the parts as the broker does.
class CommandsUnderTest {
 public:
  CommandsUnderTest(EventLoop& loop, Catalogue& catalogue, Authenticator& authenticator,
                    DataPlane& data_plane, LogSink& sink, OperationSettings settings)
      : permissions_(catalogue, authenticator, 0),
        operations_({loop, catalogue, authenticator, permissions_.rights(), data_plane, sink},
                    std::move(settings)),
        handler_(permissions_, operations_) {}

  void handle(protocol::Request request, const Answer& answer) {
    handler_.handle(std::move(request), answer);
  }
  void set_reload(CommandHandler::Reload reload) { handler_.set_reload(std::move(reload)); }
  void change_limits(const CreationLimits& limits) { operations_.change_limits(limits); }
  void stop_accepting() { handler_.stop_accepting(); }
  void bring_up(std::function<void()> done) { operations_.bring_up(std::move(done)); }
  void endpoint_closed(const EndpointRecord& record) { operations_.observer().endpoint_closed(record); }
  void endpoint_changed(const EndpointRecord& record) { operations_.observer().endpoint_changed(record); }
  void log_found(TopicId topic, std::uint32_t log_id) { operations_.observer().log_found(topic, log_id); }

 private:
  Permissions permissions_;
  Operations operations_;
  CommandHandler handler_;
};

}  // namespace lightq::broker::test
