/// The producer and consumer processes of a topic fan, which encode and decode session frames themselves.
/// Layer: bench support.
#include "support/topic_fan.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>

#include <lightq/base/batch.hpp>
#include <lightq/detail/session_inbox.hpp>
#include <lightq/detail/session_memory_socket.hpp>
#include <lightq/protocol/session_consuming.hpp>
#include <lightq/protocol/session_link.hpp>
#include <lightq/protocol/session_producing.hpp>

#include "support/child_process.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

using session::Op;

constexpr std::uint32_t frame_bytes_max = 1 << 20;
constexpr std::size_t unsent_bytes_max = 256 * 1024;
constexpr std::uint64_t unconfirmed_max = 16 * 1024;  // messages, of all topics
constexpr std::uint64_t unacknowledged_max = 32;      // messages of one topic
constexpr std::size_t read_bytes = 256 * 1024;
constexpr session::SharedSizes memory{512 * 1024, 512 * 1024};

/// The connection of one session, in memory shared with the broker. Throws std::runtime_error. One thread.
class FrameLine {
 public:
  explicit FrameLine(const std::string& uri)
      : wire_(SessionSocket::connect(uri).value_or_throw()), inbox_(frame_bytes_max, read_bytes) {}

  /// Sends hello, then switches to shared memory.
  void begin(const std::string& ticket) {
    session::Hello hello;
    hello.frame_bytes_max = frame_bytes_max;
    hello.ticket = ticket;
    put(hello, 0, 1);
    wait_for(Op::welcome);
    put(session::Share{memory, true}, 0, 1);
    wait_for(Op::shared);
    wire_.share(memory).value_or_throw();
  }

  template <typename Body>
  void put(const Body& body, std::uint32_t channel, std::uint32_t request) {
    const auto frame = session::encode_frame(body, channel, request);
    out_.insert(out_.end(), frame.begin(), frame.end());
  }
  /// Appends a produce frame.
  void put_batch(std::uint32_t channel, ByteView batch) {
    const std::size_t at = out_.size();
    out_.resize(at + session::frame_layout::header_bytes);
    session::encode_frame_header(out_.data() + at,
                                 {Op::produce, 0, channel, 0, static_cast<std::uint32_t>(batch.size())}, {});
    out_.insert(out_.end(), batch.begin(), batch.end());
  }
  [[nodiscard]] bool is_full() const { return out_.size() - sent_ >= unsent_bytes_max; }

  /// Sends as much as possible, waits for input or space, and calls `take` for every received frame.
  template <typename Take>
  void turn(Take take) {
    send_some();
    const std::span<std::byte> room = inbox_.room();
    const std::size_t got = wire_.read(room).value_or_throw();
    if (got == 0) return wait();
    inbox_.add(got);
    for (auto frame = inbox_.next().value_or_throw(); frame; frame = inbox_.next().value_or_throw()) {
      refuse_bad_news(*frame);
      take(*frame);
    }
  }

 private:
  void wait_for(Op op) {
    bool has_come = false;
    while (!has_come) turn([&](const SessionFrame& frame) { has_come |= frame.header.op == op; });
  }
  void send_some() {
    if (sent_ == out_.size()) return;
    iovec part{out_.data() + sent_, out_.size() - sent_};
    sent_ += wire_.write({&part, 1}).value_or_throw();
    if (sent_ != out_.size()) return;
    out_.clear();
    sent_ = 0;
  }
  void wait() {
    const bool sends = sent_ < out_.size();
    const auto events = static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN);
    if (wire_.pending(events)) return;
    pollfd wanted{wire_.fd(), wire_.tells_room_by_writable() ? events : static_cast<short>(POLLIN), 0};
    if (::poll(&wanted, 1, static_cast<int>(stream_patience.count())) != 1)
      throw std::runtime_error("nothing moved");
  }
  static void refuse_bad_news(const SessionFrame& frame) {
    const Op op = frame.header.op;
    if (op == Op::error || op == Op::refuse || op == Op::goodbye)
      throw std::runtime_error("the broker said " + std::string(session::rule_of(op).name));
  }

  SessionMemorySocket wire_;
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;
  SessionInbox inbox_;
};

struct FanRun {
  FanRun(const TopicFan& topic_fan, const StreamPlan& plan) : fan(topic_fan), stream({}, plan) {}
  [[nodiscard]] std::uint64_t each() const { return stream.plan.message_count / fan.topics.size(); }
  [[nodiscard]] std::uint64_t total() const { return each() * fan.topics.size(); }

  const TopicFan& fan;
  StreamRun stream;
};

/// Presents all tickets, then sends `open` for each topic, with a request number from which its position
/// follows. `opened` receives the replies.
template <typename Ticket, typename Open, typename Opened>
void open_all(FrameLine& line, const FanRun& run, Ticket ticket, Open open, Opened opened) {
  line.begin(ticket(run.fan.topics.front()));
  for (const TopicFan::Topic& topic : run.fan.topics) line.put(session::Present{ticket(topic)}, 0, 1);
  std::uint32_t request = 2;
  for (const TopicFan::Topic& topic : run.fan.topics) line.put(open(topic), 0, request++);
  std::size_t count = 0;
  while (count < run.fan.topics.size()) {
    line.turn([&](const SessionFrame& frame) {
      if (frame.header.request < 2) return;
      opened(frame.header.request - 2, frame);
      ++count;
    });
  }
}

class FanProducer {
 public:
  explicit FanProducer(FanRun& run) : run_(run), line_(run.fan.uri), topics_(run.fan.topics.size()) {}

  int work() {
    open();
    const Clock::time_point give_up = Clock::now() + stream_patience;
    if (!run_.stream.listening.wait_until(give_up)) return run_.stream.fail("the consumer did not come");
    std::uint64_t sent = 0;
    while (confirmed_ < run_.total()) {
      while (sent < run_.total() && sent - confirmed_ < unconfirmed_max && !line_.is_full()) send(sent++);
      line_.turn([this](const SessionFrame& frame) { take(frame); });
    }
    return 0;
  }

 private:
  struct Topic {
    std::uint32_t channel = 0;
    session::ProducerIdentity identity;
    std::uint64_t confirmed = 0;
  };

  void open() {
    open_all(
        line_, run_, [](const TopicFan::Topic& topic) { return topic.producer_ticket; },
        [](const TopicFan::Topic& topic) {
          return session::ProduceOpen{{}, session::ConfirmLevel::received, topic.name, {}};
        },
        [this](std::size_t place, const SessionFrame& frame) {
          const auto opened = session::ProduceOpened::decode(frame.body, 0).value_or_throw();
          const std::uint32_t channel = frame.header.channel;
          topics_[place] = {channel, opened.producer, 0};
          if (places_.size() <= channel) places_.resize(channel + 1);
          places_[channel] = place;
        });
  }

  void send(std::uint64_t number) {
    const Topic& topic = topics_[number % topics_.size()];
    const std::uint64_t sequence = number / topics_.size();
    batch_.clear();
    run_.stream.pattern.write({run_.stream.id, MessageKind::data, number, 0},
                              batch_.add_uninitialized(run_.stream.pattern.message_bytes()));
    line_.put_batch(topic.channel, batch_.finish({topic.identity.id, sequence, topic.identity.epoch}));
  }

  void take(const SessionFrame& frame) {
    if (frame.header.op != Op::confirm) return;
    Topic& topic = topics_[places_.at(frame.header.channel)];
    const std::uint64_t received = session::Confirm::decode(frame.body, 0).value_or_throw().received;
    confirmed_ += received - topic.confirmed;
    topic.confirmed = received;
  }

  FanRun& run_;
  FrameLine line_;
  std::vector<Topic> topics_;
  std::vector<std::size_t> places_;  // by channel
  BatchBuilder batch_;
  std::uint64_t confirmed_ = 0;
};

class FanConsumer {
 public:
  explicit FanConsumer(FanRun& run) : run_(run), line_(run.fan.uri), topics_(run.fan.topics.size()) {}

  int work() {
    open();
    run_.stream.listening.raise();
    while (received_ < run_.total()) line_.turn([this](const SessionFrame& frame) { take(frame); });
    for (std::size_t place = 0; place < topics_.size(); ++place) acknowledge(topics_[place]);
    line_.put(session::Goodbye{}, 0, 0);
    line_.turn([](const SessionFrame&) {});
    return 0;
  }

 private:
  struct Topic {
    std::uint32_t channel = 0;
    std::uint64_t next = 0;          // next message of the run
    std::uint64_t first_offset = 0;  // offset of the run's first message
    std::uint64_t acknowledged = 0;  // acknowledged messages of the run
  };

  void open() {
    open_all(
        line_, run_, [](const TopicFan::Topic& topic) { return topic.consumer_ticket; },
        [](const TopicFan::Topic& topic) {
          session::ConsumeOpen open;
          open.credit_messages = session::credit_messages_max;
          open.credit_bytes = session::credit_bytes_max;
          open.topic = topic.name;
          return open;
        },
        [this](std::size_t place, const SessionFrame& frame) {
          const auto opened = session::ConsumeOpened::decode(frame.body, 0).value_or_throw();
          const std::uint32_t channel = frame.header.channel;
          topics_[place] = {channel, 0, opened.next, 0};
          if (places_.size() <= channel) places_.resize(channel + 1);
          places_[channel] = place;
        });
  }

  void take(const SessionFrame& frame) {
    if (frame.header.op != Op::deliver) return;
    const std::size_t place = places_.at(frame.header.channel);
    Topic& topic = topics_[place];
    const ByteView bytes = frame.body.subspan(session::deliver_head_bytes);
    if (BatchView::check(bytes)) throw std::runtime_error("a batch came altered");
    const BatchView batch = BatchView::trusted(bytes.data());
    if (batch.base_offset().value != topic.first_offset + topic.next)
      throw std::runtime_error("a topic's messages came out of order");
    for (auto record = batch.records(); !record.done(); record.next()) check(place, topic, record.payload());
    if (topic.next - topic.acknowledged >= unacknowledged_max) acknowledge(topic);
  }

  void check(std::size_t place, Topic& topic, ByteView message) {
    MessageHeader header;
    if (message.size() != run_.stream.pattern.message_bytes())
      throw std::runtime_error("a message of another length");
    std::memcpy(&header, message.data(), sizeof header);
    const std::uint64_t number = topic.next++ * topics_.size() + place;
    if (header.run != run_.stream.id || header.sequence != number)
      throw std::runtime_error("a message of another place");
    if (!run_.stream.pattern.content_matches(number, message))
      throw std::runtime_error("a message came altered");
    StreamBoard& seen = run_.stream.seen();
    if (seen.first_receive_ns == 0) seen.first_receive_ns = now_ns();
    if (++received_ == run_.total()) seen.last_receive_ns = now_ns();
  }

  void acknowledge(Topic& topic) {
    if (topic.acknowledged == topic.next) return;
    topic.acknowledged = topic.next;
    session::Acknowledge acknowledge;
    acknowledge.before = Offset{topic.first_offset + topic.next};
    line_.put(acknowledge, topic.channel, 0);
  }

  FanRun& run_;
  FrameLine line_;
  std::vector<Topic> topics_;
  std::vector<std::size_t> places_;  // by channel
  std::uint64_t received_ = 0;
};

template <typename Role>
int work_of(FanRun& run) {
  try {
    return Role(run).work();
  } catch (const std::exception& problem) {
    return run.stream.fail(problem.what());
  }
}

}  // namespace

Result<StreamResult> run_topic_fan(const TopicFan& fan, const StreamPlan& plan) {
  FanRun run(fan, plan);
  std::vector<ChildProcess> children;
  for (int (*const role)(FanRun&) : {work_of<FanConsumer>, work_of<FanProducer>}) {
    Result<ChildProcess> child = ChildProcess::start([&run, role] { return role(run); });
    if (!child) return child.error();
    children.push_back(std::move(child).value());
  }
  const Result<void> ended = wait_for_all(children, {"consumer", "producer"}, Clock::now() + plan.time_max);
  StreamBoard& seen = run.stream.seen();
  if (seen.fault[0] != '\0') return failure(seen.fault);
  if (!ended) return ended.error();
  StreamResult result;
  result.seconds = static_cast<double>(seen.last_receive_ns - seen.first_receive_ns) / 1e9;
  if (result.seconds > 0) result.messages_per_second = static_cast<double>(run.total()) / result.seconds;
  return result;
}

}  // namespace lightq::bench
