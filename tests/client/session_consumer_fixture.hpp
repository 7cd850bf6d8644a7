/// A session consumer and the fake broker on the other side of its connection.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/consumer.hpp>

#include "session_peer_fixture.hpp"

namespace lightq::test {

/// The header values of a delivery.
struct Delivery {
  std::uint32_t number = 1;
  std::uint64_t lost = 0;
  Timestamp time{1'000'000};
  std::uint32_t hand_out = 0;
};

/// Returns a `deliver` frame with a batch of these messages.
inline std::vector<std::byte> deliver_frame(std::uint32_t channel, Offset base,
                                            const std::vector<std::string>& payloads,
                                            const Delivery& delivery = {}) {
  BatchBuilder builder;
  for (const std::string& payload : payloads) builder.add(as_byte_view(payload));
  const auto batch = builder.finish();
  namespace at = session::frame_layout;
  std::vector<std::byte> frame(at::header_bytes + session::deliver_head_bytes);
  store_little_endian(frame.data() + at::header_bytes, delivery.number);
  store_little_endian(frame.data() + at::header_bytes + 4, delivery.hand_out);
  store_little_endian(frame.data() + at::header_bytes + 8, delivery.lost);
  frame.insert(frame.end(), batch.begin(), batch.end());
  stamp_batch(std::span(frame).subspan(at::header_bytes + session::deliver_head_bytes), base, delivery.time,
              3);
  const session::FrameHeader header{session::Op::deliver, 0, channel, 0,
                                    static_cast<std::uint32_t>(frame.size() - at::header_bytes)};
  session::encode_frame_header(frame.data(), header,
                               ByteView(frame).subspan(at::header_bytes, session::deliver_head_bytes));
  return frame;
}

class SessionConsumerTest : public SessionPeerTest<Consumer> {
 protected:
  using Payloads = std::vector<std::string>;

  explicit SessionConsumerTest(FakeSessionListener::Kind kind = FakeSessionListener::Kind::unix_socket)
      : SessionPeerTest(kind) {
    options.clock = clock.source();
    options.share_memory = false;        // tested in session_memory_test.cpp
    options.prefetch_messages = 10'000;  // fixed; session_prefetch_test.cpp tests the default
    options.heartbeat = Timeout(0);  // a slow machine could otherwise end a connection that a test relies on
    opened.incarnation = 99;
    opened.ack_timeout_ms = 30'000;
  }

  Consumer make() { return std::move(Consumer::open("orders", join(), options)).value_or_throw(); }
  /// Accepts the next connection and opens the channel.
  session::ConsumeOpen connect(Consumer& consumer) {
    return open_channel<session::ConsumeOpen>(consumer, opened);
  }

  void deliver(std::uint64_t base, const Payloads& payloads, const Delivery& delivery = {}) {
    peer.put_bytes(deliver_frame(channel, Offset{base}, payloads, delivery));
    peer.write();
  }
  /// Returns the next message. Fails the test if none arrives.
  Delivered next(Consumer& consumer) {
    for (int step = 0; step < 3000; ++step) {
      peer.write();
      auto received = consumer.receive(Timeout(0));
      if (!received) {
        ADD_FAILURE() << received.error().message;
        return {};
      }
      if (*received) return **received;
    }
    ADD_FAILURE() << "no message came; last error: " << consumer.last_error().message;
    return {};
  }
  std::string next_text(Consumer& consumer) { return std::string(next(consumer).text()); }
  /// Returns true if no message arrives.
  bool has_nothing(Consumer& consumer) {
    for (int step = 0; step < 50; ++step) {
      const auto received = consumer.receive(Timeout(0));
      if (!received || received->has_value()) return false;
    }
    return true;
  }

  /// Returns the frames that the consumer sends, in words: "ack [1,3)", "credit 2/10", "ack #4 [1,3)" …
  std::vector<std::string> said(Consumer& consumer) {
    std::vector<std::string> words;
    for (int step = 0; step < 50; ++step) {
      poll(consumer);
      peer.read();
      while (const auto frame = peer.next()) words.push_back(word_of(*frame));
    }
    return words;
  }
  static std::string word_of(const TakenFrame& frame) {
    using session::Op;
    const auto text = [](const std::vector<OffsetRange>& ranges) {
      std::string all;
      for (const OffsetRange& range : ranges)
        all += " [" + std::to_string(range.begin.value) + "," + std::to_string(range.end.value) + ")";
      return all;
    };
    const auto number = [](std::optional<std::uint32_t> hand_out) {
      return hand_out ? " #" + std::to_string(*hand_out) : std::string();
    };
    switch (frame.header.op) {
      case Op::acknowledge: {
        const auto done = frame.as<session::Acknowledge>();
        return "ack" + number(done.hand_out) + text(done.ranges);
      }
      case Op::started: {
        const auto started = frame.as<session::Started>();
        return "started" + number(started.hand_out) + text(started.ranges);
      }
      case Op::reject: {
        const auto reject = frame.as<session::Reject>();
        const std::string word = reject.dead_reason ? "dead '" + *reject.dead_reason + "'"
                                 : reject.releases  ? "release"
                                                    : "reject " + std::to_string(reject.ms);
        return word + number(reject.hand_out) + text(reject.ranges);
      }
      case Op::extend: {
        const auto extend = frame.as<session::Extend>();
        return "extend " + std::to_string(extend.ms) + number(extend.hand_out) + text(extend.ranges);
      }
      case Op::credit: {
        const auto credit = frame.as<session::Credit>();
        return "credit " + std::to_string(credit.messages) + "/" + std::to_string(credit.bytes);
      }
      default: return std::string(rule_of(frame.header.op).name);
    }
  }

  ConsumerOptions options;
  session::ConsumeOpened opened;
};

}  // namespace lightq::test
