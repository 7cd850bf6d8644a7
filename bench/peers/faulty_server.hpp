/// A queue in shared memory with the interface of a peer, and with mistakes on purpose. Layer: bench peers.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "peers/peer.hpp"
#include "support/shared_memory.hpp"

namespace lightq::bench {

/// The mistakes. The server makes one with the message in the middle.
enum class Mistake {
  none,
  lose,
  repeat,
  swap,           ///< with the next message
  damage,         ///< one byte
  no_confirm,     ///< of the last message
  not_settled,    ///< one acknowledgement
  lose_all_dead,  ///< loses everything when it is killed
};

/// Serves one queue of messages of 100 B, at most `slots` in all. Its clients share the memory.
class FaultyServer : public PeerServer {
 public:
  static constexpr std::size_t message_bytes = 100;
  static constexpr std::size_t slots = 1 << 16;

  explicit FaultyServer(Mistake mistake) : mistake_(mistake) {}
  void make_queue(const QueueTerms&) override {}
  void drop_queue(const QueueTerms&) override {}
  std::optional<std::uint64_t> left(const QueueTerms& queue) override;
  std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) override;
  std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) override;
  [[nodiscard]] pid_t process() const override;
  [[nodiscard]] std::string command() const override { return "none"; }
  void pause() override {}
  void resume() override {}
  void kill() override;
  void restart() override;

 private:
  friend class FaultyProducer;
  friend class FaultyConsumer;
  struct Slot {
    std::byte bytes[message_bytes];
  };
  struct Counts {
    std::atomic<std::uint64_t> written;
    std::atomic<std::uint64_t> claimed;  // by consumers that share the messages
    std::atomic<std::uint64_t> settled;
    std::atomic<bool> is_dead;
  };
  Mistake mistake_;
  SharedArray<Slot> messages_{slots};
  SharedArray<Counts> counts_{1};
};

}  // namespace lightq::bench
