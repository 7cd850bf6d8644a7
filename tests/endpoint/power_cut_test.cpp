/// Tests of power cuts, kills and clean stops of a topic with its log, its consumers' cursors and its
/// producers. No confirmed message is lost, and none that is sent again is stored twice. No cursor skips a
/// message that was not acknowledged, and each consumer gets each message.
#include <gmock/gmock.h>

#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "delivery/consumer_group_harness.hpp"
#include "endpoint/topic_runtime_harness.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using test::FakeConsumer;
using test::Random;

constexpr int cut_seeds = 3;
constexpr int lives_of_a_run = 25;
constexpr int lives_to_notice = 400;           // the run ends when it notices
constexpr std::int64_t flush_interval = 1500;  // ms; cursors are saved more often
constexpr int turns_to_the_end = 600;

/// The faults that the test simulates in a broker, to check that it notices them.
enum class Wrong {
  nothing,
  confirms_before_durable,  ///< a producer gets a confirm although the messages do not survive a power cut
  counts_what_is_not_done,  ///< a message counts as acknowledged although its consumer has not done so
  lost_end_is_hidden,       ///< a nameless consumer does not learn that the log has lost its end
};

struct Run {
  BrokerType type;
  int seed;
  Wrong wrong = Wrong::nothing;
  const char* noticed = "";  ///< the expected complaint
};

/// A process that sends unconfirmed messages again.
struct Sender {
  struct Batch {
    std::uint64_t begin = 0;
    std::vector<std::string> payloads;
    std::optional<Offset> end;  // stored: durable when the log is up to here
  };
  std::unique_ptr<FakeProducer> connection;
  bool is_on = false;     // it was admitted, and has sent everything again
  bool in_doubt = false;  // a start since its last connection reported doubts about its stored messages
  ProducerIdentity identity;
  std::uint64_t expected = 0;
  std::uint64_t next = 0;
  std::uint64_t confirmed = 0;
  std::deque<Batch> window;
};

struct Receiver {
  std::string group;
  GroupMode mode;
  std::unique_ptr<FakeConsumer> connection;
  std::map<std::uint64_t, std::string> outstanding;  // by offset
  // A nameless consumer keeps its own position, from its first admission on.
  std::optional<std::uint64_t> incarnation;
  Offset position;
  bool is_in_doubt = false;  // the broker that told the incarnation may have ended before it was stored
};

/// The messages that the consumers of one group or cursor had together.
struct Progress {
  std::set<std::string> delivered;
  std::set<std::string> acknowledged;
};

std::vector<OffsetRange> ranges_of(const std::vector<std::uint64_t>& offsets) {
  std::vector<OffsetRange> ranges;
  for (const std::uint64_t offset : offsets) {
    if (ranges.empty() || ranges.back().end.value != offset) ranges.push_back({{offset}, {offset}});
    ++ranges.back().end.value;
  }
  return ranges;
}

class PowerCutTest : public TopicRuntimeTest, public testing::WithParamInterface<Run> {
 protected:
  PowerCutTest()
      : TopicRuntimeTest({.broker_type = GetParam().type,
                          .ring_bytes = limits::ring_bytes_min,
                          .segment_bytes = limits::segment_bytes_min},
                         flush_interval) {
    on_open = [this](FoundTopic& opened) { look(opened); };
  }

  void complain(const std::string& what) {
    if (!is_dead_ && !violation_) violation_ = what;
  }

  // --- The machine.

  /// Cuts the power before one of the next calls that change the disk. 0: never.
  void arm(int calls) {
    fail(EIO, [this, calls](FaultyStorage::Call call, const std::string&) mutable {
      const bool changes = call != FaultyStorage::Call::read && call != FaultyStorage::Call::map;
      if (changes && calls != 0 && --calls == 0) is_dead_ = true;
      return is_dead_.load();
    });
  }

  /// Ends the process now. With `cut` the power fails too.
  void end_process(bool cut) {
    is_dead_ = true;  // calls that still run do not reach the disk
    drop();
    forget_connections();
    arm(0);
    is_dead_ = false;
    (cut ? cuts_ : kills_) += 1;
    if (!cut) return;
    const std::uint64_t share = random_.below(3);
    storage.power_cut([&] { return share == 0 || (share == 1 && random_.one_in(2)); });
  }

  void stop_cleanly() {
    topic->begin_stop(ClientError::shutting_down);
    ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
    topic->flush_for_stop();
    if (is_dead_) return end_process(true);
    ++stops_;
    clean_end_ = topic->store().next_offset();
    drop();
    forget_connections();
  }

  void forget_connections() {
    // A log without a message has no file that keeps its incarnation.
    for (Receiver& receiver : receivers_) receiver.is_in_doubt |= receiver.incarnation && confirmed_.empty();
    for (Sender& sender : senders_) disconnect(sender);
    for (Receiver& receiver : receivers_) disconnect(receiver);
  }

  void start_again(bool to_the_end) {
    arm(to_the_end || random_.one_in(3) ? 0 : static_cast<int>(random_.between(1, 200)));
    for (;;) {
      sink.lines.clear();
      const auto started = try_start();
      const auto is_doubt = [](const auto& line) { return line.find("has forgotten") != line.npos; };
      const bool doubtful = cuts_ > 0 && std::ranges::any_of(sink.lines, is_doubt);
      for (Sender& sender : senders_) sender.in_doubt |= doubtful;
      if (started) return;
      if (!is_dead_) return complain("the topic does not open: " + started.error().text());
      end_process(true);
    }
  }

  // --- Producers.

  void act(Sender& sender) {
    if (sender.connection == nullptr) return connect(sender);
    if (!sender.connection->is_admitted) return;
    if (!sender.is_on) return begin(sender);
    send_new(sender);
  }

  void connect(Sender& sender) {
    auto connection = std::make_unique<FakeProducer>(true);
    const auto opened = topic->publishing().open(sender.identity, *connection, {.user = 0});
    if (opened.refusal == ClientError::unknown_producer) {
      if (has_stored(sender) && !sender.in_doubt)
        complain("a producer is unknown, and nothing of the log was in doubt");
      sender = {};  // unconfirmed messages may be stored or not: they are not sent again
      return;
    }
    if (opened.refusal != ClientError::none) return complain("a producer is refused that nobody has fenced");
    sender.in_doubt = false;
    connection->identity = opened.producer.identity;
    sender.expected = opened.producer.expected;
    sender.connection = std::move(connection);
  }

  /// A producer that has stored nothing may be unknown after a power cut.
  [[nodiscard]] bool has_stored(const Sender& sender) const {
    return sender.confirmed > 0 || std::ranges::any_of(sender.window, [&](const Sender::Batch& batch) {
             return in_log_.contains(batch.payloads.front());
           });
  }

  void disconnect(Sender& sender) {
    if (sender.connection != nullptr && topic != nullptr) topic->publishing().detach(*sender.connection);
    sender.connection.reset();
    sender.is_on = false;
  }

  /// Continues as admitted: the broker has told the expected sequence number.
  void begin(Sender& sender) {
    sender.is_on = true;
    if (sender.identity.id == 0) {
      sender.identity = sender.connection->identity;
      sender.next = sender.confirmed = sender.expected;
      return;
    }
    if (sender.expected < sender.confirmed) complain("a producer is expected to send what was confirmed");
    if (sender.next < sender.expected) complain("a producer is expected behind what it has sent");
    for (Sender::Batch& batch : sender.window) {
      if (sender.is_on) transmit(sender, batch);
    }
  }

  void send_new(Sender& sender) {
    Sender::Batch batch{sender.next, {}, std::nullopt};
    for (std::uint64_t left = random_.between(1, 3); left != 0; --left) {
      batch.payloads.push_back(std::to_string(++last_payload_) + std::string(random_.below(4000), '.'));
    }
    sender.next += batch.payloads.size();
    sender.window.push_back(std::move(batch));
    transmit(sender, sender.window.back());
  }

  void transmit(Sender& sender, Sender::Batch& batch) {
    const Sequences sequences{sender.identity, batch.begin,
                              static_cast<std::uint32_t>(batch.payloads.size())};
    const auto is_stored = [&](const std::string& payload) { return in_log_.contains(payload); };
    switch (topic->producers().admit(sequences)) {
      case Admission::store: break;
      case Admission::repeat:
        ++repeats_;
        if (!std::ranges::all_of(batch.payloads, is_stored))
          complain("a message that is not stored is taken for stored");
        batch.end = topic->store().next_offset();
        return;
      default: return complain("a producer that leaves nothing out is refused a batch");
    }
    if (std::ranges::any_of(batch.payloads, is_stored)) complain("a message is to be stored twice");
    auto bytes =
        test::make_batch_of_producer(sender.identity.id, sender.identity.epoch, batch.begin, batch.payloads);
    Offset next = topic->store().next_offset();
    const OfferedBatch offered{bytes, static_cast<std::uint32_t>(batch.payloads.size()), bytes.size()};
    if (topic->publishing().store(offered, sequences) != PublishOutcome::accepted) return disconnect(sender);
    for (const std::string& payload : batch.payloads) {
      in_log_[payload] = next;
      next = next + 1;
    }
    batch.end = topic->store().next_offset();
    if (random_.one_in(6)) topic->publishing().want_flush();
    topic->dispatch().published();
  }

  void confirm(Sender& sender, Offset durable) {
    if (!sender.is_on) return;
    while (!sender.window.empty() && sender.window.front().end && *sender.window.front().end <= durable) {
      const Sender::Batch& batch = sender.window.front();
      sender.confirmed = batch.begin + batch.payloads.size();
      confirmed_.insert(batch.payloads.begin(), batch.payloads.end());
      sender.window.pop_front();
    }
  }

  // --- Consumers.

  void act(Receiver& receiver, bool to_the_end) {
    if (receiver.connection == nullptr) return connect(receiver);
    if (receiver.outstanding.empty()) return;
    const bool all = to_the_end || random_.one_in(3);
    std::vector<std::uint64_t> offsets;
    for (const auto& [offset, payload] : receiver.outstanding) {
      if (all || random_.one_in(2)) offsets.push_back(offset);
    }
    if (offsets.empty()) return;
    for (const std::uint64_t offset : offsets) {
      const bool counts = GetParam().wrong != Wrong::counts_what_is_not_done || !random_.one_in(20);
      if (counts) progress_[receiver.group].acknowledged.insert(receiver.outstanding.at(offset));
      receiver.outstanding.erase(offset);
    }
    broker::acknowledge(*topic, *receiver.connection, {std::nullopt, ranges_of(offsets)});
  }

  void connect(Receiver& receiver) {
    auto open = test::asked(receiver.group, receiver.mode);
    if (receiver.incarnation) {
      open.start = {StartPosition::From::offset, receiver.position.value};
      open.incarnation = GetParam().wrong == Wrong::lost_end_is_hidden ? 0 : *receiver.incarnation;
    }
    receiver.connection = std::make_unique<FakeConsumer>();
    const auto code = topic->open_consumer(open, *receiver.connection).code;
    if (code == ClientError::none) return;
    receiver.connection.reset();
    receiver.incarnation.reset();  // starts anew, as the library does: nothing of that log is left
    if (code != ClientError::incarnation_changed || !receiver.is_in_doubt) complain("a consumer is refused");
  }

  void disconnect(Receiver& receiver) {
    if (receiver.connection != nullptr && topic != nullptr) topic->detach_consumer(*receiver.connection);
    receiver.connection.reset();
    receiver.outstanding.clear();
  }

  void take(Receiver& receiver) {
    if (receiver.connection == nullptr || !receiver.connection->opened_at) return;
    if (receiver.connection->ended) return complain("a consumer is ended");
    if (receiver.group.empty() && receiver.incarnation != topic->incarnation()) {
      receiver.incarnation = topic->incarnation();
      receiver.is_in_doubt = false;
      receiver.position = receiver.connection->opened_at->next;
    }
    for (const auto& frame : std::exchange(receiver.connection->frames, {})) {
      Offset offset = frame.range.begin;
      for (const std::string& payload : frame.payloads) {
        const auto stored = in_log_.find(payload);
        if (stored == in_log_.end() || stored->second != offset)
          complain("a message is delivered that is not the log's at its offset");
        progress_[receiver.group].delivered.insert(payload);
        receiver.outstanding[offset.value] = payload;
        offset = offset + 1;
      }
      receiver.position = frame.range.end;
    }
  }

  // --- Events.

  void step(bool to_the_end) {
    for (Sender& sender : senders_) {
      const bool has_news = !to_the_end || !sender.is_on;
      if (has_news && (to_the_end || random_.one_in(2))) act(sender);
      if (!to_the_end && random_.one_in(60)) disconnect(sender);
    }
    for (Receiver& receiver : receivers_) {
      if (to_the_end || random_.one_in(laziness_)) act(receiver, to_the_end);
      if (!to_the_end && random_.one_in(60)) disconnect(receiver);
    }
    if (to_the_end) topic->publishing().want_flush();
    turn(std::chrono::microseconds(100));
    const bool early = GetParam().wrong == Wrong::confirms_before_durable;
    const Offset durable = early ? topic->store().next_offset() : topic->store().durable_offset();
    if (is_dead_) return;  // no client receives a message now
    for (Sender& sender : senders_) confirm(sender, durable);
    for (Receiver& receiver : receivers_) take(receiver);
  }

  void live() {
    laziness_ = random_.one_in(2) ? 3 : 12;  // late consumers let the log grow on
    for (std::uint64_t left = random_.between(2, 40); left != 0 && !is_dead_ && !violation_; --left)
      step(false);
    const std::uint64_t choice = random_.below(10);
    if (!is_dead_ && choice < 2) return stop_cleanly();
    end_process(is_dead_ ? choice < 7 : choice < 6);
  }

  [[nodiscard]] bool has_everything(const std::string& group) {
    const auto& delivered = progress_[group].delivered;
    return std::ranges::all_of(in_log_, [&](const auto& each) { return delivered.contains(each.first); });
  }

  [[nodiscard]] bool is_complete() {
    const auto is_quiet = [](const Sender& sender) { return sender.is_on && sender.window.empty(); };
    if (!std::ranges::all_of(senders_, is_quiet)) return false;
    return std::ranges::all_of(receivers_, [&](const Receiver& receiver) {
      return receiver.outstanding.empty() && has_everything(receiver.group);
    });
  }

  /// Lets all messages be sent again, confirmed, delivered and acknowledged. Checks everything a last time.
  void finish() {
    for (int turns = 0; turns < turns_to_the_end && !violation_; ++turns) {
      if (turns % 20 == 0 && is_complete()) break;
      step(true);
    }
    for (const Sender& sender : senders_) {
      if (!sender.window.empty()) complain("what was sent again is not confirmed");
    }
    for (const Receiver& receiver : receivers_) {
      if (!has_everything(receiver.group))
        complain("consumers of '" + receiver.group + "' were never given a message that the log has");
    }
    if (violation_) return;
    end_process(true);
    start_again(true);
  }

  void run(int lives) {
    for (int life = 0; life < lives && !violation_; ++life) {
      live();
      if (!violation_) start_again(life + 1 == lives);
    }
    if (!violation_) finish();
    std::printf("seed %llu: %d power cuts, %d kills, %d clean stops, %zu confirmed, %d sent again\n",
                static_cast<unsigned long long>(random_.seed()), cuts_, kills_, stops_, confirmed_.size(),
                repeats_);
  }

  // --- Comparisons.

  /// Called at a start, before any other event.
  void look(FoundTopic& opened) {
    in_log_.clear();
    log::ReadPosition place{opened.log->first_offset()};
    while (place.offset < opened.log->next_offset()) {
      const auto read = opened.log->read(place);
      if (is_dead_) return;
      if (read.outcome == log::ReadOutcome::unavailable) return complain("the log cannot be read");
      if (read.outcome != log::ReadOutcome::batch) {
        place.offset = read.next;
        continue;
      }
      Offset offset = read.batch.base_offset();
      for (const std::string& payload : test::payloads_of(read.batch)) {
        if (!in_log_.emplace(payload, offset).second) complain("a message is in the log twice");
        offset = offset + 1;
      }
      place.offset = read.batch.end_offset();
    }
    if (clean_end_ && opened.log->next_offset() != *std::exchange(clean_end_, std::nullopt))
      complain("a clean stop has lost messages");
    for (const std::string& payload : confirmed_) {
      if (!in_log_.contains(payload)) complain("a message that was confirmed is lost");
    }
    for (const log::NamedCursor& cursor : opened.stored) look(cursor);
  }

  void look(const log::NamedCursor& cursor) {
    const bool shared = cursor.name.starts_with("group:");
    if (!shared && !cursor.name.starts_with("own:")) return;
    const auto& acknowledged = progress_[cursor.name.substr(cursor.name.find(':') + 1)].acknowledged;
    for (const auto& [payload, offset] : in_log_) {
      const bool is_done = offset < cursor.next() && !cursor.unfinished.messages.contains(offset);
      if (is_done && !acknowledged.contains(payload))
        complain(cursor.name + " stands behind offset " + std::to_string(offset.value) +
                 ", which nobody has acknowledged");
    }
  }

  Random random_{GetParam().seed};
  std::optional<std::string> violation_;
  std::atomic<bool> is_dead_ = false;  // the machine or process, until it starts again
  std::optional<Offset> clean_end_;    // of the log that was closed
  std::vector<Sender> senders_{3};
  std::vector<Receiver> receivers_ = some_receivers();
  std::uint64_t laziness_ = 1;
  std::uint64_t last_payload_ = 0;
  std::map<std::string, Offset> in_log_;
  std::set<std::string> confirmed_;
  std::map<std::string, Progress> progress_;
  int cuts_ = 0, kills_ = 0, stops_ = 0, repeats_ = 0;

 private:
  static std::vector<Receiver> some_receivers() {
    std::vector<Receiver> receivers(4);
    receivers[0].group = receivers[1].group = "shared";
    receivers[2].group = "mine";
    for (Receiver& receiver : receivers)
      receiver.mode = receiver.group == "shared" ? GroupMode::group : GroupMode::own;
    return receivers;
  }
};

TEST_P(PowerCutTest, NoMessageIsLostStoredTwiceOrSkipped) {
  run(lives_of_a_run);
  EXPECT_EQ(violation_, std::nullopt);
  // A run without these events proves nothing.
  EXPECT_GT(cuts_, 5);
  EXPECT_GT(confirmed_.size(), 50U);
  EXPECT_GT(repeats_, 0);
  EXPECT_GT(progress_["shared"].acknowledged.size(), 50U);
}

std::vector<Run> all_runs() {
  std::vector<Run> runs;
  for (const BrokerType type : {BrokerType::file, BrokerType::queue_file})
    for (int seed = 0; seed < cut_seeds; ++seed) runs.push_back({type, seed});
  return runs;
}
std::string name_of(const testing::TestParamInfo<Run>& run) {
  const std::string type = run.param.type == BrokerType::file ? "file" : "queue_file";
  return type + std::to_string(run.param.seed) + "Wrong" + std::to_string(static_cast<int>(run.param.wrong));
}
INSTANTIATE_TEST_SUITE_P(Runs, PowerCutTest, testing::ValuesIn(all_runs()), name_of);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // says nothing about memory or threads
// The test above proves something only if it notices a faulty broker.
class PowerCutRulesTest : public PowerCutTest {};
TEST_P(PowerCutRulesTest, SeededFaultsAreDetected) {
  run(lives_to_notice);
  EXPECT_THAT(violation_.value_or("nothing"), testing::HasSubstr(GetParam().noticed));
}

INSTANTIATE_TEST_SUITE_P(
    Wrongs, PowerCutRulesTest,
    testing::Values(Run{BrokerType::file, 0, Wrong::confirms_before_durable, "confirmed is lost"},
                    Run{BrokerType::file, 0, Wrong::counts_what_is_not_done, "which nobody has acknowledged"},
                    Run{BrokerType::queue_file, 0, Wrong::lost_end_is_hidden, "were never given"}),
    name_of);
#endif

}  // namespace
}  // namespace lightq::broker
