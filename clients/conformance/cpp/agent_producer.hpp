/// A producer of the agent: sends messages from files and collects their fates. Layer: agents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/client.hpp>
#include <lightq/producer.hpp>

#include "clients/conformance/cpp/agent_lines.hpp"

namespace lightq::agent {

/// Owns a producer. Not movable, because the producer's reports refer to it.
class AgentProducer {
 public:
  AgentProducer(Producer producer, Timeout open_timeout)
      : producer_(std::move(producer)), opened_(producer_.wait_open(open_timeout)) {
    producer_.on_report([this](const SendReport& report) { settled(report); });
  }
  AgentProducer(const AgentProducer&) = delete;
  AgentProducer& operator=(const AgentProducer&) = delete;

  /// Returns the options that a command `produce_open` asks for.
  static ProducerOptions options_of(const Json& command) {
    ProducerOptions options;
    const std::string level = text_of(command, "level");
    if (level == "received") options.level = session::ConfirmLevel::received;
    if (level == "flushed") options.level = session::ConfirmLevel::flushed;
    options.delayed = command.value("delayed", false);
    options.retry_refused = command.value("retry_refused", true);
    options.identity.id = command.value("producer_id", std::uint64_t{0});
    options.identity.epoch = command.value("epoch", std::uint16_t{0});
    return options;
  }

  [[nodiscard]] Json opened() const {
    const ProducerIdentity& identity = producer_.identity();
    return reply_of(opened_, {{"producer_id", identity.id}, {"epoch", identity.epoch}});
  }

  /// Sends `count` messages of `size` bytes, or messages of `sizes`, which follow each other in `file`.
  Json produce(const Json& command) {
    std::ifstream file(text_of(command, "file"), std::ios::binary);
    const std::vector<std::size_t> sizes = sizes_of(command);
    const std::vector<std::string> keys = command.value("keys", std::vector<std::string>());
    const auto named = command.value("headers", std::vector<std::pair<std::string, std::string>>());
    std::vector<Header> headers;
    for (const auto& [name, value] : named) headers.push_back({name, value});
    Attributes attributes{.headers = headers};
    attributes.delay = milliseconds_of(command, "delay_ms", 0);
    attributes.ttl = milliseconds_of(command, "ttl_ms", 0);
    std::string body;
    Result<void> done;
    std::uint64_t sent = 0;
    for (; sent < sizes.size(); ++sent) {
      body.resize(sizes[sent]);
      file.read(body.data(), static_cast<std::streamsize>(body.size()));
      if (!keys.empty()) attributes.key = keys[sent % keys.size()];
      if (const auto taken = producer_.send(body, attributes); !taken) {
        done = taken.error();
        break;
      }
    }
    return finish(done, sent);
  }

  Json flush(Timeout timeout) { return finish(producer_.flush(timeout), 0); }
  Json close(Timeout timeout) { return finish(producer_.close(timeout), 0); }

 private:
  static std::vector<std::size_t> sizes_of(const Json& command) {
    if (command.contains("sizes")) return command["sizes"].get<std::vector<std::size_t>>();
    return std::vector<std::size_t>(command.value("count", std::size_t{0}),
                                    command.value("size", std::size_t{0}));
  }

  void settled(const SendReport& report) {
    const char* fate = report.fate == Fate::confirmed ? "confirmed"
                       : report.fate == Fate::refused ? "refused"
                                                      : "unknown";
    const Json code = report.error == nullptr ? Json() : Json(to_word(report.error->code));
    outcomes_.push_back({report.begin, report.end, fate, code});
  }

  /// Returns the reply, with the fates that were reported since the last reply.
  Json finish(const Result<void>& done, std::uint64_t sent) {
    return reply_of(done, {{"sent", sent}, {"outcomes", std::exchange(outcomes_, Json::array())}});
  }

  Producer producer_;
  Result<void> opened_;
  Json outcomes_ = Json::array();
};

}  // namespace lightq::agent
