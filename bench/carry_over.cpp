/// Lets messages pass through a topic while others wait in its group, and reports the space that it takes:
/// the bar is 2 GiB on disk for 100 million messages of 1 KB while 1,000 wait. Layer: bench. Usage:
/// lightq_bench_carry_over [MESSAGES [DIRECTORY]]; the defaults are 1,000,000 messages and a new directory,
/// which is removed at the end.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

#include "delivery/state/log_lives.hpp"
#include "delivery/topic.hpp"
#include "log/storage/posix_storage.hpp"
#include "net/disk_thread.hpp"
#include "net/event_loop.hpp"
#include "store/topic_store.hpp"
#include "topic/reactor/topic_opener.hpp"

namespace lightq::broker {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t waiting = 1000;
constexpr std::uint64_t batch_records = 64;
constexpr std::size_t payload_bytes = 1024;
constexpr std::uint64_t space_max = 2 * limits::GiB;

class Silent final : public LogSink, public StoreEvents {
 public:
  void write(LogLevel /*level*/, std::string_view line) override {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  }
  void on_durable() override {}
  void on_readable() override {}
  void on_saved(StoredState /*saved*/, const Result<void>& /*result*/) override {}
  void on_health() override {}
};

class Receiver final : public SessionConsumer {
 public:
  void admitted(const Opened& /*opened*/) override {}
  [[nodiscard]] bool writable() const override { return true; }
  [[nodiscard]] CodecSet codecs() const override { return CodecSet::known(); }
  void deliver(const DeliveredSlice& /*delivered*/) override {}
  void flush() override {}
  void end(ClientError /*code*/, const std::string& /*why*/) override {}
};

Timestamp wall_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
}

std::uint64_t bytes_on_disk(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& each : std::filesystem::recursive_directory_iterator(directory, ignored))
    if (each.is_regular_file(ignored)) bytes += each.file_size(ignored);
  return bytes;
}

/// Runs the loop for a moment, so that disk jobs finish.
void turn(EventLoop& loop) {
  std::stop_source stop;
  loop.at(SteadyClock::now() + std::chrono::microseconds(100), [&] { stop.request_stop(); });
  loop.run(stop.get_token());
}

/// Lets the first messages wait, every second batch dead and the others delayed, and finishes all others.
void answer(ConsumerGroup& group, GroupMember& member, std::uint64_t sent, SteadyTime now, Timestamp wall) {
  if (sent < waiting + batch_records) {
    const OffsetRange all{{sent - batch_records}, {sent}};
    if (sent / batch_records % 2 == 0) {
      group.reject(member, {.ranges = {all}, .kind = RejectKind::dead}, now, wall);
    } else {
      group.reject(member, {.delay_ms = 86'400'000, .ranges = {all}}, now, wall);
    }
  } else {
    group.acknowledge(member, {Offset{sent}, {}});
  }
}

/// Prints a line about a topic.
void report(protocol::BrokerType type, std::uint64_t messages, const protocol::TopicStats& stats,
            std::uint64_t held, std::uint64_t most) {
  std::printf(
      "%-6s %llu messages, first_offset %llu, carried %llu, waiting %llu, lost %llu, held %llu, most bytes "
      "%llu\n",
      type == protocol::BrokerType::file ? "file" : "queue", static_cast<unsigned long long>(messages),
      static_cast<unsigned long long>(stats.first_offset),
      static_cast<unsigned long long>(stats.carried_messages),
      static_cast<unsigned long long>(stats.groups.at(0).parked + stats.groups.at(0).retrying),
      static_cast<unsigned long long>(stats.groups.at(0).lost), static_cast<unsigned long long>(held),
      static_cast<unsigned long long>(most));
}

/// Returns the most bytes on disk and of memory in a ring.
std::uint64_t pass(protocol::BrokerType type, std::uint64_t messages,
                   const std::filesystem::path& directory) {
  log::PosixStorage storage;
  log::SegmentPool pool({(directory / "pool").string()}, storage);
  Silent silent;
  EventLoop loop;
  DiskThread disk;
  const TopicDefinition definition{
      {1}, *TopicName::parse("t"), {.broker_type = type, .retention_bytes = 512 * limits::MiB}};
  auto opened = TopicOpener(storage, pool)
                    .open(definition, {.topics_directory = directory / "topics"}, wall_time(), silent)
                    .value_or_throw();
  const auto store = opened.take_store(disk, loop);
  store->report_to(silent);
  Topic topic(definition, *store, wall_time());
  ConsumeRequest asked;
  asked.group = "workers";
  asked.credit = {.messages = 1'000'000, .bytes = 1'000'000'000};
  Receiver receiver;
  const LogLives lives{1};
  ConsumerGroup& group = *topic.groups().open(asked, lives).group;
  GroupMember& member = topic.groups().attach(group, receiver, asked);
  member.begin();

  const std::string payload(payload_bytes, 'm');
  BatchBuilder batch;
  std::uint64_t most = 0;
  std::uint64_t held = 0;
  for (std::uint64_t sent = 0; sent < messages;) {
    batch.clear();
    for (std::uint64_t i = 0; i < batch_records; ++i) batch.add(as_byte_view(payload));
    const Timestamp wall = wall_time();
    if (topic.publish(batch, wall) != PublishOutcome::accepted) {
      ++held;
      store->maintain(wall);
      store->start_work(wall);
      turn(loop);
      continue;
    }
    sent += batch_records;
    const SteadyTime now = SteadyClock::now();
    topic.dispatch({.now = now, .wall = wall});
    answer(group, member, sent, now, wall);
    static_cast<void>(member.add_credit({.messages = batch_records, .bytes = batch_records * payload_bytes}));
    if (sent / batch_records % 64 == 0) {
      store->maintain(wall);
      topic.carry_over().sweep();
      store->start_work(wall);
      turn(loop);
    }
    if (sent % (128 * batch_records) == 0) {
      const std::uint64_t bytes = store->is_durable() ? bytes_on_disk(directory) : store->held_bytes();
      most = std::max(most, bytes);
    }
  }
  const auto stats = topic.stats(wall_time());
  report(type, messages, stats, held, most);
  std::fflush(stdout);
  topic.groups().detach(group, member);
  while (!store->is_idle()) turn(loop);
  const bool all_wait = stats.groups.at(0).lost == 0 && stats.carried_messages >= waiting;
  return all_wait ? most : ~std::uint64_t{0};
}

}  // namespace
}  // namespace lightq::broker

int main(int count, char** arguments) {
  using namespace lightq;
  const std::uint64_t messages = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1'000'000;
  std::string room = (std::filesystem::temp_directory_path() / "lightq-carry-XXXXXX").string();
  if (count > 2) {
    room = arguments[2];
  } else if (mkdtemp(room.data()) == nullptr) {
    return 2;
  }
  std::uint64_t most = broker::pass(protocol::BrokerType::queue, messages, room);
  most = std::max(most, broker::pass(protocol::BrokerType::file, messages, room));
  if (count <= 2) std::filesystem::remove_all(room);
  return most <= broker::space_max ? 0 : 1;
}
