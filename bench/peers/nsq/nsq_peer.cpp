/// NSQ's server and promises. Layer: bench peers.
#include "peers/nsq/nsq_peer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "peers/nsq/nsq_clients.hpp"
#include "peers/one_process_server.hpp"
#include "support/load/http_client.hpp"

namespace lightq::bench {
namespace {

// More messages than a run leaves waiting: nsqd writes further ones to files.
constexpr const char* large_memory = "--mem-queue-size=1000000";
constexpr const char* no_memory = "--mem-queue-size=0";

std::string local(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

std::string channel_of(const QueueTerms& queue, int number) {
  return queue.pattern == Pattern::fan_out ? "consumer-" + std::to_string(number) : "all";
}

/// nsqd's HTTP: it makes queues and counts messages (nsqd/http.go and nsqd/stats.go in its sources).
class NsqControl {
 public:
  explicit NsqControl(std::uint16_t port)
      : client_(HttpClient::connect("http://" + local(port), "", "").value_or_throw()) {}
  void post(const std::string& path) {
    client_.post(path, "text/plain", "").value_or_throw();
    client_.receive().value_or_throw();
  }
  /// Returns how many messages have not been finished by a channel's consumers.
  std::uint64_t unfinished(const std::string& topic, const std::string& channel) {
    const std::string text =
        client_
            .get("/stats?format=json&include_clients=false&include_mem=false&topic=" + topic +
                 "&channel=" + channel)
            .value_or_throw();
    const nlohmann::json found = nlohmann::json::parse(text).at("topics").at(0);
    const nlohmann::json& counts = found.at("channels").at(0);
    std::uint64_t messages = found.at("depth").get<std::uint64_t>();
    for (const char* name : {"depth", "in_flight_count", "deferred_count"})
      messages += counts.at(name).get<std::uint64_t>();
    return messages;
  }

 private:
  HttpClient client_;
};

/// A queue is a topic with a channel, or with one for each consumer of all messages.
class NsqServer : public OneProcessServer {
 public:
  NsqServer(const std::string& program, Storage storage)
      : NsqServer(program, storage, std::make_unique<std::uint16_t>()) {}

  [[nodiscard]] std::string command() const override {
    std::string text = OneProcessServer::command();
    const std::string http = std::to_string(*http_port_);
    const std::size_t at = text.find(http);
    return at == std::string::npos ? text : text.replace(at, http.size(), "HTTP_PORT");
  }
  void make_queue(const QueueTerms& queue) override {
    NsqControl& nsqd = control();
    nsqd.post("/topic/create?topic=" + queue.name);
    for_each_channel(queue, [&](const std::string& channel) {
      nsqd.post("/channel/create?topic=" + queue.name + "&channel=" + channel);
    });
  }
  void drop_queue(const QueueTerms& queue) override { control().post("/topic/delete?topic=" + queue.name); }
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    std::uint64_t messages = 0;
    for_each_channel(
        queue, [&](const std::string& channel) { messages += control().unfinished(queue.name, channel); });
    return messages;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return make_nsq_producer(server().port(), queue.name);
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override {
    return make_nsq_consumer(server().port(), queue, channel_of(queue, number));
  }

 private:
  /// `http_port` gets the port of each attempt to start.
  NsqServer(const std::string& program, Storage storage, std::unique_ptr<std::uint16_t> http_port)
      : OneProcessServer([&](std::uint16_t port, const std::string& directory) {
          *http_port = free_port();
          std::vector<std::string> command = {program, "--data-path=" + directory,
                                              "--tcp-address=" + local(port),
                                              "--http-address=" + local(*http_port)};
          if (storage == Storage::memory) command.emplace_back(large_memory);
          if (storage == Storage::page_cache || storage == Storage::synced) command.emplace_back(no_memory);
          if (storage == Storage::synced) command.emplace_back("--sync-every=1");
          return command;
        }),
        http_port_(std::move(http_port)) {}

  static void for_each_channel(const QueueTerms& queue, const std::function<void(const std::string&)>& call) {
    const int channels = queue.pattern == Pattern::fan_out ? queue.consumers : 1;
    for (int i = 0; i < channels; ++i) call(channel_of(queue, i));
  }
  NsqControl& control() {
    if (!control_) control_.emplace(*http_port_);
    return *control_;
  }

  std::unique_ptr<std::uint16_t> http_port_;
  std::optional<NsqControl> control_;
};

class NsqPeer : public Peer {
 public:
  explicit NsqPeer(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] std::string name() const override { return "nsq"; }
  [[nodiscard]] std::optional<std::string> version() const override {
    const auto found = program();
    if (!found) return std::nullopt;
    const std::string text = output_of({*found, "--version"});
    return text.substr(0, text.find('\n')) + ", the suite's own client of its TCP protocol";
  }
  [[nodiscard]] std::string needs() const override { return "nsqd, which is built with Go"; }
  [[nodiscard]] std::string way() const override {
    return "batches of up to 200 messages, up to 2,000 unconfirmed; up to 2,500 messages pushed and not yet "
           "finished, with a buffer of 64 KiB that nsqd flushes after 25 ms; in latency without a buffer; in "
           "the work queue one message at a time";
  }
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] Promise promise(Work work) const override {
    switch (work) {
      case Work::page_cache:
        return {true,
                "no order; a killed server loses delivered messages that are not finished, and all of a new "
                "queue until its first fsync, after 2,500 messages or 2 s"};
      case Work::synced:
        return {true,
                "no order; each confirm comes before the fsync of its last message, and also if an fsync "
                "fails; a killed server loses delivered messages that are not finished"};
      case Work::work_queue:
        return {true, "messages of a consumer that dies come to others only after a timeout"};
      case Work::cpu: return {true, "no order; messages wait up to 25 ms in a buffer of the server"};
      case Work::idle: return {};
      case Work::kill:
        return {true,
                "by default a confirm says that the message is in memory: up to 10,000 messages of a topic, "
                "and as many of each channel"};
      default: break;
    }
    return {true, "no order"};
  }
  std::unique_ptr<PeerServer> start(Storage storage) const override {
    return std::make_unique<NsqServer>(program().value(), storage);
  }

 private:
  [[nodiscard]] std::optional<std::string> program() const { return find_program("nsqd", directory_); }
  std::string directory_;
};

}  // namespace

std::unique_ptr<Peer> make_nsq_peer(std::string directory) {
  return std::make_unique<NsqPeer>(std::move(directory));
}

}  // namespace lightq::bench
