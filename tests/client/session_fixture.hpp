/// A session producer and the fake broker on the other side of its connection.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lightq/producer.hpp>

#include "session_peer_fixture.hpp"

namespace lightq::test {

class SessionProducerTest : public SessionPeerTest<Producer> {
 protected:
  static constexpr std::uint64_t producer_id = 4711;

  explicit SessionProducerTest(FakeSessionListener::Kind kind = FakeSessionListener::Kind::unix_socket)
      : SessionPeerTest(kind) {
    options.clock = clock.source();
    options.share_memory = false;    // tested in session_memory_test.cpp
    options.heartbeat = Timeout(0);  // a slow machine could otherwise end a connection that a test relies on
    opened.producer = {producer_id, 0};
    opened.level = ConfirmLevel::received;
    opened.batch_bytes_max = 1 << 20;
    opened.message_bytes_max = 1 << 20;
  }

  Producer make() {
    auto made = Producer::open("orders", join(), options);
    Producer producer = std::move(made).value_or_throw();
    producer.on_report([this](const SendReport& report) {
      reports.push_back({report.begin, report.end, report.fate, report.error ? report.error->message : ""});
    });
    return producer;
  }

  struct Reported {
    std::uint64_t begin;
    std::uint64_t end;
    Fate fate;
    std::string error;
  };
  /// Returns the reported fates in words: "confirmed [0,2)" …
  [[nodiscard]] std::vector<std::string> told() const {
    std::vector<std::string> texts;
    for (const Reported& report : reports) {
      const char* fates[] = {"confirmed", "refused", "unknown"};
      texts.push_back(std::string(fates[static_cast<int>(report.fate)]) + " [" +
                      std::to_string(report.begin) + "," + std::to_string(report.end) + ")");
    }
    return texts;
  }

  TakenBatch next_batch(Producer& producer) {
    const TakenFrame frame = next_frame(producer);
    EXPECT_EQ(frame.header.op, session::Op::produce);
    if (frame.header.op != session::Op::produce) return {};
    EXPECT_EQ(frame.header.channel, channel);
    TakenBatch batch = TakenBatch::of(frame);
    EXPECT_TRUE(batch.sound);
    return batch;
  }
  /// Accepts the next connection and opens the channel.
  session::ProduceOpen connect(Producer& producer) {
    return open_channel<session::ProduceOpen>(producer, opened);
  }

  void confirm(std::uint64_t received, std::uint64_t flushed = 0) {
    peer.say(session::Confirm{received, flushed, received}, channel, 0);
  }
  void refuse(const TakenBatch& batch, session::Code code, std::uint64_t expected) {
    peer.say(session::Refuse{batch.sequence, batch.end(), expected, code, "so it is"}, channel, 0);
  }

  ProducerOptions options;
  session::ProduceOpened opened;
  std::vector<Reported> reports;
};

}  // namespace lightq::test
