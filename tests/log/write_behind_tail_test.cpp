/// Tests that a log in memory can stand in front of any durable log, here a test double that keeps each batch
/// as a part of its own.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "log/memory/write_behind_log.hpp"
#include "support/batches.hpp"

namespace lightq::log {
namespace {

/// A durable log as another machine might offer it: it takes batches, makes them durable in jobs, and may
/// refuse or be out of reach. Lifetime: outlives its jobs.
class DistantLog final : public Log {
 public:
  AppendResult append(std::span<std::byte> batch, Timestamp when) override {
    if (outcome != AppendOutcome::appended) return {outcome, {}};
    stamp_batch(batch, next_, when, epoch, 0);
    batches_.emplace_back(batch.begin(), batch.end());
    const Offset base = next_;
    next_ = next_ + BatchView::trusted(batch.data()).record_count();
    return {AppendOutcome::appended, base};
  }
  ReadResult read(ReadPosition& place) override {
    ++reads;
    if (is_unavailable) return {ReadOutcome::unavailable, {}, place.offset};
    if (place.offset < first_offset()) return {ReadOutcome::trimmed, {}, first_offset()};
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      if (view(i).end_offset() <= place.offset) continue;
      place.hint = dropped_ + i;
      return {ReadOutcome::batch, view(i), {}};
    }
    return {ReadOutcome::end, {}, {}};
  }
  FoundByTime first_since(Timestamp time) override {
    FoundByTime found{next_};
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      if (time <= view(i).append_time()) return {view(i).base_offset(), i + 1};
    }
    return found;
  }
  [[nodiscard]] Offset first_offset() const override {
    return batches_.empty() ? next_ : BatchView::trusted(batches_.front().data()).base_offset();
  }
  [[nodiscard]] Offset next_offset() const override { return next_; }
  [[nodiscard]] Offset durable_offset() const override { return durable_; }
  [[nodiscard]] std::uint64_t stored_bytes() const override {
    std::uint64_t bytes = 0;
    for (const auto& batch : batches_) bytes += batch.size();
    return bytes;
  }
  void trim(Offset /*before*/) override {}
  void drop_before(Offset before) override {
    while (!batches_.empty() && view(0).end_offset() <= before) drop();
  }
  bool make_room(std::size_t /*bytes*/, Offset /*limit*/) override { return true; }
  bool drop_first(Offset limit, std::size_t /*bytes*/) override {
    if (batches_.empty() || limit < view(0).end_offset()) return false;
    drop();
    return true;
  }
  void maintain(Timestamp /*now*/) override {}
  std::unique_ptr<DiskJob> take_disk_job(Timestamp /*now*/) override {
    if (is_out_ || flush_requested_ <= durable_) return nullptr;
    is_out_ = true;
    return std::make_unique<Job>(*this, next_);
  }
  [[nodiscard]] bool job_is_out() const override { return is_out_; }
  void request_flush() override { flush_requested_ = next_; }
  [[nodiscard]] bool wants_disk_work() const override { return durable_ < flush_requested_; }
  Result<void> flush() override {
    durable_ = next_;
    return {};
  }
  [[nodiscard]] const Error& last_error() const override { return error; }

  AppendOutcome outcome = AppendOutcome::appended;  ///< of the next appends
  bool is_unavailable = false;
  int reads = 0;
  Error error{ErrorCode::no_space, "the other machine is full", 0};
  static constexpr std::uint32_t epoch = 99;

 private:
  class Job final : public DiskJob {
   public:
    Job(DistantLog& log, Offset durable) : log_(log), durable_(durable) {}
    void run() override {}
    void finish() override {
      log_.is_out_ = false;
      log_.durable_ = durable_;
    }

   private:
    DistantLog& log_;
    Offset durable_;
  };
  [[nodiscard]] BatchView view(std::size_t index) const { return BatchView::trusted(batches_[index].data()); }
  void drop() {
    batches_.pop_front();
    ++dropped_;
  }

  std::deque<std::vector<std::byte>> batches_;
  std::uint64_t dropped_ = 0;
  Offset next_;
  Offset durable_;
  Offset flush_requested_;
  bool is_out_ = false;
};

class WriteBehindTailTest : public testing::Test {
 protected:
  void open() {
    auto distant = std::make_unique<DistantLog>();
    tail = distant.get();
    log = std::make_unique<WriteBehindLog>(options, std::move(distant));
  }
  AppendOutcome append(const std::string& payload) {
    auto batch = test::make_batch({payload});
    return log->append(batch, now).outcome;
  }
  void write_all() {
    now.us += 200'000;
    do {
      log->maintain(now);
    } while (log->more_to_write());
  }
  std::string read_at(std::uint64_t offset) {
    ReadPosition place{{offset}};
    const ReadResult result = log->read(place);
    EXPECT_EQ(result.outcome, ReadOutcome::batch);
    return result.outcome == ReadOutcome::batch ? test::payloads_of(result.batch).front() : "";
  }

  WriteBehindOptions options{.ring = {.capacity_bytes = 64 * limits::KiB}};
  Timestamp now{1'000'000'000'000};
  DistantLog* tail = nullptr;
  std::unique_ptr<WriteBehindLog> log;
};

TEST_F(WriteBehindTailTest, ReadsFromTheTailWhatTheRingHasDropped) {
  open();
  const std::string large(8000, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_EQ(append(large + std::to_string(i)), AppendOutcome::appended);
  EXPECT_LT(Offset{0}, log->written_offset()) << "the ring had to drop batches, which were written first";
  EXPECT_LT(log->written_offset(), Offset{20});
  EXPECT_EQ(log->next_offset(), Offset{20});
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(read_at(i), large + std::to_string(i));
  EXPECT_LT(0, tail->reads);
  EXPECT_LT(tail->reads, 20);
}

TEST_F(WriteBehindTailTest, KeepsTheTimesOfAppends) {
  open();
  append("first");
  const Timestamp between{now.us + 1};
  now.us += 1000;
  append("second");
  write_all();
  EXPECT_EQ(log->first_since(between).offset, Offset{1});
  EXPECT_EQ(tail->first_since(between).offset, Offset{1});
}

TEST_F(WriteBehindTailTest, ARequestedFlushIsWrittenAndMadeDurableByAJob) {
  open();
  append("first");
  log->request_flush();
  EXPECT_TRUE(log->wants_disk_work());
  const auto job = log->take_disk_job(now);
  ASSERT_NE(job, nullptr);
  EXPECT_TRUE(log->job_is_out());
  EXPECT_EQ(log->written_offset(), Offset{1});
  append("second");
  log->request_flush();
  EXPECT_EQ(log->take_disk_job(now), nullptr);
  EXPECT_EQ(log->written_offset(), Offset{1}) << "it is written together with what arrives meanwhile";
  job->run();
  job->finish();
  EXPECT_EQ(log->durable_offset(), Offset{1});
  const auto next = log->take_disk_job(now);
  ASSERT_NE(next, nullptr);
  next->run();
  next->finish();
  EXPECT_EQ(log->durable_offset(), Offset{2});
  EXPECT_FALSE(log->wants_disk_work());
}

TEST_F(WriteBehindTailTest, KeepsMessagesInTheRingWhileTheTailRefusesThem) {
  open();
  tail->outcome = AppendOutcome::no_space;
  EXPECT_EQ(append("first"), AppendOutcome::appended);
  write_all();
  EXPECT_EQ(log->written_offset(), Offset{0});
  EXPECT_EQ(log->last_error().message, tail->error.message);
  EXPECT_FALSE(log->flush().ok());
  EXPECT_EQ(read_at(0), "first");
  tail->outcome = AppendOutcome::appended;
  EXPECT_TRUE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), Offset{1});
}

TEST_F(WriteBehindTailTest, ATailOutOfReachLosesNoMessage) {
  open();
  append("first");
  write_all();
  // A batch that is larger than the ring is appended to the tail directly, so the ring is empty.
  ASSERT_EQ(append(std::string(100'000, 'x')), AppendOutcome::appended);
  append("third");
  tail->is_unavailable = true;
  ReadPosition place{{0}};
  EXPECT_EQ(log->read(place).outcome, ReadOutcome::unavailable);
  EXPECT_EQ(place.offset, Offset{0});
  EXPECT_EQ(read_at(2), "third") << "that is in memory";
  tail->is_unavailable = false;
  EXPECT_EQ(read_at(0), "first");
}

TEST_F(WriteBehindTailTest, MakesSpaceInTheTail) {
  options.capacity_bytes = 30'000;
  open();
  const std::string large(8000, 'x');
  for (int i = 0; i < 3; ++i) ASSERT_EQ(append(large), AppendOutcome::appended);
  EXPECT_EQ(append(large), AppendOutcome::full);
  EXPECT_FALSE(log->make_room(8200, {0})) << "a reader needs all messages";
  EXPECT_TRUE(log->make_room(8200, {2}));
  EXPECT_EQ(log->first_offset(), Offset{1});
  EXPECT_EQ(append(large), AppendOutcome::appended);
  EXPECT_TRUE(log->drop_first({4}, 0));
  EXPECT_EQ(log->first_offset(), Offset{2});
  EXPECT_EQ(read_at(3), large);
}

}  // namespace
}  // namespace lightq::log
