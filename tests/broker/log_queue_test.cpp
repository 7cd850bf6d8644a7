/// Tests of broker/log_queue, and of broker/log_descriptor, through which it writes.
#include "broker/logging/log_queue.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "broker/logging/log_descriptor.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t bytes_max = 64 * 1024;

LogQueue::Line line_of(const std::string& text) {
  return {LogLevel::info, std::chrono::system_clock::now(), text};
}

/// A destination that blocks on its first line until `let()`, and accepts all later lines immediately.
class SlowPlace {
 public:
  LogQueue::Write writer() {
    return [this](const LogQueue::Line& line, const std::atomic<bool>&) {
      if (taken_.try_wait()) return keep(line);
      taken_.count_down();
      let_.wait();
      return keep(line);
    };
  }
  void wait_for_first() const { taken_.wait(); }
  void let() { let_.count_down(); }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  bool keep(const LogQueue::Line& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line.text);
    return true;
  }

  std::latch taken_{1};
  std::latch let_{1};
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Both ends of a pipe.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends_) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int writing_end() const { return ends_[1]; }

  /// Writes until the pipe is full.
  void fill() const {
    const std::string bytes(4096, '.');
    while (has_room()) EXPECT_GT(write(ends_[1], bytes.data(), bytes.size()), 0);
  }
  [[nodiscard]] bool has_room() const {
    pollfd room{ends_[1], POLLOUT, 0};
    return poll(&room, 1, 0) == 1;
  }
  /// Reads the pipe until the text contains `last`. Returns everything that was read.
  [[nodiscard]] std::string read_until(const std::string& last) const {
    std::string all;
    std::string bytes(65536, '\0');
    while (all.find(last) == std::string::npos) {
      const auto count = read(ends_[0], bytes.data(), bytes.size());
      if (count <= 0) break;
      all.append(bytes, 0, static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  std::array<int, 2> ends_{};
};

LogQueue::Write to_pipe(const Pipe& pipe) {
  return
      [to = LogDescriptor(pipe.writing_end())](const LogQueue::Line& line, const std::atomic<bool>& give_up) {
        return to.write(line.text + "\n", give_up);
      };
}

TEST(LogQueue, WritesInOrderAndItsLastLinesAtTheEnd) {
  SlowPlace place;
  LogQueue queue(bytes_max, place.writer());
  queue.put(line_of("one"));
  place.wait_for_first();
  queue.put(line_of("two"));
  queue.put(line_of("three"));
  queue.close();
  queue.put(line_of("too late"));
  place.let();
  queue.finish(LogQueue::Clock::now() + 20s);
  EXPECT_EQ(queue.lost(), 1U);
  EXPECT_THAT(place.lines(), ElementsAre("one", "two", "three", HasSubstr("lost=1")));
}

TEST(LogQueue, DropsAndCountsLinesWithoutSpaceAndNeverBlocks) {
  SlowPlace place;
  LogQueue queue(bytes_max, place.writer());
  queue.put(line_of("first"));
  place.wait_for_first();
  const std::string text(100, 'x');
  constexpr std::uint64_t count = 5000;
  for (std::uint64_t i = 0; i < count; ++i)
    queue.put(line_of(text));  // returns at once, though nothing is written
  const auto lost = queue.lost();
  EXPECT_LE((count - lost) * text.size(), bytes_max);
  EXPECT_GT((count - lost) * 4 * text.size(), bytes_max);
  place.let();
  queue.close();
  queue.finish(LogQueue::Clock::now() + 20s);
  const auto lines = place.lines();
  ASSERT_EQ(lines.size(), 1 + count - lost + 1);
  EXPECT_EQ(lines.front(), "first");
  EXPECT_THAT(lines.back(), HasSubstr(" lost=" + std::to_string(lost)));
}

TEST(LogQueue, ReportsLostLinesBeforeTheNextWrittenLine) {
  SlowPlace place;
  LogQueue queue(2 * sizeof(LogQueue::Line) + 100, place.writer());
  queue.put(line_of("first"));
  place.wait_for_first();
  for (int i = 0; i < 3; ++i) queue.put(line_of(std::string(100, 'x')));
  EXPECT_EQ(queue.lost(), 3U);
  queue.put(line_of("small enough"));
  place.let();
  queue.close();
  queue.finish(LogQueue::Clock::now() + 20s);
  EXPECT_THAT(place.lines(), ElementsAre("first", HasSubstr(" lost=3"), "small enough"));
}

TEST(LogQueue, CountsUnwrittenLinesAndReportsThemLater) {
  std::atomic<bool> full = true;
  std::vector<std::string> lines;
  LogQueue queue(bytes_max, [&](const LogQueue::Line& line, const std::atomic<bool>&) {
    if (!full) lines.push_back(line.text);
    return !full;
  });
  for (std::uint64_t count = 1; count <= 2; ++count) {
    queue.put(line_of("onto a full disk"));
    while (queue.lost() < count) std::this_thread::yield();
  }
  full = false;
  queue.put(line_of("there is room"));
  queue.close();
  queue.finish(LogQueue::Clock::now() + 20s);
  EXPECT_EQ(queue.lost(), 2U);
  EXPECT_THAT(lines, ElementsAre(HasSubstr(" lost=2"), "there is room"));
}

TEST(LogQueue, GivesUpAPipeWithoutAReader) {
  const Pipe pipe;
  pipe.fill();
  LogQueue queue(bytes_max, to_pipe(pipe));
  for (int i = 0; i < 10; ++i) queue.put(line_of("line"));
  queue.close();
  const auto begun = LogQueue::Clock::now();
  queue.finish(begun + 50ms);
  EXPECT_LT(LogQueue::Clock::now() - begun, 5s) << "did not give up";
  while (queue.lost() < 10)
    std::this_thread::yield();  // on a busy machine its thread gives up a little later
  EXPECT_EQ(queue.lost(), 10U);
}

TEST(LogQueue, WritesToAPipeOnceAReaderOpensIt) {
  const Pipe pipe;
  pipe.fill();
  LogQueue queue(bytes_max, to_pipe(pipe));
  queue.put(line_of("waited"));
  queue.put(line_of("last " + std::string(20'000, 'z')));
  EXPECT_THAT(pipe.read_until("zz\n"), testing::ContainsRegex("\\.waited\nlast z+\n$"));
  EXPECT_EQ(queue.lost(), 0U);
}

TEST(LogQueue, EndsThoughAWriteNeverDoes) {
  struct StuckDisk {  // shared, because the writer thread outlives the queue
    std::latch asked{1};
    std::latch answers{1};
    std::latch left{1};
  };
  const auto disk = std::make_shared<StuckDisk>();
  auto begun = LogQueue::Clock::now();
  {
    LogQueue queue(bytes_max, [disk](const LogQueue::Line&, const std::atomic<bool>&) {
      disk->asked.count_down();
      disk->answers.wait();
      disk->left.count_down();
      return true;
    });
    queue.put(line_of("to a disk that does not answer"));
    disk->asked.wait();
    begun = LogQueue::Clock::now();
  }
  EXPECT_LT(LogQueue::Clock::now() - begun, 5s);
  disk->answers.count_down();
  disk->left.wait();
}

TEST(LogDescriptor, ReportsThatAPipeIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[1]);
  const std::atomic<bool> give_up = false;
  EXPECT_FALSE(LogDescriptor(ends[0]).write("nobody can", give_up));  // the reading end cannot be written
  close(ends[0]);
  EXPECT_FALSE(LogDescriptor(ends[0]).write("nobody can", give_up));
}

}  // namespace
}  // namespace lightq::broker
