/// A fixture for tests of inspecting, repairing and copying logs: a log of several segments, and functions
/// that examine it.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "log/tools/inspect.hpp"
#include "support/log_fixture.hpp"
#include "support/random.hpp"

namespace lightq::test {

using Messages = std::map<std::uint64_t, std::string>;

/// Keeps everything that an inspection reports.
class Keeper final : public log::LogVisitor {
 public:
  bool on_batch(const log::ScannedBatch& batch, const BatchView& view) override {
    std::uint64_t offset = batch.base.value;
    for (const auto& payload : payloads_of(view)) {
      EXPECT_FALSE(messages.contains(offset)) << "offset " << offset << " was given twice";
      messages[offset++] = payload;
    }
    return true;
  }
  bool on_finding(const log::Finding& finding) override {
    findings.push_back(finding);
    return true;
  }
  bool on_summary(const log::SegmentSummary& summary) override {
    summaries.push_back(summary);
    return true;
  }
  [[nodiscard]] std::vector<log::Finding> of(log::Finding::Kind kind) const {
    std::vector<log::Finding> found;
    for (const auto& finding : findings) {
      if (finding.kind == kind) found.push_back(finding);
    }
    return found;
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const auto& finding : findings) all += finding.text() + "\n";
    return all;
  }

  Messages messages;
  std::vector<log::Finding> findings;
  std::vector<log::SegmentSummary> summaries;
};

/// A log of a few small segments in `/topics/1`. All segments but the last are sealed.
class ToolFixture : public LogFixture {
 protected:
  using Kind = log::Finding::Kind;
  ToolFixture() { options.segment_bytes = limits::segment_bytes_min; }

  /// Appends batches of `per_batch` numbered messages.
  void fill(std::uint64_t count, std::size_t message_bytes = 3000, std::uint64_t per_batch = 5) {
    if (!log) open();
    while (count != 0) {
      std::vector<std::string> payloads;
      for (; payloads.size() < per_batch && count != 0; --count) {
        std::string payload = std::to_string(log->next_offset().value + payloads.size()) + "|";
        payload.resize(message_bytes, '.');
        payloads.push_back(payload);
      }
      const std::uint64_t base = log->next_offset().value;
      ASSERT_EQ(append(payloads), log::AppendOutcome::appended);
      for (std::size_t i = 0; i < payloads.size(); ++i) written[base + i] = payloads[i];
      now.us += 1000;
    }
    ASSERT_TRUE(log->flush().ok());
  }
  /// Returns the first offsets of the existing segment files.
  std::vector<std::uint64_t> segments(const std::string& where = "/topics/1") {
    std::vector<std::uint64_t> found;
    const auto names = log::list_if_there(where, storage);
    for (const auto& name : *names) {
      if (const auto offset = log::segment_name_offset(name)) found.push_back(offset->value);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  log::InspectTotals inspect(Keeper& keeper, const std::string& where = "/topics/1") {
    log::InspectOptions how;
    how.with_cursors = true;
    how.with_producers = true;
    how.with_indexes = true;
    const auto totals = log::inspect_log(where, storage, how, keeper);
    EXPECT_TRUE(totals.ok()) << totals.error().text();
    return totals ? *totals : log::InspectTotals{};
  }
  void put(const std::string& path, const std::vector<std::byte>& bytes) {
    ASSERT_TRUE(storage.open(path, log::OpenMode::create).ok());
    storage.bytes_of(path) = bytes;
  }
  void flip(const std::string& path, std::size_t position, int bit = 0) {
    storage.bytes_of(path).at(position) ^= std::byte{1} << bit;
  }
  /// Returns the paths and bytes of all files below a directory.
  std::map<std::string, std::vector<std::byte>> all_below(const std::string& where) {
    std::map<std::string, std::vector<std::byte>> files;
    for (const auto& path : storage.paths()) {
      if (path.starts_with(where + "/")) files[path] = storage.bytes_of(path);
    }
    return files;
  }
  /// Opens the log in `where` and returns its messages. The log must open without a report of damage.
  Messages read_back(const std::string& where) {
    log::SegmentLogOptions there = options;
    there.directory = where;
    auto opened = log::SegmentLog::open(there, storage, *pool, now);
    EXPECT_TRUE(opened.ok()) << opened.error().text();
    if (!opened) return {};
    EXPECT_TRUE((*opened)->recovery().damaged.empty()) << (*opened)->recovery().text();
    // A repair in place leaves the torn tail to recovery.
    EXPECT_TRUE(where == directory || (*opened)->recovery().clean()) << (*opened)->recovery().text();
    Messages messages;
    for (const auto& message : read_everything(**opened)) messages[message.offset.value] = message.payload;
    reopened_next = (*opened)->next_offset();
    return messages;
  }

  Messages written;
  Offset reopened_next;
};

}  // namespace lightq::test
