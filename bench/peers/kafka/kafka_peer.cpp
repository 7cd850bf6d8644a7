/// Kafka's server. Layer: bench peers.
#include "peers/kafka/kafka_peer.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "peers/kafka/kafka_clients.hpp"
#include "peers/needs.hpp"
#include "peers/one_process_server.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds start_time_max{90};
constexpr const char* cluster_id = "bGlnaHRxLWJlbmNoLTAwMA";  // any 16 bytes, in Base64

/// Returns the configuration of one node that is broker and controller.
std::string configuration(Storage storage, std::uint16_t port, std::uint16_t controller_port,
                          const std::string& directory) {
  const std::string broker = "PLAINTEXT://127.0.0.1:" + std::to_string(port);
  const std::string controller = "127.0.0.1:" + std::to_string(controller_port);
  std::string text = "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@" + controller +
                     "\nlisteners=" + broker + ",CONTROLLER://" + controller +
                     "\nadvertised.listeners=" + broker +
                     "\ncontroller.listener.names=CONTROLLER\nlog.dirs=" + directory +
                     "/data\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
                     "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
                     "group.initial.rebalance.delay.ms=0\n";
  // A node that was stopped for a while stays in the cluster. One that was killed has to wait for this time.
  if (storage != Storage::standard) text += "broker.session.timeout.ms=3600000\n";
  if (storage == Storage::synced) text += "log.flush.interval.messages=1\n";
  return text;
}

class KafkaServer : public OneProcessServer {
 public:
  KafkaServer(const std::string& java, const std::string& jars, Storage storage)
      : OneProcessServer(
            [&](std::uint16_t port, const std::string& directory) {
              const std::string path = directory + "/server.properties";
              std::ofstream(path) << configuration(storage, port, free_port(), directory);
              output_of(
                  {java, "-cp", jars, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", path});
              return std::vector<std::string>{java,
                                              "-Xmx1G",
                                              "-Xms1G",
                                              "-XX:+UseG1GC",
                                              "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                                              "-cp",
                                              jars,
                                              "kafka.Kafka",
                                              path};
            },
            {}, start_time_max),
        flushes_(storage == Storage::synced) {}

  [[nodiscard]] std::string command() const override {
    return OneProcessServer::command() + (flushes_ ? " with log.flush.interval.messages=1" : "");
  }
  void make_queue(const QueueTerms& queue) override {
    if (!maker_) maker_.emplace(server().port());
    maker_->make_topic(queue.name);
  }
  void drop_queue(const QueueTerms& queue) override { KafkaAdmin(server().port()).delete_topic(queue.name); }
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    const KafkaAdmin admin(server().port());
    std::uint64_t count = 0;
    for (int i = 0; i < queue.consumers; ++i) count += admin.left(queue.name, group_of(queue, i));
    return count;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return std::make_unique<KafkaProducer>(server().port(), queue.name);
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override {
    return std::make_unique<KafkaConsumer>(server().port(), queue.name, group_of(queue, number));
  }

 private:
  static std::string group_of(const QueueTerms& queue, int number) {
    return queue.name + "-group-" + std::to_string(number);
  }
  std::optional<KafkaAdmin> maker_;
  bool flushes_;
};

class KafkaPeer : public Peer {
 public:
  explicit KafkaPeer(const std::string& directory) : jars_(directory + "/kafka") {}
  [[nodiscard]] std::string name() const override { return "kafka"; }
  [[nodiscard]] std::optional<std::string> version() const override {
    const std::string number = server_version();
    if (number.empty() || !find_program("java")) return std::nullopt;
    return "Kafka " + number + ", librdkafka " + rd_kafka_version_str();
  }
  [[nodiscard]] std::string needs() const override { return kafka_needs; }
  [[nodiscard]] std::string way() const override {
    return "an idempotent producer, linger 0.5 ms; a member of a group that commits after each 500 messages; "
           "one "
           "partition";
  }
  [[nodiscard]] Promise promise(Work work) const override {
    if (work == Work::memory) return impossible("stores in files");
    if (work == Work::work_queue)
      return impossible("acknowledges positions instead of messages, and a partition has one consumer");
    return {};
  }
  std::unique_ptr<PeerServer> start(Storage storage) const override {
    return std::make_unique<KafkaServer>(find_program("java").value(), jars_ + "/*", storage);
  }

 private:
  /// Returns the version in the name of the server's jar; empty: there is none.
  [[nodiscard]] std::string server_version() const {
    const std::string prefix = "kafka_2.13-";
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(jars_, ignored)) {
      const std::string name = entry.path().stem().string();
      if (name.starts_with(prefix)) return name.substr(prefix.size());
    }
    return "";
  }
  std::string jars_;
};

}  // namespace

std::unique_ptr<Peer> make_kafka_peer(std::string directory) {
  return std::make_unique<KafkaPeer>(directory);
}

}  // namespace lightq::bench
