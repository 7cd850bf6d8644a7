/// The C++ client's agent for the conformance kit: does the commands of clients/conformance/README.md with
/// the client library. Layer: agents.
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <lightq/client.hpp>
#include <lightq/reader.hpp>
#include <lightq/version.hpp>

#include "clients/conformance/cpp/agent_consumer.hpp"
#include "clients/conformance/cpp/agent_lines.hpp"
#include "clients/conformance/cpp/agent_producer.hpp"

namespace lightq::agent {
namespace {

class Agent {
 public:
  /// Does one command and returns its reply.
  Json run(const Json& command) {
    const std::string what = text_of(command, "do");
    if (what == "connect") return connect(command);
    if (!client_) return failed({ErrorCode::closed, "not connected"});
    if (what == "create_topic")
      return reply_of(client_->create_topic(text_of(command, "topic"), settings_of(command)));
    if (what == "delete_topic") return reply_of(client_->delete_topic(text_of(command, "topic")));
    if (what == "stats") return stats(command);
    if (what == "produce_open") return open_producer(command);
    if (what == "consume_open") return open_consumer(command);
    if (what == "read") return read(command);
    const std::string on = text_of(command, "on");
    if (const auto found = producers_.find(on); found != producers_.end())
      return with_producer(*found->second, what, command);
    if (const auto found = consumers_.find(on); found != consumers_.end())
      return with_consumer(*found->second, what, command);
    return failed({ErrorCode::invalid_argument, "no such command or object"});
  }

 private:
  static TopicSettings settings_of(const Json& command) {
    TopicSettings settings;
    if (text_of(command, "broker_type") == "file") settings.broker_type = BrokerType::file;
    return settings;
  }

  static Json with_producer(AgentProducer& producer, const std::string& what, const Json& command) {
    if (what == "produce") return producer.produce(command);
    if (what == "flush") return producer.flush(milliseconds_of(command, "timeout_ms"));
    if (what == "close") return producer.close(milliseconds_of(command, "timeout_ms"));
    return failed({ErrorCode::invalid_argument, "a producer does not " + what});
  }

  static Json with_consumer(AgentConsumer& consumer, const std::string& what, const Json& command) {
    if (what == "receive") return consumer.receive(command);
    if (what == "settle") return consumer.settle(command);
    if (what == "revoked") return consumer.revoked(command);
    if (what == "seek") return consumer.seek(command);
    if (what == "close") return consumer.close(milliseconds_of(command, "timeout_ms"));
    return failed({ErrorCode::invalid_argument, "a consumer does not " + what});
  }

  Json connect(const Json& command) {
    ClientOptions options;
    options.discover_credentials = false;
    const Credentials given{text_of(command, "user"), text_of(command, "password")};
    if (command.value("admin", false)) {
      options.admin = given;
    } else {
      options.user = given;
    }
    options.server_key = text_of(command, "server_key");
    if (const std::string transport = text_of(command, "transport"); !transport.empty())
      transport_ = transport == "ipc" ? Transport::ipc : Transport::tcp;
    options_ = options;
    uri_ = text_of(command, "uri");
    auto client = Client::connect(uri_, options);
    if (!client) return failed(client.error());
    client_.emplace(std::move(*client));
    return reply_of({});
  }

  /// Returns a client whose calls that open something wait for as long as the command says. The time of a
  /// client is fixed when it connects.
  Result<Client> client_for(const Json& command) const {
    ClientOptions options = options_;
    options.connect_timeout = milliseconds_of(command, "timeout_ms");
    return Client::connect(uri_, std::move(options));
  }

  Json stats(const Json& command) {
    const auto stats = client_->stats(text_of(command, "topic"));
    if (!stats) return failed(stats.error());
    return reply_of({}, {{"messages_received", stats->messages_received}, {"duplicates", stats->duplicates}});
  }

  Json open_producer(const Json& command) {
    auto client = client_for(command);
    if (!client) return failed(client.error());
    auto made = client->producer(text_of(command, "topic"), AgentProducer::options_of(command), transport_);
    if (!made) return failed(made.error());
    auto& producer = producers_[text_of(command, "as")];
    producer = std::make_unique<AgentProducer>(std::move(*made), milliseconds_of(command, "timeout_ms"));
    return producer->opened();
  }

  Json open_consumer(const Json& command) {
    auto client = client_for(command);
    if (!client) return failed(client.error());
    auto made = client->consumer(text_of(command, "topic"), AgentConsumer::options_of(command), transport_);
    if (!made) return failed(made.error());
    auto& consumer = consumers_[text_of(command, "as")];
    consumer = std::make_unique<AgentConsumer>(std::move(*made), milliseconds_of(command, "timeout_ms"));
    return consumer->opened();
  }

  Json read(const Json& command) {
    auto reader = client_->reader(text_of(command, "topic"), {}, transport_);
    if (!reader) return failed(reader.error());
    std::ofstream into(text_of(command, "into"), std::ios::binary | std::ios::app);
    Json lines = Json::array();
    const OffsetRange range{{command.value("begin", std::uint64_t{0})},
                            {command.value("end", std::uint64_t{0})}};
    const auto next = reader->read(
        range,
        [&](const Delivered& message) {
          into.write(reinterpret_cast<const char*>(message.payload.data()),
                     static_cast<std::streamsize>(message.payload.size()));
          lines.push_back(described(message));
        },
        milliseconds_of(command, "timeout_ms"));
    into.flush();
    write_line({{"messages", std::move(lines)}});
    return next ? reply_of({}, {{"next", next->value}}) : failed(next.error());
  }

  ClientOptions options_;
  std::string uri_;
  std::optional<Client> client_;
  std::optional<Transport> transport_;
  std::map<std::string, std::unique_ptr<AgentProducer>> producers_;
  std::map<std::string, std::unique_ptr<AgentConsumer>> consumers_;
};

/// Does the commands of standard input until its end.
void run() {
  write_line(
      {{"client", "C++"},
       {"version", version_text},
       {"features",
        {"control", "keys", "delayed", "ttl", "leases", "dead", "seek", "read", "tls", "ipc", "epoch"}}});
  Agent agent;
  for (std::string line; std::getline(std::cin, line);) {
    const Json command = Json::parse(line);
    if (text_of(command, "do") == "exit") return;
    Json reply = agent.run(command);
    reply["id"] = command.value("id", 0);
    write_line(reply);
  }
}

}  // namespace
}  // namespace lightq::agent

int main() {
  std::ios::sync_with_stdio(false);
  try {
    lightq::agent::run();
  } catch (const std::exception& failure) {
    std::cerr << "the agent failed: " << failure.what() << '\n';
    return 1;
  }
  return 0;
}
