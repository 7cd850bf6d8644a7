/// Suite `log`: single appends and reads beside other embedded queues. Layer: bench.
#include <algorithm>
#include <filesystem>

#include "log/go_queue.hpp"
#include "log/log_suite.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t run_bytes = 256 * MiB;       // fits into the memory that bigqueue maps by default
constexpr std::uint64_t long_run_bytes = 768 * MiB;  // twice the size of the mapped memory
constexpr std::uint64_t run_messages_max = 4'000'000;

constexpr std::uint64_t pqueue_messages = 1000;      // per segment; pqueue's default
constexpr std::uint64_t entry_head_bytes = 8;        // of an entry in pqueue: its length and checksum
constexpr std::uint64_t record_head_bytes_max = 64;  // more than a message's overhead in a segment

/// Settings of both sides: the size of a segment, the number of mapped segments, and the amount to append
/// before reading. Segment size and mapped segments are bigqueue's defaults.
struct Setting {
  std::uint64_t segment_bytes = 128 * MiB;
  std::uint64_t segment_messages = 0;  ///< at most; 0: as many as fit
  std::uint64_t mapped_segments = 3;
  std::uint64_t bytes = run_bytes;
  bool many_rounds = false;  ///< see LogOptions::many_rounds
  std::string name_end;      ///< distinguishes settings in row names
  std::string title_end;     ///< distinguishes settings in titles
};

std::string size_text(std::size_t bytes) {
  if (bytes >= MiB) return std::to_string(bytes / MiB) + " MB";
  return bytes >= 1024 ? std::to_string(bytes / 1024) + " KB" : std::to_string(bytes) + " B";
}

/// One queue for all rounds, so that its files are recycled as in long use: dequeued messages are removed. It
/// creates the files in the first rounds, which do not count.
class OurQueue {
 public:
  OurQueue(const std::string& directory, std::size_t message_bytes, const Setting& setting)
      : messages_(message_bytes), queue_(Queue::open(directory, options(setting)).value_or_throw()) {}

  QueueTimes round(std::uint64_t count) {
    const std::uint64_t warm = std::max<std::uint64_t>(1, count / 10);
    QueueTimes times;
    append(warm);
    times.append_ns = time_each(count, [&] { append(count); });
    read(warm);
    times.read_ns = time_each(count, [&] { read(count); });
    check(queue_.is_empty().value_or_throw(), "more messages came back than were appended");
    return times;
  }

 private:
  static QueueOptions options(const Setting& setting) {
    QueueOptions chosen;
    chosen.segment_bytes = setting.segment_bytes;
    chosen.segment_messages_max = setting.segment_messages;
    chosen.mapped_bytes_max = setting.mapped_segments * (setting.segment_bytes + 4096);
    chosen.flush = FlushPolicy::none();
    chosen.background = true;
    chosen.recycled_files_max = std::max<std::size_t>(4, 2 * setting.bytes / setting.segment_bytes);
    return chosen;
  }

  template <typename Work>
  static double time_each(std::uint64_t count, Work&& work) {
    const std::uint64_t begin = now_ns();
    work();
    return static_cast<double>(now_ns() - begin) / static_cast<double>(count);
  }

  void append(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const Result<Offset> appended = queue_.enqueue(messages_.at(appended_++));
      if (!appended) throw std::runtime_error(appended.error().text());
    }
  }

  void read(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const Result<std::optional<QueuedMessage>> message = queue_.dequeue();
      if (!message) throw std::runtime_error(message.error().text());
      check(message->has_value(), "a message is missing");
      messages_.check_is(read_++, (*message)->payload);
    }
  }

  NumberedMessages messages_;
  Queue queue_;
  std::uint64_t appended_ = 0;
  std::uint64_t read_ = 0;
};

/// A queue that the Go driver runs.
struct Reference {
  std::string key;   ///< in row names
  std::string name;  ///< for readers
  std::string driver_name;
};

/// Returns the queue itself if the driver has it, otherwise its imitation.
Reference reference_of(const std::string& key, const std::vector<std::string>& in_driver) {
  if (std::find(in_driver.begin(), in_driver.end(), key) != in_driver.end()) return {key, key, key};
  return {key, key + "'s steps", key + "-steps"};
}

/// The ratios to reach; 0: the row only informs.
struct Goals {
  double append = 0;
  double read = 0;
  double both = 0;
};

/// One value per round.
struct Rounds {
  std::vector<double> append_ns;
  std::vector<double> read_ns;
  std::vector<double> both_ns;

  void add(const QueueTimes& times) {
    append_ns.push_back(times.append_ns);
    read_ns.push_back(times.read_ns);
    both_ns.push_back(times.append_ns + times.read_ns);
  }
  void drop_first() {
    for (auto* values : {&append_ns, &read_ns, &both_ns}) values->erase(values->begin());
  }
};

constexpr int rounds_to_make_files = 6;

/// Compares one message size with one queue, in alternating rounds.
void compare_with(LogSuite& suite, const Reference& reference, std::size_t bytes, const Goals& goals,
                  const Setting& setting = {}) {
  const Scratch scratch;
  OurQueue queue(scratch.path("ours"), bytes, setting);
  GoQueueRun run{reference.driver_name,  scratch.path("reference"), bytes, 0, setting.segment_bytes, 0,
                 setting.mapped_segments};
  run.segment_messages = setting.segment_messages > 0 ? setting.segment_messages
                                                      : setting.segment_bytes / (bytes + entry_head_bytes);
  run.messages =
      std::min(suite.options().amount(setting.bytes) / bytes, suite.options().amount(run_messages_max));
  for (int round = 0; round < rounds_to_make_files; ++round) {
    throw_if_stopped();
    queue.round(run.messages);
  }
  Rounds ours;
  Rounds theirs;
  const int rounds = setting.many_rounds ? suite.options().many_rounds() : suite.options().rounds();
  suite.alternate(
      rounds, [&] { ours.add(queue.round(run.messages)); },
      [&] {
        theirs.add(run_go_queue(suite.options().go_driver, run).value_or_throw());
        std::filesystem::remove_all(run.directory);
      });
  ours.drop_first();
  theirs.drop_first();
  const std::string end = "_" + std::to_string(bytes) + "_vs_" + reference.key + setting.name_end;
  const std::string size = " of " + size_text(bytes) + setting.title_end;
  const auto add = [&](const std::string& what, const std::string& title,
                       std::vector<double> Rounds::* values, double goal) {
    suite.add(compare(what + end, title + size, "ns/message", Better::less, ours.*values, reference.name,
                      theirs.*values),
              goal);
  };
  add("append", "append", &Rounds::append_ns, goals.append);
  add("read", "read", &Rounds::read_ns, goals.read);
  add("both", "append and read", &Rounds::both_ns, goals.both);
}

void compare_with_bigqueue(LogSuite& suite, const Reference& bigqueue) {
  for (const std::size_t bytes : {16U, 128U, 1024U, 2048U, 8192U, 16384U, 1048576U}) {
    const double goal = bytes == 128 ? 5 : bytes >= 16384 ? 2 : 0;
    Setting setting;
    setting.many_rounds = bytes == 128;
    compare_with(suite, bigqueue, bytes, {goal, goal, 0}, setting);
  }
  Setting small;
  small.segment_bytes = 128 * 1024;
  small.mapped_segments = 10;
  small.name_end = "_small_segments";
  small.title_end = ", segments of 128 KB";
  compare_with(suite, bigqueue, 128, {}, small);
  Setting backlog;
  backlog.bytes = long_run_bytes;
  backlog.name_end = "_backlog";
  backlog.title_end = ", 768 MB before they are read";
  for (const std::size_t bytes : {1024U, 16384U}) compare_with(suite, bigqueue, bytes, {}, backlog);
}

void compare_with_pqueue(LogSuite& suite, const Reference& pqueue) {
  for (const std::size_t bytes : {16U, 128U, 1024U, 2048U}) {
    compare_with(suite, pqueue, bytes, {5, 5, 5});
    Setting small;
    small.segment_messages = pqueue_messages;
    small.segment_bytes = pqueue_messages * (bytes + record_head_bytes_max);
    small.mapped_segments = 10;
    small.name_end = "_small_segments";
    small.title_end = ", 1,000 in a segment";
    compare_with(suite, pqueue, bytes, {}, small);
  }
}

}  // namespace

void measure_against_queues(LogSuite& suite) {
  const std::string& driver = suite.options().go_driver;
  if (driver.empty()) {
    suite.note(
        "Without the Go driver (no Go, or its modules could not be had): no rows against other queues.");
    return;
  }
  const Scratch scratch;
  const std::vector<std::string> in_driver = go_queues(driver, scratch.path("")).value_or_throw();
  const Reference pqueue = reference_of("pqueue", in_driver);
  const Reference satellite = reference_of("satellite", in_driver);
  for (const Reference& reference : {pqueue, satellite}) {
    if (reference.name == reference.key) continue;
    suite.note(reference.key + " itself could not be had: " + reference.name + " stand for it.");
  }
  compare_with_bigqueue(suite, {"bigqueue", "bigqueue", "bigqueue"});
  compare_with_pqueue(suite, pqueue);
  Setting satellites;
  satellites.segment_bytes = 256 * 1024;
  satellites.mapped_segments = 10;
  satellites.many_rounds = true;
  compare_with(suite, satellite, 8192, {10, 0, 10}, satellites);
}

}  // namespace lightq::bench
