/// A topic's endpoints on the test's own thread. Tests only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <zmq.hpp>

#include "log/memory/ring_log.hpp"
#include "plain/endpoint_set.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker::test {

/// A client that may close every endpoint.
constexpr Leaver manager{.user = 0, .manages = true, .produces = true};

class QuietSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

/// A topic with endpoints on this thread's event loop. Dispatches messages after every event.
class EndpointSetTest : public testing::Test, public PlainProducerHost, public EndpointsListener {
 protected:
  /// `open`: the topic needs no ticket.
  explicit EndpointSetTest(bool open = false, const EndpointSettings& settings = {})
      : ports_("127.0.0.1", std::nullopt, std::chrono::hours(1)),
        settings_(settings),
        context_{loop_,
                 disk_,
                 ports_,
                 sink_,
                 tickets_,
                 settings_,
                 now_,
                 next_id_,
                 {[this](const EndpointRecord& record) { closed_.push_back(record.id); },
                  [this](const EndpointRecord& record) { changed_.push_back(record.port); }},
                 std::vector<std::byte>(256 * limits::KiB),
                 {}},
        topic_({TopicId{1}, *TopicName::parse("t"), {.open = open}}, log_, now_()) {
    settings_.advertise_host = "127.0.0.1";
    settings_.ipc_directory = directory_.path();
    settings_.idle_time_max = std::chrono::seconds(60);  // long enough for a slow machine to connect
    set_ = std::make_unique<EndpointSet>(context_, topic_, *this, *this);
  }

  // Implements PlainProducerHost.
  [[nodiscard]] bool accepting() const override { return topic_.accepting(); }
  PublishOutcome publish(BatchBuilder& batch) override { return topic_.publish(batch, now_()); }
  void published() override { topic_.dispatch(); }
  void count_refused(std::uint64_t) override {}
  [[nodiscard]] std::uint64_t message_bytes_max() const override { return limits::MiB; }
  [[nodiscard]] std::size_t batch_bytes_target() const override { return limits::KiB; }
  BatchBuilder& batch() override { return context_.batch; }
  void inlet_held() override {}
  // Implements EndpointsListener.
  void consumers_changed() override {
    loop_.post_answer([this] { topic_.dispatch(); });
  }
  void consumers_writable() override { topic_.dispatch(); }

  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = EventLoop::Clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (EventLoop::Clock::now() >= deadline) return false;
      std::stop_source stop;
      loop_.at(EventLoop::Clock::now() + std::chrono::milliseconds(1), [&] { stop.request_stop(); });
      loop_.run(stop.get_token());
    }
    return true;
  }

  std::string join(protocol::JoinType type, protocol::Transport transport = protocol::Transport::tcp,
                   protocol::ConnectionType connection_type = protocol::ConnectionType::zmq,
                   const TicketHolder& holder = {}) {
    auto joined = set_->join(type, transport, connection_type, holder);
    EXPECT_TRUE(joined.ok());
    if (joined->ticket) tickets_by_uri_[joined->bind_uri] = *joined->ticket;
    return joined->bind_uri;
  }
  zmq::socket_t connect(zmq::socket_type type, const std::string& uri) {
    zmq::socket_t socket(zmq_, type);
    socket.set(zmq::sockopt::linger, 0);
    if (type == zmq::socket_type::sub) socket.set(zmq::sockopt::subscribe, "t");
    if (const auto ticket = tickets_by_uri_.find(uri); ticket != tickets_by_uri_.end()) {
      socket.set(zmq::sockopt::plain_username, ticket->second.id);
      socket.set(zmq::sockopt::plain_password, ticket->second.secret.expose());
    }
    socket.connect(uri);
    return socket;
  }
  void put(const std::string& payload) {
    BatchBuilder batch;
    batch.add(as_byte_view(payload));
    ASSERT_EQ(topic_.publish(batch, now_()), PublishOutcome::accepted);
    topic_.dispatch();
  }
  /// Returns the payloads of the next `count` messages (the last part of each).
  std::vector<std::string> receive(zmq::socket_t& socket, std::size_t count) {
    std::vector<std::string> payloads;
    EXPECT_TRUE(run_until([&] {
      zmq::message_t part;
      while (payloads.size() < count && socket.recv(part, zmq::recv_flags::dontwait)) {
        if (!part.more()) payloads.push_back(part.to_string());
      }
      return payloads.size() == count;
    }));
    return payloads;
  }
  protocol::TopicStats stats() {
    auto stats = topic_.stats();
    set_->add_stats(stats);
    return stats;
  }

  zmq::context_t zmq_;
  lightq::test::TempDir directory_;
  EventLoop loop_;
  DiskThread disk_;
  PortBook ports_;
  QuietSink sink_;
  const TicketKey tickets_{TicketKey::random_bytes()};
  EndpointSettings settings_;
  const WallClock now_ = [] { return Timestamp{1'000'000}; };
  std::atomic<std::uint64_t> next_id_ = 1;
  std::map<std::string, protocol::Ticket> tickets_by_uri_;
  std::vector<std::uint64_t> closed_;
  std::vector<std::uint16_t> changed_;
  ReactorContext context_;
  log::RingLog log_{log::RingLogOptions{.capacity_bytes = limits::MiB}};
  Topic topic_;
  std::unique_ptr<EndpointSet> set_;
};

}  // namespace lightq::broker::test
