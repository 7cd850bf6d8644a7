/// Tests views on threads of their own, beside a writer that drops and recycles segments all the time.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "queue_support.hpp"
#include "support/random.hpp"

namespace lightq::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t messages = 20'000;
#else
constexpr std::uint64_t messages = 60'000;
#endif
// After each lap the writer waits until every other thread has done a step.
constexpr std::uint64_t laps = 30;
constexpr auto patience = 60s;

std::string content_of(std::uint64_t number) {
  return text_of(8 + number % 41 * 7, number);
}

/// The state that the threads share.
struct Course {
  explicit Course(Queue& written) : queue(written) {}

  void fail(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (wrong.empty()) wrong = what;
    failed = true;
  }
  /// Records a step of thread `who`. Returns false if the test has failed and the thread must stop.
  bool step(std::size_t who) {
    ++steps[who];
    if (std::chrono::steady_clock::now() > deadline)
      fail("thread " + std::to_string(who) + " is not done in time");
    return !failed;
  }
  void wait_for_all() {
    std::array<std::uint64_t, threads_max> before{};
    for (std::size_t who = 0; who < threads; ++who) before[who] = steps[who];
    for (std::size_t who = 0; who < threads; ++who) {
      while (steps[who] == before[who] && !finished[who] && !failed) std::this_thread::yield();
    }
  }

  static constexpr std::size_t threads_max = 16;
  Queue& queue;
  const std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::now() + patience;
  std::size_t threads = 0;
  std::array<std::atomic<std::uint64_t>, threads_max> steps{};
  std::array<std::atomic<bool>, threads_max> finished{};
  std::atomic<bool> failed = false;
  std::atomic<std::uint64_t> gaps = 0;  // gaps that readers found where segments were dropped
  std::mutex mutex;
  std::string wrong;  // guarded by the mutex
};

/// Follows the log through a view. Checks that messages are in order and have the written content, and that
/// only dropped messages are missing. The only error may be that a segment was dropped.
class Follower {
 public:
  enum class Way { one_by_one, in_batches, in_leaps };
  Follower(Course& course, QueueReader reader, Way way, int number)
      : course_(course), reader_(std::move(reader)), way_(way), number_(number) {}

  /// Reads everything that the view shows now.
  void read_all() {
    if (way_ == Way::in_leaps) leap();
    while (!course_.failed && (way_ == Way::one_by_one ? read_one() : read_batch())) {
    }
  }
  bool wait() { return reader_.wait(5ms); }
  [[nodiscard]] bool is_done() const { return next_ == messages; }

 private:
  template <typename Read>
  bool accept(const Read& read) {
    if (read) return true;
    if (read.error().code != ErrorCode::closed) course_.fail(read.error().text());
    return false;
  }
  bool read_one() {
    const auto message = reader_.next();
    if (!accept(message) || !*message) return false;
    check(**message);
    return true;
  }
  bool read_batch() {
    const auto batch = reader_.next_batch(way_ == Way::in_leaps ? 7 : limits::batch_records_max);
    if (!accept(batch) || batch->empty()) return false;
    for (const QueuedMessage& message : *batch) check(message);
    return true;
  }
  /// Seeks back to a position already read, by offset or by time. If that was dropped, the next kept message
  /// must follow.
  void leap() {
    if (next_ == 0 || is_done()) return;
    const std::uint64_t wanted = next_ - 1 - random().below(std::min<std::uint64_t>(next_, 5000));
    const bool by_time = random().one_in(2);
    const Timestamp time{time_.us - static_cast<std::int64_t>(random().below(20'000))};
    if (!accept(reader_.seek(by_time ? Start::at(time) : Start::at(Offset{wanted})))) return;
    const auto message = reader_.peek();
    if (!accept(message) || !*message) return;
    const Offset there = (*message)->offset;
    if (by_time && (*message)->time < time) course_.fail("a time before the one that was sought");
    if (!by_time && there < Offset{wanted}) course_.fail("an offset before the one that was sought");
    // Skipped messages were dropped, or are older than the time.
    if (!by_time) check_dropped(wanted, there);
    if (by_time && Offset{next_} < there) check_dropped(next_, there);
    next_ = there.value;
    time_ = (*message)->time;
  }
  void check(const QueuedMessage& message) {
    const std::uint64_t number = message.offset.value;
    if (number < next_) course_.fail("back to " + std::to_string(number));
    check_dropped(next_, message.offset);
    if (message.time < time_) course_.fail("the time goes back at " + std::to_string(number));
    if (message.text() != content_of(number))
      course_.fail(std::to_string(number) + ": " + std::string(message.text()));
    next_ = number + 1;
    time_ = message.time;
  }
  void check_dropped(std::uint64_t wanted, Offset there) {
    if (there.value <= wanted) return;
    ++course_.gaps;
    if (there <= course_.queue.first_offset()) return;
    course_.fail("a gap from " + std::to_string(wanted) + " to " + std::to_string(there.value) +
                 ", kept from " + std::to_string(course_.queue.first_offset().value));
  }
  Random& random() {
    if (random_ == nullptr) random_ = std::make_unique<Random>(number_);  // each thread has its own
    return *random_;
  }

  Course& course_;
  QueueReader reader_;
  const Way way_;
  const int number_;
  std::unique_ptr<Random> random_;
  std::uint64_t next_ = 0;
  Timestamp time_;
};

class QueueViewThreadsTest : public QueueTest, public testing::WithParamInterface<bool> {
 protected:
  using Way = Follower::Way;
  static constexpr std::array ways = {Way::one_by_one, Way::in_batches, Way::in_leaps};

  static QueueOptions options() {
    QueueOptions options{.segment_bytes = 16 * limits::KiB, .background = true};
    options.recycled_files_max = 8;
    if (!GetParam()) options.retention_messages = 2000;
    return options;
  }
  void start(std::function<void(std::size_t)> run) {
    const std::size_t who = course->threads++;
    threads.emplace_back([this, who, run = std::move(run)] {
      run(who);
      course->finished[who] = true;
    });
  }
  void refresh(QueueView& view) {
    if (const auto done = view.refresh(); !done) course->fail("a refresh: " + done.error().text());
  }
  /// Starts a view and its readers, all on one thread.
  void start_view_on_one_thread() {
    start([this](std::size_t who) {
      QueueView view = QueueView::open(directory).value_or_throw();
      std::vector<std::unique_ptr<Follower>> followers;
      for (const Way way : ways) {
        followers.push_back(
            std::make_unique<Follower>(*course, view.reader().value_or_throw(), way, static_cast<int>(who)));
      }
      bool done = false;
      while (!done && course->step(who)) {
        refresh(view);
        done = true;
        for (const auto& follower : followers) {
          follower->read_all();
          done = done && follower->is_done();
        }
      }
    });
  }
  /// Starts threads for one view: one thread refreshes it, and its readers are on other threads.
  void start_view_on_many_threads(QueueView& view) {
    const auto readers = std::make_shared<std::atomic<std::size_t>>(ways.size());
    for (const Way way : ways) {
      start([this, &view, way, readers](std::size_t who) {
        Follower follower(*course, view.reader().value_or_throw(), way, static_cast<int>(who));
        while (!follower.is_done() && course->step(who)) {
          follower.wait();
          follower.read_all();
        }
        --*readers;
      });
    }
    start([this, &view, readers](std::size_t who) {
      while (*readers != 0 && course->step(who)) refresh(view);
    });
  }
  /// Starts a consumer. Its commits drop the segments.
  void start_consumer(Queue& queue) {
    start(
        [this, cursor = std::make_shared<QueueCursor>(queue.cursor("c").value_or_throw())](std::size_t who) {
          std::uint64_t next = 0;
          while (next < messages && course->step(who)) {
            cursor->wait(5ms);
            for (auto message = cursor->dequeue().value_or_throw(); message;
                 message = cursor->dequeue().value_or_throw()) {
              if (message->offset.value != next++) course->fail("the cursor has passed something over");
            }
          }
        });
  }

  std::unique_ptr<Course> course;
  std::vector<std::jthread> threads;
};

INSTANTIATE_TEST_SUITE_P(Dropping, QueueViewThreadsTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Committed" : "ByRetention"; });

TEST_P(QueueViewThreadsTest, ReadBesideAWriterThatUsesItsSegmentsAgain) {
  Queue queue = open(options());
  course = std::make_unique<Course>(queue);
  QueueView shared = QueueView::open(directory).value_or_throw();
  start_view_on_one_thread();
  start_view_on_one_thread();
  start_view_on_many_threads(shared);
  if (GetParam()) start_consumer(queue);
  for (std::uint64_t i = 0; i < messages && !course->failed; ++i) {
    if (const auto appended = queue.enqueue(content_of(i)); !appended) course->fail(appended.error().text());
    if (i % (messages / laps) == 0) course->wait_for_all();
  }
  EXPECT_TRUE(queue.flush().ok()) << "the last batch is shown, too";
  threads.clear();
  EXPECT_EQ("", course->wrong);
  EXPECT_LT(0U, course->gaps) << "nobody has met a dropped segment";
  EXPECT_LT(Offset{messages / 2}, queue.first_offset()) << "segments were dropped";
}

}  // namespace
}  // namespace lightq::test
