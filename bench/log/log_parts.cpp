/// Measures the parts of the log: checksum, packing, and appending to and reading from each kind of log.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/memory/ring_log.hpp"
#include "log/segment_log/segment_log.hpp"
#include "log/storage/posix_storage.hpp"

namespace {

using namespace lightq;

constexpr Timestamp now{1};

std::vector<std::byte> batch_of(std::size_t bytes, std::size_t message_bytes) {
  BatchBuilder builder;
  const std::vector<std::byte> message(message_bytes, std::byte{'m'});
  do {
    builder.add(message);
  } while (builder.size_bytes() + record_bytes(message_bytes) <= bytes);
  const auto batch = builder.finish();
  return {batch.begin(), batch.end()};
}

void set_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

void crc32c_hardware(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(bytes));
  set_bytes(state, bytes.size());
}
BENCHMARK(crc32c_hardware)->Arg(64)->Arg(1024)->Arg(65536)->Arg(1 << 20);

void crc32c_table(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) benchmark::DoNotOptimize(crc32c_by_table(bytes));
  set_bytes(state, bytes.size());
}
BENCHMARK(crc32c_table)->Arg(65536);

void pack_64k(benchmark::State& state) {
  const std::vector<std::byte> message(static_cast<std::size_t>(state.range(0)), std::byte{'m'});
  BatchBuilder builder;
  std::int64_t messages = 0;
  for (auto _ : state) {
    builder.clear();
    while (builder.size_bytes() + record_bytes(message.size()) <= limits::batch_bytes_target)
      builder.add(message);
    benchmark::DoNotOptimize(builder.finish().data());
    messages += builder.record_count();
  }
  state.SetItemsProcessed(messages);
}
BENCHMARK(pack_64k)->Arg(100)->Arg(1024);

void ring_append_read_trim(benchmark::State& state) {
  auto batch = batch_of(static_cast<std::size_t>(state.range(0)), 100);
  log::RingLog ring({});
  log::ReadPosition place;
  for (auto _ : state) {
    ring.append(batch, now);
    const log::ReadResult result = ring.read(place);
    place.offset = result.batch.end_offset();
    ring.trim(place.offset);
  }
  set_bytes(state, batch.size());
}
BENCHMARK(ring_append_read_trim)->Arg(256)->Arg(65536);

/// A durable log on the disk of the working directory, which keeps 256 MiB.
class DurableLog {
 public:
  DurableLog()
      : directory_(std::filesystem::absolute("bench-log-parts").string()),
        pool_({directory_ + "/pool"}, storage_) {
    std::filesystem::remove_all(directory_);
    log::SegmentLogOptions options;
    options.directory = directory_ + "/log";
    options.retention_bytes = 256 * limits::MiB;
    options.flush_interval_ms = 0;
    log_ = std::move(log::SegmentLog::open(options, storage_, pool_, now)).value_or_throw();
  }
  ~DurableLog() {
    log_.reset();
    std::filesystem::remove_all(directory_);
  }
  log::SegmentLog& log() { return *log_; }
  /// Does the work of a disk thread.
  void upkeep() {
    log_->maintain(now);
    if (const auto job = log_->take_disk_job(now)) {
      job->run();
      job->finish();
    }
  }

 private:
  std::string directory_;
  log::PosixStorage storage_;
  log::SegmentPool pool_;
  std::unique_ptr<log::SegmentLog> log_;
};

void segment_append(benchmark::State& state) {
  auto batch = batch_of(static_cast<std::size_t>(state.range(0)), 100);
  DurableLog durable;
  // Warm up: write every segment once, so that all come from the pool.
  for (std::uint64_t bytes = 0; bytes < limits::GiB; bytes += batch.size() * 64) {
    for (int i = 0; i < 64; ++i) durable.log().append(batch, now);
    durable.upkeep();
  }
  std::uint64_t count = 0;
  for (auto _ : state) {
    if (durable.log().append(batch, now).outcome != log::AppendOutcome::appended)
      state.SkipWithError("not appended");
    if (++count % 64 == 0) {
      state.PauseTiming();
      durable.upkeep();
      state.ResumeTiming();
    }
  }
  set_bytes(state, batch.size());
}
BENCHMARK(segment_append)->Arg(65536)->Arg(4096);

void segment_read(benchmark::State& state) {
  auto batch = batch_of(static_cast<std::size_t>(state.range(0)), 100);
  DurableLog durable;
  for (std::uint64_t bytes = 0; bytes < 128 * limits::MiB; bytes += batch.size())
    durable.log().append(batch, now);
  log::ReadPosition place;
  for (auto _ : state) {
    const log::ReadResult result = durable.log().read(place);
    if (result.outcome == log::ReadOutcome::end) {
      place = {};
      continue;
    }
    place.offset = result.batch.end_offset();
  }
}
BENCHMARK(segment_read)->Arg(65536)->Arg(256);

}  // namespace

BENCHMARK_MAIN();
