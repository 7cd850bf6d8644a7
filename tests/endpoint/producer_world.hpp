/// A topic on a failing disk, producers that send everything again, and the rules that both must obey.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/faulty_storage.hpp"
#include "support/random.hpp"
#include "topic/reactor/topic_opener.hpp"

namespace lightq::test {

/// Rules that the world can break, to check that the tests notice it.
enum class BrokenRule {
  none,
  snapshot_before_durable,  ///< a snapshot is written as soon as it is taken
  told_before_settled,      ///< a producer is told of its takeover of an id before the takeover is on disk
};

struct WorldOptions {
  protocol::BrokerType type = protocol::BrokerType::file;
  std::uint64_t capacity_bytes = 0;  ///< when full, the log drops its oldest messages
  bool calls_fail = false;
  std::uint64_t steps_to_a_power_cut = 100;
  BrokenRule broken = BrokenRule::none;
};

/// Messages under one header. Their process sends them the same way each time.
struct SentBatch {
  std::uint64_t begin = 0;
  std::vector<std::string> payloads;
  std::optional<Offset> end;  ///< stored: durable when the log is up to here
};

/// A process that produces under an id.
struct Process {
  enum class State { away, waiting, on };
  broker::ProducerIdentity identity;
  State state = State::away;
  bool began = false;  ///< it was told at least once that it owns the id
  std::uint64_t change = 0;
  std::uint64_t expected = 0;   ///< the last value from the broker
  std::uint64_t next = 0;       ///< the number of its next new message
  std::uint64_t confirmed = 0;  ///< all messages before this one were confirmed to survive a power cut
  std::deque<SentBatch> window;
};

/// A user of the topic: the process that produces now, and the previous one, which may not know of its
/// successor yet.
struct Client {
  Process current;
  std::optional<Process> former;
};

class ProducerWorld {
 public:
  ProducerWorld(Random& random, WorldOptions options);

  /// Performs one random event.
  void step();
  /// Lets all messages be sent again and confirmed. Checks everything a last time.
  void finish();

  /// The first violation of a rule.
  std::optional<std::string> violation;
  struct Counts {
    int power_cuts = 0, kills = 0, stops = 0, doubts = 0, repeats = 0, unknown = 0, fenced = 0, saves = 0,
        takeovers = 0;
  };
  Counts counts;

 private:
  class Sink final : public broker::LogSink {
   public:
    void write(broker::LogLevel, std::string_view line) override { lines.emplace_back(line); }
    std::vector<std::string> lines;
  };
  void complain(const std::string& what) {
    if (!violation) violation = what;
  }

  // The broker.
  void open();
  void drop_all();
  void clean_stop();
  void power_cut();
  void restart();
  bool write_open_save();
  void finish_open_save(bool well);
  void save_some();
  void log_work();
  void arm_fault();
  [[nodiscard]] broker::LogEnds ends() const;
  [[nodiscard]] broker::DurableProducers& producers() { return *topic_.producers; }

  // The producers.
  Process& some_process();
  void act(Process& process);
  void connect(Process& process);
  void answer(Process& process);
  void send_new(Process& process);
  bool transmit(Process& process, SentBatch& batch);
  bool append(Process& process, SentBatch& batch);
  void confirm_all();
  void confirm(Process& process);
  void take_over(Client& client);
  template <typename Visit>
  void each_process(Visit visit);
  [[nodiscard]] bool is_shut_out(const Process& process) const;

  // Comparisons.
  void look_at_everything(bool doubtful);
  void look_at_producers(const std::map<std::uint64_t, std::uint64_t>& ends, bool doubtful);

  Random& random_;
  const WorldOptions options_;
  FaultyStorage storage_;
  std::unique_ptr<log::SegmentPool> pool_;
  Sink sink_;
  broker::FoundTopic topic_;
  std::optional<broker::EncodedProducers> save_;  // taken, and not written yet
  Timestamp now_{1'000'000'000'000};
  std::vector<Client> clients_{4};
  std::uint64_t last_id_ = 0;
  std::uint64_t last_payload_ = 0;
  std::map<std::string, Offset> stored_;  // with their offsets; includes messages that were dropped since
  std::set<std::string> confirmed_;       // confirmed to survive a power cut
  std::set<std::uint64_t> forgotten_;     // ids that are unknown after a doubtful start
};

}  // namespace lightq::test
