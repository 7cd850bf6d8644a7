/// Places old batches, as a power cut or another log may leave them, where the log writes next.
#include "explorer/planted_rests.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "log/segment_log/segment_log.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::test {

namespace {

constexpr std::uint64_t messages_per_segment = 4;
constexpr std::size_t message_bytes =
    2 * FaultyStorage::sector_bytes;  // so that each header has a sector of its own

/// A log that one process after the other opens.
class Life {
 public:
  Life(FaultyStorage& storage, bool mapped) : storage_(storage) {
    options_.directory = "/topics/1";
    options_.segment_bytes = limits::segment_bytes_min;
    options_.segment_messages_max = messages_per_segment;
    options_.flush_interval_ms = 0;
    options_.mapped_writes = mapped;
    open();
  }
  /// Kills the previous process and opens the log.
  void open() {
    kill();
    pool_ = std::make_unique<log::SegmentPool>(log::SegmentPoolOptions{"/pool"}, storage_);
    log_ = log::SegmentLog::open(options_, storage_, *pool_, now_).value_or_throw();
  }
  void kill() { log_.reset(); }
  void append(std::uint64_t count) {
    for (; count != 0; --count) {
      auto batch = make_batch({std::string(message_bytes, 'x')});
      if (log_->append(batch, now_).outcome != log::AppendOutcome::appended) std::abort();
    }
  }
  void do_all_work() {
    for (now_.us += 10'000'000; const auto job = log_->take_disk_job(now_); now_.us += 10'000'000) {
      job->run();
      job->finish();
    }
  }
  log::SegmentLog& log() { return *log_; }
  [[nodiscard]] std::string path_of(Offset first) const {
    return options_.directory + "/" + log::segment_name(first);
  }

 private:
  FaultyStorage& storage_;
  log::SegmentLogOptions options_;
  Timestamp now_{1'000'000'000'000};
  std::unique_ptr<log::SegmentPool> pool_;
  std::unique_ptr<log::SegmentLog> log_;
};

std::optional<std::string> use_again(bool mapped) {
  FaultyStorage storage;
  Life life(storage, mapped);
  life.append(messages_per_segment);
  const std::vector<std::byte> earlier = storage.bytes_of(life.path_of({0}));
  life.append(messages_per_segment);
  if (!life.log().drop_first({messages_per_segment}, 0)) return "nothing was dropped";
  life.do_all_work();
  life.append(messages_per_segment);
  const Offset newest = life.log().segments().active().first_offset();
  const std::string path = life.path_of(newest);
  // The power cut undoes the name and the header; the batches survive.
  std::copy_n(earlier.begin(), log::segment_header_bytes, storage.bytes_of(path).begin());
  if (!storage.rename(path, "/pool/1000.free")) return "the file cannot be given back";
  life.open();
  if (life.log().next_offset() != newest) return "the log does not end where the file began";
  life.append(1);
  life.open();
  const std::uint64_t found = distance(newest, life.log().next_offset());
  if (found == 1) return std::nullopt;
  return std::to_string(found) + " messages are there, 1 was appended";
}

}  // namespace

std::optional<std::string> use_file_with_undone_header(std::uint64_t& cases) {
  for (const bool mapped : {false, true}) {
    ++cases;
    if (auto wrong = use_again(mapped)) return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> use_file_with_forged_batch(std::uint64_t& cases) {
  FaultyStorage storage;
  log::SegmentLogOptions options;
  options.segment_bytes = limits::segment_bytes_min;
  Timestamp now{1'000'000'000'000};
  log::SegmentPool pool({"/pool"}, storage);
  const auto open = [&](const std::string& directory) {
    options.directory = directory;
    return log::SegmentLog::open(options, storage, pool, now).value_or_throw();
  };
  const auto append = [&](log::SegmentLog& log, const std::string& message) {
    auto batch = make_batch({message});
    return log.append(batch, now).outcome == log::AppendOutcome::appended;
  };
  ++cases;
  const auto forger = open("/topics/1");
  options.segment_messages_max = 1;  // the next message begins a segment
  auto victim = open("/topics/2");
  if (!append(*forger, "first")) return "nothing was appended";
  auto forged = make_batch({"forged"});
  // The victim's next file will have the same mask as its first one.
  if (!append(*victim, "first")) return "nothing was appended";
  const std::uint32_t mask = victim->segments().active().header().batch_mask;
  stamp_batch(forged, {2}, now, forger->segments().active().header().epoch + 1, mask);
  if (!append(*forger, std::string(1000, 'x') + std::string(as_text(forged)))) return "nothing was appended";
  if (!forger->drop_first(forger->next_offset(), 0)) return "nothing was dropped";
  for (now.us += 10'000'000; const auto job = forger->take_disk_job(now); now.us += 10'000'000) {
    job->run();
    job->finish();
  }
  if (pool.files() == 0) return "no file is to be used again";
  if (!append(*victim, "first")) return "nothing was appended";
  victim.reset();
  victim = open("/topics/2");
  const std::uint64_t found = victim->next_offset().value;
  if (found == 2) return std::nullopt;
  return std::to_string(found) + " messages are there, 2 were appended";
}

}  // namespace lightq::test
