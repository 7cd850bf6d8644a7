/// Redis streams with consumer groups. Layer: bench peers.
#include <algorithm>
#include <stdexcept>

#include "peers/redis/redis_connection.hpp"
#include "peers/redis/redis_peer.hpp"
#include "peers/redis/redis_peers.hpp"
#include "peers/redis/redis_server.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t adds_open_max = 1'024;
constexpr std::size_t adds_per_write = 64;
constexpr const char* messages_per_read = "512";
constexpr const char* field_name = "m";

/// The consumers of a fan-out have a group each; others share the first one.
std::string group_of(const QueueTerms& queue, int number) {
  return "group-" + std::to_string(queue.pattern == Pattern::fan_out ? number : 0);
}

class StreamProducer : public PeerProducer {
 public:
  StreamProducer(const std::string& path, std::string queue) : connection_(path), queue_(std::move(queue)) {}
  void send(ByteView message) override {
    connection_.append({"XADD", queue_, "*", field_name, as_text(message)});
    window_.add(1);
    if (++gathered_ < adds_per_write) return;
    write_out();
    while (window_.open() > adds_open_max) window_.confirm_next(connection_);
  }
  void poll() override {
    write_out();
    window_.confirm_present(connection_);
  }
  void flush() override {
    write_out();
    while (window_.open() > 0) window_.confirm_next(connection_);
  }
  [[nodiscard]] std::uint64_t confirmed() const override { return window_.confirmed(); }

 private:
  void write_out() {
    connection_.write_out();
    gathered_ = 0;
  }
  RedisConnection connection_;
  std::string queue_;
  std::size_t gathered_ = 0;
  RedisWindow window_;
};

class StreamConsumer : public PeerConsumer {
 public:
  StreamConsumer(const std::string& path, const QueueTerms& queue, int number)
      : connection_(path),
        queue_(queue.name),
        group_(group_of(queue, number)),
        name_("consumer-" + std::to_string(number)),
        count_(queue.pattern == Pattern::work_queue ? "1" : messages_per_read) {}

  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    if (!reading_) {
      connection_.append(
          {"XREADGROUP", "GROUP", group_, name_, "COUNT", count_, "BLOCK", "1000", "STREAMS", queue_, ">"});
      connection_.write_out();
      reading_ = true;
    }
    if (!connection_.has_input(wait)) return 0;
    for (; acknowledgements_ > 0; --acknowledgements_) connection_.next();
    const RedisReply reply = connection_.next();
    reading_ = false;
    if (reply->type == REDIS_REPLY_NIL) return 0;
    const redisReply& entries = element_of(element_of(*reply, 0), 1);
    std::vector<std::string_view> words = {"XACK", queue_, group_};
    for (std::size_t i = 0; i < entries.elements; ++i) {
      const redisReply& entry = element_of(entries, i);
      take(bytes_of(element_of(element_of(entry, 1), 1)));
      words.push_back(as_text(bytes_of(element_of(entry, 0))));
    }
    connection_.append(words);  // sent with the next read
    ++acknowledgements_;
    return entries.elements;
  }
  void settle() override {
    connection_.write_out();
    for (; acknowledgements_ > 0; --acknowledgements_) connection_.next();
    if (reading_) connection_.next();
    reading_ = false;
  }

 private:
  RedisConnection connection_;
  std::string queue_;
  std::string group_;
  std::string name_;
  std::string count_;
  bool reading_ = false;
  std::size_t acknowledgements_ = 0;  // commands without a reply; they precede the read
};

class StreamServer : public RedisServer {
 public:
  using RedisServer::RedisServer;
  void make_queue(const QueueTerms& queue) override {
    RedisConnection connection(socket_path());
    for (int i = 0; i < groups_of(queue); ++i) make_group(connection, queue, i);
  }
  /// Returns the messages that were delivered and not acknowledged, and those that were not delivered.
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    RedisConnection connection(socket_path());
    const std::uint64_t length = number_of(*connection.ask({"XLEN", queue.name}));
    const RedisReply groups = connection.ask({"XINFO", "GROUPS", queue.name});
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < groups->elements; ++i) {
      const redisReply& group = element_of(*groups, i);
      count += number_of(value_of(group, "pending"));
      const redisReply& read = value_of(group, "entries-read");
      count += length - (read.type == REDIS_REPLY_NIL ? 0 : std::min(length, number_of(read)));
    }
    return count;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return std::make_unique<StreamProducer>(socket_path(), queue.name);
  }
  /// Makes the group again if the server lost it when it was killed.
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override {
    RedisConnection connection(socket_path());
    const RedisReply exists = connection.ask({"EXISTS", queue.name});
    if (number_of(*exists) == 0) make_group(connection, queue, number);
    return std::make_unique<StreamConsumer>(socket_path(), queue, number);
  }

 private:
  static void make_group(RedisConnection& connection, const QueueTerms& queue, int number) {
    connection.ask({"XGROUP", "CREATE", queue.name, group_of(queue, number), "0", "MKSTREAM"});
  }
  static int groups_of(const QueueTerms& queue) {
    return queue.pattern == Pattern::fan_out ? queue.consumers : 1;
  }
  static const redisReply& value_of(const redisReply& map, std::string_view name) {
    for (std::size_t i = 0; i + 1 < map.elements; i += 2) {
      if (as_text(bytes_of(element_of(map, i))) == name) return element_of(map, i + 1);
    }
    throw std::runtime_error("Redis does not tell about " + std::string(name));
  }
};

class StreamPeer : public RedisPeer {
 public:
  [[nodiscard]] std::string name() const override { return "redis-stream"; }
  [[nodiscard]] std::string way() const override {
    return "XADD pipelined, up to 1,024 unconfirmed; XREADGROUP of 512 messages, one XACK for all; over a "
           "Unix "
           "socket";
  }
  [[nodiscard]] Promise promise(Work work) const override {
    Promise promise = common_promise(work);
    if (work == Work::memory || work == Work::page_cache || work == Work::synced)
      promise.note = "acknowledged messages stay in memory until a program trims the stream";
    return promise;
  }
  std::unique_ptr<PeerServer> start(Storage storage) const override {
    return std::make_unique<StreamServer>(storage);
  }
};

}  // namespace

std::unique_ptr<Peer> make_redis_stream_peer() {
  return std::make_unique<StreamPeer>();
}

}  // namespace lightq::bench
