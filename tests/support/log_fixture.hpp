/// A fixture for tests of durable logs: a faulty disk, a segment pool on it, a log, and a reader of the whole
/// log.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "log/segment_log/segment_log.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::test {

/// A message and its offset, as read from a log.
struct ReadMessage {
  Offset offset;
  std::string payload;
  friend bool operator==(const ReadMessage&, const ReadMessage&) = default;
};

/// Returns all readable messages from `from` on. Skips damaged and trimmed parts.
inline std::vector<ReadMessage> read_everything(log::Log& log, Offset from = {}) {
  std::vector<ReadMessage> messages;
  log::ReadPosition place{from};
  for (;;) {
    const log::ReadResult result = log.read(place);
    if (result.outcome == log::ReadOutcome::end) return messages;
    if (result.outcome != log::ReadOutcome::batch) {
      EXPECT_LT(place.offset, result.next);
      place.offset = result.next;
      continue;
    }
    Offset offset = result.batch.base_offset();
    for (const auto& payload : payloads_of(result.batch)) {
      if (place.offset <= offset) messages.push_back({offset, payload});
      offset = offset + 1;
    }
    EXPECT_LT(place.offset, result.batch.end_offset());
    place.offset = result.batch.end_offset();
  }
}

/// A log in `topics/1` and a pool in `pool` of a file system in memory.
class LogFixture : public testing::Test {
 protected:
  LogFixture() { options.directory = directory; }

  /// Opens the log. A log that was open before is destroyed without closing it, as by SIGKILL.
  void open() {
    log.reset();
    auto opened = log::SegmentLog::open(options, storage, *pool, now);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    log = std::move(*opened);
  }
  log::AppendOutcome append(const std::vector<std::string>& payloads) {
    auto batch = make_batch(payloads);
    const auto result = log->append(batch, now);
    return result.outcome;
  }
  /// Takes a disk job from the log and runs it. Returns false if there is none.
  bool work() {
    const auto job = log->take_disk_job(now);
    if (job == nullptr) return false;
    job->run();
    job->finish();
    return true;
  }
  [[nodiscard]] std::string segment_path(std::uint64_t first_offset) const {
    return directory + "/" + log::segment_name({first_offset});
  }

  const std::string directory = "/topics/1";
  FaultyStorage storage;
  std::unique_ptr<log::SegmentPool> pool =
      std::make_unique<log::SegmentPool>(log::SegmentPoolOptions{"/pool"}, storage);
  log::SegmentLogOptions options;
  Timestamp now{1'000'000'000'000};
  std::unique_ptr<log::SegmentLog> log;
};

}  // namespace lightq::test
