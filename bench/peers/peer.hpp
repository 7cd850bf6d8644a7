/// A message broker that suite `peers` measures: its servers, its clients and its promises. One file
/// of this folder implements each peer. Layer: bench peers.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::bench {

/// How long a call of a client may wait for its server before it throws.
inline constexpr std::chrono::milliseconds peer_patience{20'000};

/// Where a message is when the server confirms it.
enum class Storage {
  memory,
  page_cache,  ///< written to a file, so that it survives the end of the server's process
  synced,      ///< written, and flushed to the disk with fsync
  standard,    ///< durable, with the default settings of server and queue
};

/// How the messages of a queue reach its consumers.
enum class Pattern {
  stream,      ///< one consumer; acknowledgements may cover many messages
  work_queue,  ///< several consumers share the messages and acknowledge each one after its work
  fan_out,     ///< each consumer receives all messages
  idle,        ///< nobody sends or receives
};

/// A queue, topic or subject of one run.
struct QueueTerms {
  std::string name;  ///< short, of [a-z0-9-]; new for each run
  Storage storage = Storage::memory;
  Pattern pattern = Pattern::stream;
  int consumers = 1;
  /// Latency counts, so the server should deliver each message at once even if that costs throughput.
  bool prompt = false;
};

/// The promise of a peer for a kind of work.
struct Promise {
  bool possible = true;
  /// If possible: the part of LightQ's promise that the peer does not give; empty: it gives all. Otherwise:
  /// the reason.
  std::string note = {};
};

/// Returns the promise of a peer that cannot do the work.
inline Promise impossible(std::string why) {
  return {false, std::move(why)};
}

/// The kinds of work, for which promises differ.
enum class Work { memory, page_cache, synced, latency, work_queue, fan_out, idle, cpu, kill };

/// The sending end. One process and thread. Calls throw std::exception.
class PeerProducer {
 public:
  PeerProducer() = default;
  PeerProducer(const PeerProducer&) = delete;
  PeerProducer& operator=(const PeerProducer&) = delete;
  virtual ~PeerProducer() = default;

  /// Sends a message, or gathers it. Waits while too many are unconfirmed.
  virtual void send(ByteView message) = 0;
  /// Sends all gathered messages, and reads the confirms that have arrived. Does not wait.
  virtual void poll() = 0;
  /// Sends all gathered messages, and waits for all confirms.
  virtual void flush() = 0;
  /// Returns how many messages were confirmed. They are the first ones that were sent.
  [[nodiscard]] virtual std::uint64_t confirmed() const = 0;
};

/// A receiving end. One process and thread. Calls throw std::exception.
class PeerConsumer {
 public:
  using Take = std::function<void(ByteView)>;

  PeerConsumer() = default;
  PeerConsumer(const PeerConsumer&) = delete;
  PeerConsumer& operator=(const PeerConsumer&) = delete;
  virtual ~PeerConsumer() = default;

  /// Waits up to `wait` for messages, passes those that have arrived to `take`, and acknowledges them. In a
  /// work queue, each is acknowledged when `take` has returned. Returns how many there were.
  virtual std::size_t receive(std::chrono::milliseconds wait, const Take& take) = 0;
  /// Returns when the server has all acknowledgements. `receive` is not called again.
  virtual void settle() = 0;
};

/// A running server. The calls about queues and clients open connections and may start threads, so they are
/// made in a child process of their own; all others in the suite's process. Calls throw std::exception.
class PeerServer {
 public:
  PeerServer() = default;
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;
  /// Ends all processes of the server, and removes its data.
  virtual ~PeerServer() = default;

  virtual void make_queue(const QueueTerms& queue) = 0;
  virtual void drop_queue(const QueueTerms& queue) = 0;
  /// Returns how many messages the queue still has for its consumers, delivered ones included; nothing if the
  /// peer knows no such number.
  virtual std::optional<std::uint64_t> left(const QueueTerms& queue) = 0;
  virtual std::unique_ptr<PeerProducer> producer(const QueueTerms& queue) = 0;
  /// `number`: that of the consumer, from 0.
  virtual std::unique_ptr<PeerConsumer> consumer(const QueueTerms& queue, int number) = 0;

  [[nodiscard]] virtual pid_t process() const = 0;
  /// Returns the command, and the settings of its configuration file, for readers.
  [[nodiscard]] virtual std::string command() const = 0;
  /// Stops the processes without ending them, so that others are measured undisturbed, and continues them.
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// Ends the server with SIGKILL, and waits for its end.
  virtual void kill() = 0;
  /// Starts a server that was killed again, with its data.
  virtual void restart() = 0;
};

/// A kind of broker. Stateless.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  /// Returns the name for `--peer` and the rows: [a-z0-9-].
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns the versions of server and client library; nothing if the server is not installed.
  [[nodiscard]] virtual std::optional<std::string> version() const = 0;
  /// Returns the names of packages and programs to install, for a message.
  [[nodiscard]] virtual std::string needs() const = 0;
  /// Returns a sentence fragment about the way that is measured: client, batches, acknowledgements.
  [[nodiscard]] virtual std::string way() const = 0;
  [[nodiscard]] virtual Promise promise(Work work) const = 0;
  /// Returns false if one consumer may receive messages in another order than they were sent.
  [[nodiscard]] virtual bool keeps_order() const { return true; }
  /// Returns false if the server does not confirm messages.
  [[nodiscard]] virtual bool confirms() const { return true; }
  /// Returns true if the server has the same settings for every storage: then a queue alone determines it.
  [[nodiscard]] virtual bool has_one_server() const { return false; }
  virtual std::unique_ptr<PeerServer> start(Storage storage) const = 0;
};

/// The places of the programs of this build and machine.
struct PeerPrograms {
  std::string lightq;     ///< the broker to measure
  std::string directory;  ///< where scripts/bench puts servers that it built; empty: none
};

/// Returns all peers, LightQ first. A peer whose client library was not found when this program was built is
/// one whose version() is nothing.
std::vector<std::unique_ptr<Peer>> all_peers(const PeerPrograms& programs);

}  // namespace lightq::bench
