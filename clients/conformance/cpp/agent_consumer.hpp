/// A consumer of the agent: reports messages, writes their bodies to files, and settles them. Layer: agents.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <lightq/consumer.hpp>
#include <lightq/delivered.hpp>

#include "clients/conformance/cpp/agent_lines.hpp"

namespace lightq::agent {

/// Returns the description of a message in a line of messages.
inline Json described(const Delivered& message) {
  Json headers = Json::array();
  for (const Header& header : message.headers())
    headers.push_back({std::string(header.name), std::string(header.value)});
  Json line = {
      {"offset", message.offset.value}, {"bytes", message.payload.size()}, {"delivery", message.delivery}};
  if (!message.key().empty()) line["key"] = std::string(message.key());
  if (!headers.empty()) line["headers"] = std::move(headers);
  if (message.expired()) line["expired"] = true;
  return line;
}

/// Returns the place that a command names: `first`, `next`, `last`, or an offset.
inline session::Place place_of(const Json& command, const char* name) {
  if (command.contains(name) && command[name].is_number())
    return From::offset({command[name].get<std::uint64_t>()});
  const std::string word = text_of(command, name);
  return word == "next" ? From::next() : word == "last" ? From::last() : From::first();
}

/// Owns a consumer, and remembers the messages that it has not settled.
class AgentConsumer {
 public:
  AgentConsumer(Consumer consumer, Timeout open_timeout)
      : consumer_(std::move(consumer)), opened_(consumer_.wait_open(open_timeout)) {}
  AgentConsumer(const AgentConsumer&) = delete;
  AgentConsumer& operator=(const AgentConsumer&) = delete;

  /// Returns the options that a command `consume_open` asks for.
  static ConsumerOptions options_of(const Json& command) {
    ConsumerOptions options;
    if (command.value("own", false)) options.mode = ConsumeMode::own;
    options.group = text_of(command, "group");
    options.from = place_of(command, "from");
    options.ack_timeout = milliseconds_of(command, "ack_timeout_ms", 0);
    if (command.contains("prefetch")) options.prefetch_messages = command["prefetch"].get<std::uint32_t>();
    return options;
  }

  [[nodiscard]] Json opened() const { return reply_of(opened_); }

  /// Receives `count` messages, or fewer if none arrives for `timeout_ms`, and settles them as `settle` says.
  Json receive(const Json& command) {
    std::ofstream into(text_of(command, "into"), std::ios::binary | std::ios::app);
    const auto count = command.value("count", std::uint64_t{0});
    std::uint64_t received = 0;
    Result<void> done;
    while (received < count) {
      const auto message = consumer_.receive(milliseconds_of(command, "timeout_ms"));
      if (!message) done = message.error();
      if (!message || !*message) break;
      take(**message, command, into);
      ++received;
      if (lines_.size() >= 500 || !consumer_.is_ready() || received == count) report(command, into);
    }
    report(command, into);
    return reply_of(done, {{"received", received}});
  }

  /// Settles messages that were received earlier.
  Json settle(const Json& command) {
    const auto offsets = command.value("offsets", std::vector<std::uint64_t>());
    for (const std::uint64_t offset : offsets) settle_one({offset}, text_of(command, "how"), command);
    Result<void> done = consumer_.flush(milliseconds_of(command, "timeout_ms"));
    return reply_of(done);
  }

  /// Waits until the broker has taken back a message that is not settled. Returns all such messages.
  Json revoked(const Json& command) {
    const auto deadline = std::chrono::steady_clock::now() + milliseconds_of(command, "timeout_ms");
    Json offsets = Json::array();
    Result<void> done;
    while (offsets.empty() && done && std::chrono::steady_clock::now() < deadline) {
      done = consumer_.wait_open(milliseconds_of(command, "timeout_ms"));
      if (done) done = consumer_.flush(Timeout(1000));
      if (done) done = consumer_.poll();
      for (auto held = unsettled_.begin(); held != unsettled_.end();) {
        if (held->second.stop_requested()) offsets.push_back(held->first);
        held = held->second.stop_requested() ? unsettled_.erase(held) : std::next(held);
      }
    }
    return reply_of(done, {{"revoked", std::move(offsets)}});
  }

  Json seek(const Json& command) {
    const auto moved = consumer_.seek(place_of(command, "to"), milliseconds_of(command, "timeout_ms"));
    return moved ? reply_of({}, {{"offset", moved->value}}) : failed(moved.error());
  }

  Json close(Timeout timeout) { return reply_of(consumer_.close(timeout)); }

 private:
  void take(const Delivered& message, const Json& command, std::ofstream& into) {
    into.write(reinterpret_cast<const char*>(message.payload.data()),
               static_cast<std::streamsize>(message.payload.size()));
    lines_.push_back(described(message));
    if (command.contains("settle")) {
      received_.push_back(message.offset);
    } else {
      unsettled_[message.offset.value] = consumer_.stop_token(message);
    }
  }

  /// Reports messages, and settles them only after that.
  void report(const Json& command, std::ofstream& into) {
    if (lines_.empty()) return;
    into.flush();
    write_line({{"messages", std::exchange(lines_, Json::array())}});
    for (const Offset offset : std::exchange(received_, {}))
      settle_one(offset, text_of(command, "settle"), command);
  }

  void settle_one(Offset offset, const std::string& how, const Json& command) {
    unsettled_.erase(offset.value);
    if (how == "ack") consumer_.acknowledge(offset);
    if (how == "release") consumer_.release(offset);
    if (how == "retry") consumer_.reject(offset, milliseconds_of(command, "delay_ms", 0));
    if (how == "dead") consumer_.dead_letter(offset, text_of(command, "reason"));
  }

  Consumer consumer_;
  Result<void> opened_;
  Json lines_ = Json::array();
  std::vector<Offset> received_;  // reported messages that `settle` will settle
  std::map<std::uint64_t, std::stop_token> unsettled_;
};

}  // namespace lightq::agent
