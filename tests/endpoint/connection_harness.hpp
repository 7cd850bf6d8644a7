/// Runs connections over socket pairs for tests. The test is the peer.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "plain/plain_producer_connection.hpp"
#include "plain/zmtp_consumer_connection.hpp"

namespace lightq::test {

/// A fake topic for a producer's connection. It keeps the published messages, and can be full.
class FakePlainProducerHost final : public broker::PlainProducerHost {
 public:
  [[nodiscard]] bool accepting() const override { return is_accepting; }
  broker::PublishOutcome publish(BatchBuilder& batch) override {
    if (messages.size() >= room) return broker::PublishOutcome::held;
    const auto bytes = batch.finish();
    stamp_batch(bytes, Offset{messages.size()}, Timestamp{1}, 1);
    EXPECT_FALSE(BatchView::check(bytes).has_value());
    const auto view = BatchView::trusted(bytes.data());
    for (auto record = view.records(); !record.done(); record.next())
      messages.emplace_back(as_text(record.payload()));
    largest_batch = std::max(largest_batch, batch.size_bytes());
    return broker::PublishOutcome::accepted;
  }
  void published() override {
    if (on_published) on_published();
  }
  void count_refused(std::uint64_t count) override { refused += count; }
  [[nodiscard]] std::uint64_t message_bytes_max() const override { return bytes_max; }
  [[nodiscard]] std::size_t batch_bytes_target() const override { return limits::batch_bytes_target; }
  BatchBuilder& batch() override { return batch_; }
  void inlet_held() override { ++held; }

  bool is_accepting = true;
  std::size_t room = SIZE_MAX;
  std::uint64_t bytes_max = 8 * limits::MiB;
  std::vector<std::string> messages;
  std::size_t largest_batch = 0;
  std::uint64_t refused = 0;
  int held = 0;
  std::function<void()> on_published;

 private:
  BatchBuilder batch_;
};

/// A fake topic for a consumer's connection.
class FakePlainConsumerHost final : public broker::PlainConsumerHost {
 public:
  void consumer_ready(broker::PlainConsumerConnection&) override { ready = true, ++changes; }
  void consumer_unready(broker::PlainConsumerConnection&) override { ready = false, ++changes; }
  void consumer_writable() override { ++writable; }
  bool ready = false;
  int changes = 0;
  int writable = 0;
};

/// Records the events of its connection.
class FakeOwner final : public broker::ZmtpConnection::Owner {
 public:
  void connection_opened(broker::Connection&) override { opened = true; }
  void connection_closed(broker::Connection&, const std::string& why) override {
    closed = true;
    reason = why;
  }
  [[nodiscard]] const broker::ConnectionAuthorizer* authorizer() const override { return guard; }
  [[nodiscard]] std::chrono::milliseconds handshake_time() const override { return time; }
  const broker::ConnectionAuthorizer* guard = nullptr;
  std::chrono::milliseconds time{1000};
  bool opened = false;
  bool closed = false;
  std::string reason;
};

/// An event loop and a pair of connected sockets: `ours` for a connection, `peer` (blocking) for the test.
class Wire {
 public:
  Wire() : scratch(256 * limits::KiB) {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ours = broker::UniqueFd(pair[0]);
    peer = broker::UniqueFd(pair[1]);
  }

  /// Runs the loop until `condition` holds, for at most one minute. Returns true if it holds.
  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = broker::EventLoop::Clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (broker::EventLoop::Clock::now() >= deadline) return false;
      std::stop_source stop;
      loop.at(broker::EventLoop::Clock::now() + std::chrono::milliseconds(1), [&] { stop.request_stop(); });
      loop.run(stop.get_token());
    }
    return true;
  }

  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// Returns the bytes that have arrived from the connection. Does not wait.
  std::string received() const {
    std::string all(limits::MiB, '\0');
    const auto got = recv(peer.get(), all.data(), all.size(), MSG_DONTWAIT);
    all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return all;
  }

  broker::EventLoop loop;
  std::vector<std::byte> scratch;
  broker::UniqueFd ours;
  broker::UniqueFd peer;
};

/// Returns the bytes with which a peer of this socket type opens a connection without a ticket.
inline std::string opening(std::string_view socket_type) {
  std::vector<std::byte> bytes;
  for (const std::byte byte : broker::zmtp::greeting()) bytes.push_back(byte);
  broker::zmtp::append_ready(bytes, socket_type);
  return std::string(as_text(bytes));
}

inline std::string frame(std::string_view payload, bool more = false) {
  std::byte header[broker::zmtp::frame_header_bytes_max];
  const auto length = broker::zmtp::encode_frame_header(header, payload.size(), more);
  return std::string(as_text({header, length})) + std::string(payload);
}

inline std::string command(std::string_view name, std::string_view data) {
  std::vector<std::byte> bytes;
  broker::zmtp::append_command(bytes, name, as_byte_view(data));
  return std::string(as_text(bytes));
}

}  // namespace lightq::test
