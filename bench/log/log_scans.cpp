/// Suite `log`: sequential reading beside a plain scan of the same bytes. Layer: bench.
#include <filesystem>
#include <map>
#include <memory>

#include "log/log_suite.hpp"
#include "log/raw_file.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t segment_bytes = 64 * MiB;

/// A queue's own segment files, in mappings touched before: the same records in the same memory. The physical
/// location of two files in memory would make a larger difference than the one to measure.
class PlainRecords {
 public:
  /// Maps all segments of a queue that has `count` messages, beginning with number 0.
  PlainRecords(const std::string& directory, std::uint64_t count) {
    std::map<std::uint64_t, std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".seg") paths[std::stoull(entry.path().stem())] = entry.path();
    }
    for (auto at = paths.begin(); at != paths.end(); ++at) {
      const auto after = std::next(at);
      segments_.push_back({mapped(at->second), (after == paths.end() ? count : after->first) - at->first});
    }
  }
  /// Iterates over the lengths and sums each record's words.
  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t sum = 0;
    for (const Segment& segment : segments_) sum += sum_of_segment(segment);
    return sum;
  }

 private:
  struct Segment {
    std::unique_ptr<RawMapping> mapping;
    std::uint64_t messages = 0;
  };

  static std::unique_ptr<RawMapping> mapped(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    require(file.get() >= 0, "cannot open " + path);
    auto mapping = std::make_unique<RawMapping>(file.get(), std::filesystem::file_size(path), PROT_READ);
    mapping->advise(MADV_POPULATE_READ);
    return mapping;
  }

  // The format is in docs/log_format.md: a page of header, then batches, each with a header and records.
  static std::uint64_t sum_of_segment(const Segment& segment) {
    std::uint64_t sum = 0;
    const std::byte* at = segment.mapping->data() + page_bytes;
    for (std::uint64_t seen = 0; seen < segment.messages;) {
      const std::byte* const end = at + load_little_endian<std::uint32_t>(at + batch_layout::total_bytes);
      const auto records = load_little_endian<std::uint32_t>(at + batch_layout::record_count);
      check(records != 0, "a segment ends before its last message");
      seen += records;
      for (at += batch_layout::header_bytes; at < end;) {
        const auto bytes = load_little_endian<std::uint32_t>(at);
        sum += sum_of({at + sizeof bytes, bytes});
        at += sizeof bytes + bytes;
      }
    }
    return sum;
  }

  std::vector<Segment> segments_;
};

void fill(Queue& queue, std::size_t message_bytes, std::uint64_t count) {
  NumberedMessages messages(message_bytes);
  BatchBuilder batch;
  for (std::uint64_t i = 0; i < count; ++i) {
    batch.add(messages.at(i));
    if (batch.size_bytes() + record_bytes(message_bytes) <= limits::batch_bytes_target && i + 1 < count)
      continue;
    queue.enqueue(batch).value_or_throw();
    batch.clear();
  }
}

/// Returns the sum that both ways of reading must compute.
std::uint64_t sum_of_messages(std::size_t message_bytes, std::uint64_t count) {
  NumberedMessages messages(message_bytes);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += sum_of(messages.at(i));
  return sum;
}

std::uint64_t sum_all(QueueReader& reader, std::uint64_t count) {
  std::uint64_t sum = 0;
  std::uint64_t seen = 0;
  while (seen < count) {
    const Result<QueuedMessages> messages = reader.next_batch();
    if (!messages) throw std::runtime_error(messages.error().text());
    check(!messages->empty(), "messages are missing");
    for (const QueuedMessage& message : *messages) sum += sum_of(message.payload);
    seen += messages->size();
  }
  return sum;
}

/// One scan takes about eight milliseconds, which other processes on the machine can disturb considerably.
constexpr int scans_in_a_round = 5;

/// When the reader verifies CRCs. A queue trusts records that it has written or verified itself.
enum class Checks {
  once,   ///< reopened after filling: verifies everything in the first round, which is the warm-up
  always  ///< reopened before each round
};

void compare_scan(LogSuite& suite, std::size_t message_bytes, Checks checks) {
  const Scratch scratch;
  const std::uint64_t count = suite.options().amount(192 * MiB) / record_bytes(message_bytes);
  const double bytes = static_cast<double>(count * record_bytes(message_bytes));
  QueueOptions options;
  options.segment_bytes = segment_bytes;
  std::optional<Queue> queue;
  const auto open = [&] {
    if (queue) queue->close().value_or_throw();
    queue.reset();
    queue = Queue::open(scratch.path("ours"), options).value_or_throw();
  };
  open();
  fill(*queue, message_bytes, count);
  open();
  const PlainRecords records(scratch.path("ours"), count);
  const std::uint64_t expected = sum_of_messages(message_bytes, count);
  const int scans = checks == Checks::once ? scans_in_a_round : 1;
  const auto timed = [&](const std::function<std::uint64_t()>& scan) {
    const std::uint64_t begin = now_ns();
    for (int i = 0; i < scans; ++i) check(scan() == expected, "the scan's sum is wrong");
    return scans * bytes / static_cast<double>(now_ns() - begin);
  };
  const auto ours = [&] {
    if (checks == Checks::always) open();
    return timed([&] {
      QueueReader reader = queue->reader().value_or_throw();
      return sum_all(reader, count);
    });
  };
  const auto plain = [&] { return timed([&] { return records.sum(); }); };
  std::vector<double> our_rates;
  std::vector<double> plain_rates;
  const bool once = checks == Checks::once;
  const int rounds = once ? suite.options().many_rounds() : suite.options().rounds();
  suite.alternate(rounds, ours, plain, our_rates, plain_rates);
  const std::string size = std::to_string(message_bytes);
  suite.add(compare((once ? "scan_" : "first_scan_") + size,
                    std::string(once ? "sequential read" : "first sequential read") + " of " + size +
                        " B messages, every CRC checked " + (once ? "before" : "meanwhile"),
                    "GB/s", Better::more, our_rates, "plain scan of a touched mapping", plain_rates),
            once ? 0.9 : 0);
}

/// Reopens the queue for each round, so that no record is verified before the measurement.
void scan_verified(LogSuite& suite) {
  const Scratch scratch;
  constexpr std::size_t message_bytes = 100;
  const std::uint64_t count = suite.options().amount(256 * MiB) / record_bytes(message_bytes);
  QueueOptions options;
  options.segment_bytes = segment_bytes;
  {
    Queue queue = Queue::open(scratch.path("ours"), options).value_or_throw();
    fill(queue, message_bytes, count);
    queue.close().value_or_throw();
  }
  std::vector<double> rates;
  for (int round = 0; round <= suite.options().rounds(); ++round) {
    throw_if_stopped();
    Queue queue = Queue::open(scratch.path("ours"), options).value_or_throw();
    check(queue.next_offset().value == count, "messages are missing after the queue was opened again");
    QueueReader reader = queue.reader().value_or_throw();
    const std::uint64_t begin = now_ns();
    sum_all(reader, count);
    if (round > 0) rates.push_back(static_cast<double>(count) * 1e3 / static_cast<double>(now_ns() - begin));
  }
  suite.add_expected("verified_scan_100", "verified scan of 100 B messages, opened again", "million msg/s",
                     Better::more, rates, 20);
}

}  // namespace

void measure_scans(LogSuite& suite) {
  for (const Checks checks : {Checks::once, Checks::always}) {
    for (const std::size_t bytes : {128U, 1024U, 16384U}) compare_scan(suite, bytes, checks);
  }
  scan_verified(suite);
}

}  // namespace lightq::bench
