/// Tests an embedded queue and a view of it while segments cannot be opened for a time. Each attempt returns
/// an error, no message is skipped, and a later attempt succeeds.
#include <cerrno>
#include <vector>

#include "log/format/segment_format.hpp"
#include "queue/queue_on_faulty_disk.hpp"
#include "queue/view_engine.hpp"

namespace lightq::test {
namespace {

using Call = FaultyStorage::Call;

class QueueUnavailableTest : public QueueOnFaultyDisk {
 protected:
  static constexpr int shortages[] = {EMFILE, ENFILE, ENOMEM, EACCES, EIO};
  static constexpr int messages = 200;
  const QueueOptions options{.segment_bytes = 16 * limits::KiB,
                             .flush = FlushPolicy::every_bytes(limits::MiB)};

  /// Appends messages of 1,000 bytes, fifteen in each segment. Opens the queue again, so that nothing is
  /// mapped.
  void fill() {
    open_engine(options);
    for (int i = 0; i < messages; ++i) ASSERT_TRUE(enqueue(std::to_string(i) + std::string(1000, ' ')).ok());
    ASSERT_TRUE(engine->close().ok());
    open_engine(options);
    std::vector<std::string> segments;
    for (const std::string& path : storage.paths()) {
      if (path.starts_with(directory) && path.ends_with(".seg")) segments.push_back(path);
    }
    ASSERT_GT(segments.size(), 5U);
    failing = segments[3];
  }
  void fail(Call call, int error) {
    storage.on_call = [this, call, error](Call asked, const std::string& path) {
      return FaultyStorage::Fault{asked == call && path == failing ? error : 0, 0};
    };
  }
  /// Reads until there is nothing more. Checks that each message is returned once and in order, also if
  /// errors come between.
  void read_past_failures(queue::SegmentSource& source, int error) {
    queue::ReaderState reader(source);
    reader.place(source.first_offset());
    int read = 0, failures = 0;
    for (;;) {
      const auto found = reader.find_message();
      if (!found) {
        ASSERT_EQ(found.error().system_error, error);
        ASSERT_EQ(found.error().code, ErrorCode::io_error);
        ASSERT_EQ(reader.position(), Offset{static_cast<std::uint64_t>(read)});
        if (++failures == 3) storage.on_call = nullptr;
        continue;
      }
      if (!*found) break;
      ASSERT_EQ(std::stoi(std::string(reader.take_message().text())), read++);
    }
    EXPECT_EQ(read, messages);
    EXPECT_EQ(failures, 3);
  }

  std::string failing;
};

TEST_F(QueueUnavailableTest, AReaderWaitsAndContinues) {
  fill();
  for (const Call call : {Call::open, Call::map}) {
    for (const int error : shortages) {
      open_engine(options);
      fail(call, error);
      read_past_failures(*engine, error);
    }
  }
}

TEST_F(QueueUnavailableTest, SoDoesTheReaderOfAView) {
  fill();
  for (const Call call : {Call::open, Call::map}) {
    for (const int error : shortages) {
      auto view = queue::ViewEngine::open(directory, storage);
      ASSERT_TRUE(view.ok()) << view.error().text();
      fail(call, error);
      read_past_failures(**view, error);
    }
  }
}

// An unreadable end of a segment would look to a view like a gap before the next segment.
TEST_F(QueueUnavailableTest, AViewIsNotOpenedOrRefreshedByHalf) {
  fill();
  for (const Call call : {Call::open, Call::read}) {
    for (const int error : shortages) {
      fail(call, error);
      EXPECT_EQ(queue::ViewEngine::open(directory, storage).error().system_error, error);
      storage.on_call = nullptr;
      EXPECT_TRUE(queue::ViewEngine::open(directory, storage).ok());
    }
  }
}

}  // namespace
}  // namespace lightq::test
