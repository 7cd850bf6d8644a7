/// The callbacks that lead from a permission check to the reply of a request. Layer: control.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "control/answer.hpp"
#include "control/commands/done.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/permissions.hpp"

namespace lightq::broker {

/// Returns an ErrorReply to `cmd`.
inline protocol::Reply error_reply(std::string_view cmd, const Error& error) {
  return protocol::ErrorReply{std::string(cmd), error.code, error.text()};
}

/// Makes the callbacks of one request, which send its errors and its reply. `cmd` is a literal.
struct Exchange {
  std::string_view cmd;
  Answer answer;

  void fail(const Error& error) const { answer(error_reply(cmd, error)); }
  /// Returns a callback of a permission check that calls `operate` with the asker.
  template <std::invocable<const Asker&> Operate>
  [[nodiscard]] Permissions::Then permitted(Operate operate) const {
    return [exchange = *this, operate = std::move(operate)](const Result<Asker>& asker) {
      if (!asker) return exchange.fail(asker.error());
      operate(*asker);
    };
  }
  /// Returns a callback of an operation that sends the reply that `reply_of` makes of its value.
  template <typename Value, typename ReplyOf>
  [[nodiscard]] Done<Value> reply(ReplyOf reply_of) const {
    return [exchange = *this, reply_of = std::move(reply_of)](Result<Value>&& result) {
      if (!result) return exchange.fail(result.error());
      exchange.answer(reply_of(std::move(result).value()));
    };
  }
  /// Returns a callback of an operation that reports success.
  [[nodiscard]] Done<void> ok(const std::string& description = {}) const {
    return [exchange = *this, description](const Result<void>& result) {
      if (!result) return exchange.fail(result.error());
      exchange.answer(protocol::OkReply{std::string(exchange.cmd), description, {}});
    };
  }
};

}  // namespace lightq::broker
