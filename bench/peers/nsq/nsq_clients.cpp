/// Publishes in batches, and finishes pushed messages. Layer: bench peers.
#include "peers/nsq/nsq_clients.hpp"

#include <deque>
#include <stdexcept>

#include "peers/nsq/nsq_connection.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t batch_messages_max = 200;  // as many as nsqd's own benchmark puts into one
constexpr std::uint64_t unconfirmed_max = 2'000;
constexpr std::size_t messages_per_receive = 500;
constexpr int ready_max = 2'500;  // the most that nsqd permits by default
// The longest or largest that nsqd permits, or longer than a run, except `output_buffer_ms`, the shortest.
constexpr int heartbeat_ms = 60'000;
constexpr int message_timeout_ms = 600'000;
constexpr int output_buffer_bytes = 64 * 1024;
constexpr int output_buffer_ms = 25;
constexpr int no_output_buffer = -1;

class NsqProducer : public PeerProducer {
 public:
  NsqProducer(std::uint16_t port, const std::string& topic)
      : connection_(port, {}), command_("MPUB " + topic + "\n") {}
  void send(ByteView message) override {
    batch_ += nsq_number(message.size());
    batch_ += as_text(message);
    ++sent_;
    if (++gathered_ == batch_messages_max) write_batch();
    while (sent_ - confirmed_ >= unconfirmed_max) read_confirm();
  }
  void poll() override {
    write_batch();
    while (confirmed_ < sent_ && connection_.has_input(std::chrono::milliseconds(0))) read_confirm();
  }
  void flush() override {
    write_batch();
    while (confirmed_ < sent_) read_confirm();
  }
  [[nodiscard]] std::uint64_t confirmed() const override { return confirmed_; }

 private:
  void write_batch() {
    if (gathered_ == 0) return;
    const std::string count = nsq_number(gathered_);
    connection_.put(command_ + nsq_number(count.size() + batch_.size()) + count);
    connection_.put(batch_);
    connection_.write_out();
    unconfirmed_.push_back(gathered_);
    gathered_ = 0;
    batch_.clear();
  }
  void read_confirm() {
    connection_.expect("OK");
    confirmed_ += unconfirmed_.front();
    unconfirmed_.pop_front();
  }

  NsqConnection connection_;
  std::string command_;
  std::string batch_;                      // each message after its size
  std::uint64_t gathered_ = 0;             // messages in batch_
  std::deque<std::uint64_t> unconfirmed_;  // messages in each batch that was sent
  std::uint64_t sent_ = 0;
  std::uint64_t confirmed_ = 0;
};

NsqTerms consumer_terms(const QueueTerms& queue) {
  NsqTerms terms;
  terms.heartbeat_ms = heartbeat_ms;
  terms.message_timeout_ms = message_timeout_ms;
  terms.output_buffer_bytes = queue.prompt ? no_output_buffer : output_buffer_bytes;
  if (!queue.prompt) terms.output_buffer_ms = output_buffer_ms;
  return terms;
}

class NsqConsumer : public PeerConsumer {
 public:
  NsqConsumer(std::uint16_t port, const QueueTerms& queue, const std::string& channel)
      : connection_(port, consumer_terms(queue)) {
    const int ready = queue.pattern == Pattern::work_queue ? 1 : ready_max;
    connection_.put("SUB " + queue.name + " " + channel + "\n");
    connection_.put("RDY " + std::to_string(ready) + "\n");
    connection_.write_out();
    connection_.expect("OK");
  }
  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    std::size_t count = 0;
    while (count < messages_per_receive && connection_.has_input(count == 0 ? wait : no_wait))
      count += take_one(take);
    connection_.write_out();
    return count;
  }
  /// nsqd does not answer FIN, but it carries out commands one after the other.
  void settle() override {
    connection_.put("CLS\n");
    connection_.write_out();
    connection_.expect("CLOSE_WAIT");
  }

 private:
  std::size_t take_one(const Take& take) {
    const auto frame = connection_.next();
    if (!frame) return 0;
    if (frame->kind != NsqConnection::Kind::message)
      throw std::runtime_error("nsqd sends a response that no command asked for: " +
                               std::string(as_text(frame->data)));
    const NsqMessage message = parse_nsq_message(frame->data);
    take(message.content);
    connection_.put("FIN ");
    connection_.put(message.id);
    connection_.put("\n");
    return 1;
  }

  static constexpr std::chrono::milliseconds no_wait{0};
  NsqConnection connection_;
};

}  // namespace

std::unique_ptr<PeerProducer> make_nsq_producer(std::uint16_t port, const std::string& topic) {
  return std::make_unique<NsqProducer>(port, topic);
}

std::unique_ptr<PeerConsumer> make_nsq_consumer(std::uint16_t port, const QueueTerms& queue,
                                                const std::string& channel) {
  return std::make_unique<NsqConsumer>(port, queue, channel);
}

}  // namespace lightq::bench
