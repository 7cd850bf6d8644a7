/// A session consumer whose broker gives leases. The test is the broker.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/consumer.hpp>

#include "session_consumer_fixture.hpp"

namespace lightq::test {

using namespace std::chrono_literals;

class SessionConsumerLease : public SessionConsumerTest {
 protected:
  SessionConsumerLease() {
    options.clock = [this] {
      if (reads_until_stop > 0 && --reads_until_stop == 0) while_stopped();
      return time;
    };
    opened.leases = true;
    opened.ack_timeout_ms = 1'800'000;
  }
  Consumer connected() {
    Consumer consumer = make();
    connect(consumer);
    return consumer;
  }
  static Delivery handed(std::uint32_t hand_out, std::uint32_t number = 1) {
    Delivery delivery;
    delivery.number = number;
    delivery.hand_out = hand_out;
    return delivery;
  }
  void revoke(std::vector<OffsetRange> ranges, std::uint32_t before,
              session::RevokeCause cause = session::RevokeCause::processing_timeout) {
    peer.say(session::Revoked{cause, before, std::move(ranges)}, channel, 0);
  }
  /// Returns the frames that arrived without a call of the program, in words.
  std::vector<std::string> said_already() {
    std::vector<std::string> words;
    for (int step = 0; step < 50; ++step) {
      peer.read();
      while (const auto frame = peer.next()) words.push_back(word_of(*frame));
    }
    return words;
  }
  /// Lets the consumer find the frames that the broker has sent.
  void let_come(Consumer& consumer) {
    for (int step = 0; step < 50; ++step) {
      peer.write();
      poll(consumer);
    }
  }

  SessionTime time{1h};
  int reads_until_stop = 0;             ///< of the clock, until `while_stopped` is called; 0: it is not
  std::function<void()> while_stopped;  ///< called while the process is stopped
};

}  // namespace lightq::test
