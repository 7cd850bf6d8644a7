/// Redis lists as queues, by the pattern that the documentation of LMOVE names the reliable queue. Layer:
/// bench peers.
#include <algorithm>
#include <stdexcept>

#include "peers/redis/redis_connection.hpp"
#include "peers/redis/redis_peer.hpp"
#include "peers/redis/redis_peers.hpp"
#include "peers/redis/redis_server.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t messages_per_push = 64;
constexpr std::size_t pushes_open_max = 16;
constexpr std::size_t moves_at_once = 128;  // while messages wait

std::string in_flight_list(const std::string& queue, int number) {
  return queue + ":in-flight:" + std::to_string(number);
}

class ListProducer : public PeerProducer {
 public:
  ListProducer(const std::string& path, std::string queue) : connection_(path), queue_(std::move(queue)) {}
  void send(ByteView message) override {
    gathered_.emplace_back(as_text(message));
    if (gathered_.size() == messages_per_push) push();
  }
  void poll() override {
    push();
    window_.confirm_present(connection_);
  }
  void flush() override {
    push();
    while (window_.open() > 0) window_.confirm_next(connection_);
  }
  [[nodiscard]] std::uint64_t confirmed() const override { return window_.confirmed(); }

 private:
  void push() {
    if (gathered_.empty()) return;
    std::vector<std::string_view> words = {"RPUSH", queue_};
    words.insert(words.end(), gathered_.begin(), gathered_.end());
    connection_.append(words);
    connection_.write_out();
    window_.add(gathered_.size());
    gathered_.clear();
    while (window_.open() >= pushes_open_max) window_.confirm_next(connection_);
  }
  RedisConnection connection_;
  std::string queue_;
  std::vector<std::string> gathered_;
  RedisWindow window_;
};

/// Moves many messages with one write while messages wait, and one at a time otherwise.
class ListConsumer : public PeerConsumer {
 public:
  ListConsumer(const std::string& path, std::string queue, int number, bool single)
      : connection_(path),
        queue_(std::move(queue)),
        in_flight_(in_flight_list(queue_, number)),
        single_(single) {}

  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    if (moves_ == 0) ask();
    if (!connection_.has_input(wait)) return 0;
    for (; acknowledgements_ > 0; --acknowledgements_) connection_.next();
    const std::size_t asked = moves_;
    std::size_t count = 0;
    for (; moves_ > 0; --moves_) {
      const RedisReply message = connection_.next();
      if (message->type == REDIS_REPLY_NIL) continue;
      take(bytes_of(*message));
      ++count;
    }
    may_be_more_ = !single_ && count == asked;
    if (count > 0) acknowledge(count);
    return count;
  }
  void settle() override {
    connection_.write_out();
    for (; acknowledgements_ + moves_ > 0; acknowledgements_ > 0 ? --acknowledgements_ : --moves_)
      connection_.next();
  }

 private:
  void ask() {
    moves_ = may_be_more_ ? moves_at_once : 1;
    if (may_be_more_) {
      for (std::size_t i = 0; i < moves_; ++i)
        connection_.append({"LMOVE", queue_, in_flight_, "LEFT", "RIGHT"});
    } else {
      connection_.append({"BLMOVE", queue_, in_flight_, "LEFT", "RIGHT", "1"});  // waits up to a second
    }
    connection_.write_out();
  }
  /// Removes the oldest messages in flight. The command is sent with the next moves.
  void acknowledge(std::size_t count) {
    connection_.append({"LPOP", in_flight_, std::to_string(count)});
    ++acknowledgements_;
  }
  RedisConnection connection_;
  std::string queue_;
  std::string in_flight_;
  bool single_;
  bool may_be_more_ = false;
  std::size_t moves_ = 0;             // commands without a reply
  std::size_t acknowledgements_ = 0;  // commands without a reply; they precede the moves
};

class ListServer : public RedisServer {
 public:
  using RedisServer::RedisServer;
  /// A list exists while it has messages.
  void make_queue(const QueueTerms& queue) override {
    if (queue.pattern == Pattern::idle) RedisConnection(socket_path()).ask({"RPUSH", queue.name, "message"});
  }
  void drop_queue(const QueueTerms& queue) override {
    RedisServer::drop_queue(queue);
    RedisConnection connection(socket_path());
    for (int i = 0; i < queue.consumers; ++i) connection.ask({"UNLINK", in_flight_list(queue.name, i)});
  }
  std::optional<std::uint64_t> left(const QueueTerms& queue) override {
    RedisConnection connection(socket_path());
    std::uint64_t count = number_of(*connection.ask({"LLEN", queue.name}));
    for (int i = 0; i < queue.consumers; ++i)
      count += number_of(*connection.ask({"LLEN", in_flight_list(queue.name, i)}));
    return count;
  }
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override {
    return std::make_unique<ListProducer>(socket_path(), queue.name);
  }
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override {
    return std::make_unique<ListConsumer>(socket_path(), queue.name, number,
                                          queue.pattern == Pattern::work_queue);
  }
};

class ListPeer : public RedisPeer {
 public:
  [[nodiscard]] std::string name() const override { return "redis-list"; }
  [[nodiscard]] std::string way() const override {
    return "RPUSH of 64 messages, 16 of them unconfirmed; 128 LMOVE at a time while messages wait, one LPOP "
           "acknowledges them; over a Unix socket";
  }
  [[nodiscard]] Promise promise(Work work) const override {
    if (work == Work::fan_out)
      return impossible("each message of a list goes to one consumer; see redis-stream");
    if (work == Work::idle)
      return {true, "an empty list does not exist, so 1,000 lists have one message each"};
    Promise promise = common_promise(work);
    if (work == Work::work_queue)
      promise.note = "messages of a consumer that dies stay in its list until a program moves them back";
    return promise;
  }
  std::unique_ptr<PeerServer> start(Storage storage) const override {
    return std::make_unique<ListServer>(storage);
  }
};

}  // namespace

std::unique_ptr<Peer> make_redis_list_peer() {
  return std::make_unique<ListPeer>();
}

}  // namespace lightq::bench
