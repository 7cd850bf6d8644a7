/// The clients of the faulty queue. Layer: bench peers.
#include "peers/faulty_server.hpp"

#include <unistd.h>

#include <cstring>
#include <optional>
#include <stdexcept>

#include "peers/work/run_children.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t mistaken_message = 50;
constexpr std::chrono::microseconds look_interval{100};

}  // namespace

class FaultyProducer : public PeerProducer {
 public:
  explicit FaultyProducer(FaultyServer& server) : server_(server) {}

  void send(ByteView message) override {
    if (server_.counts_[0].is_dead) throw std::runtime_error("the server is dead");
    const Mistake mistake = sent_++ == mistaken_message ? server_.mistake_ : Mistake::none;
    if (mistake == Mistake::swap) {
      late_.emplace(message.begin(), message.end());
      return;
    }
    if (mistake != Mistake::lose) write(message, mistake == Mistake::damage);
    if (mistake == Mistake::repeat) write(message, false);
    if (late_) write(*late_, false);
    late_.reset();
  }
  void poll() override {}
  void flush() override {}
  [[nodiscard]] std::uint64_t confirmed() const override {
    return server_.mistake_ == Mistake::no_confirm && sent_ > 0 ? sent_ - 1 : sent_;
  }

 private:
  void write(ByteView message, bool damaged) {
    const std::uint64_t number = server_.counts_[0].written;
    if (message.size() != FaultyServer::message_bytes || number == FaultyServer::slots)
      throw std::runtime_error("the message does not fit");
    std::byte* const to = server_.messages_[number].bytes;
    std::memcpy(to, message.data(), message.size());
    if (damaged) to[message.size() - 1] ^= std::byte{1};
    ++server_.counts_[0].written;
  }
  FaultyServer& server_;
  std::uint64_t sent_ = 0;
  std::optional<std::vector<std::byte>> late_;
};

class FaultyConsumer : public PeerConsumer {
 public:
  FaultyConsumer(FaultyServer& server, bool shares) : server_(server), shares_(shares) {}

  std::size_t receive(std::chrono::milliseconds wait, const Take& take) override {
    const Clock::time_point give_up = Clock::now() + wait;
    std::optional<std::uint64_t> number;
    while (!(number = claim())) {
      if (Clock::now() > give_up) return 0;
      sleep_exactly(look_interval);
    }
    take(server_.messages_[*number].bytes);
    ++server_.counts_[0].settled;
    return 1;
  }
  void settle() override {}

 private:
  std::optional<std::uint64_t> claim() {
    const std::uint64_t written = server_.counts_[0].written;
    if (!shares_) return own_ < written ? std::optional(own_++) : std::nullopt;
    std::uint64_t next = server_.counts_[0].claimed;
    while (next < written) {
      if (server_.counts_[0].claimed.compare_exchange_weak(next, next + 1)) return next;
    }
    return std::nullopt;
  }
  FaultyServer& server_;
  bool shares_;
  std::uint64_t own_ = 0;
};

std::optional<std::uint64_t> FaultyServer::left(const QueueTerms& queue) {
  const auto readers = static_cast<std::uint64_t>(queue.pattern == Pattern::fan_out ? queue.consumers : 1);
  const std::uint64_t missing = mistake_ == Mistake::not_settled ? 1 : 0;
  return counts_[0].written * readers - counts_[0].settled + missing;
}

std::unique_ptr<PeerProducer> FaultyServer::producer(const QueueTerms&) {
  return std::make_unique<FaultyProducer>(*this);
}

std::unique_ptr<PeerConsumer> FaultyServer::consumer(const QueueTerms& queue, int) {
  return std::make_unique<FaultyConsumer>(*this, queue.pattern != Pattern::fan_out);
}

pid_t FaultyServer::process() const {
  return ::getpid();
}

void FaultyServer::kill() {
  counts_[0].is_dead = true;
}

void FaultyServer::restart() {
  if (mistake_ == Mistake::lose_all_dead) counts_[0].claimed = counts_[0].written.load();
}

}  // namespace lightq::bench
