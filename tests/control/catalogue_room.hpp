/// A catalogue on a real SegmentLog in a temporary directory. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "control/catalogue/catalogue.hpp"
#include "log/segment/segment_pool.hpp"
#include "log/segment_log/segment_log.hpp"
#include "log/storage/posix_storage.hpp"
#include "support/planted.hpp"
#include "support/temp_dir.hpp"

namespace lightq::broker::test {

/// Keeps the lines that were logged. Fails the test if a line contains a secret.
class RecordingSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override {
    planted::expect_none_in(line);
    lines.emplace_back(line);
  }
  std::vector<std::string> lines;
};

struct CatalogueRoom {
  lightq::test::TempDir directory;
  log::PosixStorage storage;
  log::SegmentPool pool{{directory / "pool"}, storage};
  RecordingSink sink;
  std::int64_t now_ms = 1'800'000'000'000;

  std::string path() { return directory / "catalogue"; }

  Catalogue::Options options() {
    return {[this](const std::filesystem::path& at) -> Result<std::unique_ptr<log::Log>> {
              log::SegmentLogOptions log_options;
              log_options.directory = at.string();
              auto opened = log::SegmentLog::open(log_options, storage, pool, now());
              if (!opened) return opened.error();
              return std::unique_ptr<log::Log>(std::move(opened).value());
            },
            [this] { return now(); }, std::chrono::milliseconds(600'000)};
  }
  Timestamp now() const { return {now_ms * 1000}; }

  Result<std::unique_ptr<Catalogue>> try_open() { return Catalogue::open(path(), options(), sink); }
  std::unique_ptr<Catalogue> open() {
    auto opened = try_open();
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().text());
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
};

inline TopicName name(std::string_view text) {
  return TopicName::parse(text).value();
}

}  // namespace lightq::broker::test
