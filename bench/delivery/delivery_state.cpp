/// Part `state`: memory, saves and starts of a group with a million scattered messages. Layer: bench.
#include "delivery/delivery_state.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "delivery/delivery_suite.hpp"
#include "delivery/saves/group_cursors.hpp"
#include "delivery/session_consumer.hpp"
#include "delivery/topic.hpp"
#include "log/memory/ring_log.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/storage/posix_storage.hpp"
#include "support/temp_dir.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t million = 1'000'000;
constexpr std::size_t collected_in_turn = 4096;  // as a topic's saves have it
constexpr double state_mebibyte = 1 << 20;
constexpr double memory_goal_mib = 4;
constexpr double saved_goal_mib = 1;
constexpr int state_rounds = 5;
constexpr std::uint64_t flight_ring_bytes = 16 * limits::MiB;

/// Measures the thread's processor time: on a busy machine the time on a clock would be that of other
/// programs.
class Stopwatch {
 public:
  [[nodiscard]] double milliseconds() const { return thread_milliseconds() - begun_; }

 private:
  static double thread_milliseconds() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }
  double begun_ = thread_milliseconds();
};

/// Takes everything, and does nothing with it.
class SilentConsumer final : public broker::SessionConsumer {
 public:
  void admitted(const Opened& /*opened*/) override {}
  [[nodiscard]] bool writable() const override { return true; }
  [[nodiscard]] CodecSet codecs() const override { return CodecSet::known(); }
  void deliver(const broker::DeliveredSlice& delivered) override {
    ranges_.push_back(delivered.slice.range());
  }
  void flush() override {}
  void end(broker::ClientError /*code*/, const std::string& /*why*/) override {}
  [[nodiscard]] const std::vector<OffsetRange>& ranges() const { return ranges_; }

 private:
  std::vector<OffsetRange> ranges_;
};

/// A topic in memory with one group.
class StateTopic {
 public:
  explicit StateTopic(std::uint64_t ring_bytes)
      : log_({.capacity_bytes = ring_bytes}),
        topic_({TopicId{1},
                *TopicName::parse("state"),
                {.broker_type = protocol::BrokerType::queue, .ring_bytes = ring_bytes}},
               log_, clocks_.wall) {}

  void restore(const std::vector<log::NamedCursor>& cursors) {
    Offset end;
    for (const log::NamedCursor& cursor : cursors) end = std::max(end, cursor.next());
    broker::GroupCursors(topic_.groups()).restore(cursors, end, clocks_);
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    return topic_.groups().find("g")->messages().redelivery().bytes();
  }

  /// Adds a member with `messages` messages in flight, and acknowledges every second one.
  void add_member(std::uint64_t messages) {
    broker::ConsumeRequest request;
    request.group = "g";
    request.credit = {messages, limits::GiB};
    const auto opened = topic_.groups().open(request, lives_);
    if (opened.group == nullptr) throw std::runtime_error("the group was not opened");
    SilentConsumer& consumer = consumers_.emplace_back();
    broker::GroupMember& member = topic_.groups().attach(*opened.group, consumer, request);
    member.begin();
    BatchBuilder batch;
    const std::byte payload{1};
    for (std::uint64_t i = 0; i < messages; ++i) batch.add(ByteView(&payload, 1));
    topic_.publish(batch, clocks_.wall);
    while (topic_.dispatch({.now = clocks_.steady, .wall = clocks_.wall}).more) {
    }
    broker::Ack every_second;
    for (const OffsetRange& range : consumer.ranges()) {
      for (std::uint64_t i = range.begin.value; i < range.end.value; i += 2)
        every_second.ranges.push_back({{i}, {i + 1}});
    }
    if (every_second.ranges.size() != messages / 2)
      throw std::runtime_error("not all messages were delivered");
    opened.group->acknowledge(member, every_second);
  }

  /// Saves the groups to a file and restores another topic from it.
  [[nodiscard]] StateFigures save_and_restore() {
    StateFigures figures;
    broker::GroupCursors saves(topic_.groups());
    const auto piece = [&figures](const auto& call) {
      const Stopwatch watch;
      call();
      figures.piece_ms = std::max(figures.piece_ms, watch.milliseconds());
    };
    piece([&] { saves.begin(); });
    for (bool complete = false; !complete;)
      piece([&] { complete = saves.collect(collected_in_turn, clocks_); });
    broker::CursorsSnapshot snapshot;
    piece([&] { snapshot = saves.take(); });

    const Stopwatch encoding;
    const std::vector<log::NamedCursor> saved = snapshot.finished();
    log::EncodedCursors encoded = log::CursorFile::encode(saved);
    figures.encode_ms = encoding.milliseconds();
    figures.saved_bytes = encoded.slot.bytes.size();

    const TempDir directory;
    log::PosixStorage storage;
    log::CursorFile(storage, directory.path().string()).write(std::move(encoded)).value_or_throw();
    StateTopic next(limits::MiB);
    const Stopwatch decoding;
    const auto loaded = log::CursorFile(storage, directory.path().string()).load().value_or_throw();
    next.restore(loaded);
    figures.decode_ms = decoding.milliseconds();
    if (loaded != saved) throw std::runtime_error("a cursor file holds other cursors than were saved");
    return figures;
  }

 private:
  const broker::ClockReading clocks_{broker::SteadyTime{std::chrono::hours(1)}, Timestamp{1'000'000}};
  const broker::LogLives lives_{77};
  log::RingLog log_;
  std::list<SilentConsumer> consumers_;  // outlive the topic
  broker::Topic topic_;
};

/// The figures of several rounds.
struct StateSamples {
  std::vector<double> memory_mib, saved_mib, piece_ms, encode_ms, decode_ms;

  void add(const StateFigures& figures) {
    memory_mib.push_back(static_cast<double>(figures.memory_bytes) / state_mebibyte);
    saved_mib.push_back(static_cast<double>(figures.saved_bytes) / state_mebibyte);
    piece_ms.push_back(figures.piece_ms);
    encode_ms.push_back(figures.encode_ms);
    decode_ms.push_back(figures.decode_ms);
  }
};

void add_times(DeliverySuite& suite, const std::string& name, const std::string& title,
               const StateSamples& samples) {
  suite.add_bound("state_piece_" + name, title + ", longest piece on the reactor", "ms", samples.piece_ms, 0);
  suite.add_bound("state_encode_" + name, title + ", encoding", "ms", samples.encode_ms, 0);
  suite.add_bound("state_decode_" + name, title + ", reading and restoring", "ms", samples.decode_ms, 0);
}

void measure_waiting(DeliverySuite& suite, const std::string& name, const std::string& pattern,
                     const std::vector<std::uint64_t>& unacknowledged) {
  const log::OffsetSet set = left_of_acknowledgements(unacknowledged);
  StateSamples samples;
  for (int round = 0; round <= suite.options().rounds(state_rounds); ++round) {
    throw_if_stopped();
    const StateFigures figures = figures_of_waiting(set);
    if (round > 0) samples.add(figures);
  }
  const std::string title = "a million unacknowledged, " + pattern;
  suite.add_bound("state_memory_" + name, title + ", memory", "MiB", samples.memory_mib, memory_goal_mib);
  suite.add_bound("state_saved_" + name, title + ", a save", "MiB", samples.saved_mib, saved_goal_mib);
  add_times(suite, name, title, samples);
}

/// Measures ranges in flight, which are the pieces that a save collects on the reactor.
void measure_flight(DeliverySuite& suite) {
  constexpr std::size_t members = 20;
  constexpr std::uint64_t messages_each = 8'000;
  StateSamples samples;
  for (int round = 0; round <= suite.options().rounds(state_rounds); ++round) {
    throw_if_stopped();
    const StateFigures figures = figures_of_flight(members, messages_each);
    if (round > 0) samples.add(figures);
  }
  add_times(suite, "in_flight", "80,000 single messages in flight at 20 members", samples);
}

}  // namespace

std::vector<std::uint64_t> every_offset(std::size_t count, std::uint64_t step) {
  std::vector<std::uint64_t> offsets(count);
  for (std::size_t i = 0; i < count; ++i) offsets[i] = step * i;
  return offsets;
}

std::vector<std::uint64_t> random_offsets(std::size_t count, std::uint64_t one_of) {
  std::mt19937_64 random(one_of);
  std::geometric_distribution<std::uint64_t> gap(1.0 / static_cast<double>(one_of));
  std::vector<std::uint64_t> offsets(count);
  std::uint64_t next = 0;
  for (std::uint64_t& offset : offsets) {
    offset = next + gap(random);
    next = offset + 1;
  }
  return offsets;
}

log::OffsetSet left_of_acknowledgements(const std::vector<std::uint64_t>& kept) {
  log::OffsetSet set;
  if (kept.empty()) return set;
  set.add({{0}, {kept.back() + 1}});
  std::vector<OffsetRange> others;
  std::uint64_t from = 0;
  for (const std::uint64_t offset : kept) {
    if (from < offset) others.push_back({{from}, {offset}});
    from = offset + 1;
  }
  std::shuffle(others.begin(), others.end(), std::mt19937_64(1));
  for (const OffsetRange& range : others) set.remove(range);
  return set;
}

StateFigures figures_of_waiting(const log::OffsetSet& unacknowledged) {
  log::NamedCursor cursor{"group:g", unacknowledged.first(), {unacknowledged.end(), unacknowledged}};
  StateTopic topic(limits::MiB);
  topic.restore({std::move(cursor)});
  const std::size_t memory_bytes = topic.memory_bytes();
  StateFigures figures = topic.save_and_restore();
  figures.memory_bytes = memory_bytes;
  return figures;
}

StateFigures figures_of_flight(std::size_t members, std::uint64_t messages_each) {
  StateTopic topic(flight_ring_bytes);
  for (std::size_t i = 0; i < members; ++i) topic.add_member(messages_each);
  return topic.save_and_restore();
}

void measure_state(DeliverySuite& suite) {
  measure_waiting(suite, "every_2nd", "every 2nd", every_offset(million, 2));
  measure_waiting(suite, "every_10th", "every 10th", every_offset(million, 10));
  measure_waiting(suite, "random_100", "1 of 100 at random", random_offsets(million, 100));
  measure_waiting(suite, "random_1000", "1 of 1,000 at random", random_offsets(million, 1'000));
  measure_flight(suite);
}

}  // namespace lightq::bench
