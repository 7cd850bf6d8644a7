/// Tests a segment that was begun before its file was renamed to the segment's name. After a process that
/// ended at that moment, the next opening, the tools and other readers find the segment.
#include "log/format/unnamed_segment.hpp"

#include <gtest/gtest.h>

#include "log/tools/repair.hpp"
#include "log/tools/snapshot.hpp"
#include "queue/reader_state.hpp"
#include "queue/view_engine.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::test {
namespace {

using Call = FaultyStorage::Call;

class UnnamedSegmentTest : public ToolFixture {
 protected:
  UnnamedSegmentTest() {
    options.mapped_writes = true;
    options.prefault = true;
    options.flush_interval_ms = 0;
  }
  /// Appends until the newest segment has no name yet and contains a few messages.
  void begin_one() {
    open();
    while (!is_unnamed()) {
      ASSERT_LT(written.size(), 1000U);
      ASSERT_NO_FATAL_FAILURE(add());
      if (!is_unnamed()) work();
    }
    for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(add());
  }
  void add() {
    const std::uint64_t next = log->next_offset().value;
    std::string payload = std::to_string(next);
    payload.resize(3000, '.');
    const auto before = segments().size();
    ASSERT_EQ(append({payload}), log::AppendOutcome::appended);
    written[next] = payload;
    first = log->segments().active().first_offset();
    EXPECT_EQ(segments().size(), log->segments().size() - (is_unnamed() ? 1 : 0)) << before;
  }
  [[nodiscard]] bool is_unnamed() {
    return log->segments().size() > 1 && !storage.exists(segment_path(first.value));
  }
  [[nodiscard]] bool is_named() { return storage.exists(segment_path(first.value)); }

  /// Returns all messages that `source` shows.
  static Messages read_all_of(queue::SegmentSource& source) {
    Messages messages;
    queue::ReaderState reader(source);
    reader.place({});
    for (;;) {
      const auto some = reader.take(limits::batch_records_max);
      EXPECT_TRUE(some.ok()) << some.error().text();
      if (!some || some->empty()) return messages;
      for (const auto& message : *some) messages[message.offset.value] = message.text();
    }
  }

  const std::string next_path = directory + "/next.prepared";
  Offset first;  // the first offset of the newest segment
};

TEST_F(UnnamedSegmentTest, GetsItsNameFromTheNextJob) {
  begin_one();
  EXPECT_TRUE(storage.exists(next_path));
  ASSERT_TRUE(work());
  EXPECT_TRUE(is_named());
  EXPECT_TRUE(storage.exists(next_path)) << "the one after it";
  open();
  EXPECT_EQ(read_back(directory), written);
}

TEST_F(UnnamedSegmentTest, IsFoundAfterTheProcessWasEnded) {
  begin_one();
  const Offset next = log->next_offset();
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_EQ(log->next_offset(), next);
  EXPECT_TRUE(is_named());
  EXPECT_FALSE(storage.exists(next_path));
  add();
  EXPECT_EQ(read_back(directory), written);
}

TEST_F(UnnamedSegmentTest, IsNamedBeforeAnyMessageIsReportedDurable) {
  begin_one();
  ASSERT_TRUE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), log->next_offset());
  log.reset();
  storage.power_cut([] { return false; });
  open();
  EXPECT_EQ(read_back(directory), written);
}

TEST_F(UnnamedSegmentTest, IsNamedByAClose) {
  begin_one();
  ASSERT_TRUE(log->close().ok());
  EXPECT_TRUE(is_named());
  open();
  EXPECT_TRUE(log->recovery().closed);
}

TEST_F(UnnamedSegmentTest, IsNamedBeforeTheNextSegmentBegins) {
  begin_one();
  const std::string path = segment_path(first.value);
  const std::size_t begun = log->segments().size();
  while (log->segments().size() == begun) add();
  EXPECT_TRUE(storage.exists(path));
  EXPECT_EQ(read_back(directory), written);
}

TEST_F(UnnamedSegmentTest, ContinuesAndRetriesWhenTheRenameFails) {
  begin_one();
  storage.on_call = [](Call call, const std::string&) {
    return FaultyStorage::Fault{call == Call::rename ? ENOSPC : 0, 0};
  };
  EXPECT_TRUE(work());
  EXPECT_FALSE(is_named());
  EXPECT_FALSE(work()) << "at once";
  add();
  storage.on_call = nullptr;
  now.us += 2'000'000;
  EXPECT_TRUE(work());
  EXPECT_TRUE(is_named());
  EXPECT_FALSE(log->sync().poisoned());
  ASSERT_TRUE(log->flush().ok());
  EXPECT_EQ(read_back(directory), written);
}

TEST_F(UnnamedSegmentTest, AFailedRenameIsNoFailedSync) {
  begin_one();
  storage.on_call = [](Call call, const std::string&) {
    return FaultyStorage::Fault{call == Call::rename ? ENOSPC : 0, 0};
  };
  EXPECT_FALSE(log->flush().ok());
  log->drop_before(first);
  EXPECT_TRUE(work());
  EXPECT_FALSE(log->sync().poisoned());
  EXPECT_EQ(log->durable_offset(), Offset{});
  storage.on_call = nullptr;
  now.us += 2'000'000;
  EXPECT_TRUE(work());
  EXPECT_EQ(segments(), std::vector{first.value}) << "what was dropped is gone";
  EXPECT_TRUE(log->flush().ok());
  EXPECT_EQ(log->durable_offset(), log->next_offset());
}

TEST_F(UnnamedSegmentTest, ADoubtfulOneIsNoSegment) {
  open();
  while (!storage.exists(next_path)) {
    add();
    work();
  }
  const auto empty = storage.bytes_of(next_path);
  const auto whole = written;
  log.reset();
  EXPECT_FALSE(*log::unnamed_segment(directory, {Offset{0}}, storage)) << "prepared, not begun";
  // A header with a first offset, and no batch behind it.
  log::SegmentPage page{};
  std::copy_n(empty.begin(), page.size(), page.begin());
  log::SegmentHeader header = *log::decode_segment_header(page).header;
  header.first_offset = {written.size()};
  const log::SegmentPage begun = log::encode_segment_header(header);
  std::copy(begun.begin(), begun.end(), storage.bytes_of(next_path).begin());
  EXPECT_FALSE(*log::unnamed_segment(directory, {Offset{0}}, storage));
  open();
  EXPECT_TRUE(log->recovery().clean()) << log->recovery().text();
  EXPECT_FALSE(storage.exists(next_path));
  EXPECT_EQ(read_back(directory), whole);
}

TEST_F(UnnamedSegmentTest, IsNotTakenForOneInTheMidstOfOthers) {
  begin_one();
  log.reset();
  EXPECT_TRUE(*log::unnamed_segment(directory, {Offset{0}}, storage));
  EXPECT_FALSE(*log::unnamed_segment(directory, {first}, storage));
  EXPECT_FALSE(*log::unnamed_segment(directory, {first + 1}, storage));
}

TEST_F(UnnamedSegmentTest, IsSeenByReadersThatChangeNothing) {
  begin_one();
  log.reset();
  const auto before = all_below(directory);
  Keeper keeper;
  EXPECT_EQ(inspect(keeper).damages, 0U) << keeper.text();
  EXPECT_EQ(keeper.messages, written);
  auto view = queue::ViewEngine::open(directory, storage).value_or_throw();
  EXPECT_EQ(view->next_offset(), Offset{written.size()});
  const auto taken = log::snapshot_log(directory, "/backup/1", storage);
  ASSERT_TRUE(taken.ok()) << taken.error().text();
  EXPECT_EQ(before, all_below(directory));
  EXPECT_EQ(read_back("/backup/1"), written);
  open();
  ASSERT_TRUE(view->refresh().ok());
  add();
  ASSERT_TRUE(view->refresh().ok());
  EXPECT_EQ(view->next_offset(), Offset{written.size()});
}

TEST_F(UnnamedSegmentTest, IsReadByAViewAlsoAfterItGotItsName) {
  begin_one();
  auto view = queue::ViewEngine::open(directory, storage).value_or_throw();
  ASSERT_TRUE(work());
  ASSERT_TRUE(is_named() && storage.exists(next_path));
  EXPECT_EQ(read_all_of(*view), written);
  add();
  ASSERT_TRUE(view->refresh().ok());
  EXPECT_EQ(read_all_of(*view), written);
}

TEST_F(UnnamedSegmentTest, IsFoundByATimeInAView) {
  begin_one();
  now.us += 1'000'000;
  const Timestamp late = now;
  const Offset wanted = log->next_offset();
  add();
  auto view = queue::ViewEngine::open(directory, storage).value_or_throw();
  ASSERT_TRUE(is_unnamed());
  const auto node = view->node_of(first);
  ASSERT_EQ(node->first_offset(), first);
  const auto index = view->views().index(node);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(index->find(late)->offset, first);
  EXPECT_EQ(view->resolve(Start::at(late)).value_or_throw(), wanted);
}

TEST_F(UnnamedSegmentTest, IsReadByAViewAfterDamageToo) {
  begin_one();
  auto view = queue::ViewEngine::open(directory, storage).value_or_throw();
  ASSERT_EQ(view->next_offset(), log->next_offset());
  flip(next_path, log::segment_header_bytes + batch_layout::header_bytes + 100);
  ASSERT_TRUE(is_unnamed());
  queue::ReaderState reader(*view);
  reader.place(first);
  EXPECT_EQ(reader.take(1).error().code, ErrorCode::corrupt);
  for (Offset next = first + 1; next < log->next_offset(); next = next + 1) {
    const auto message = reader.take(1);
    ASSERT_TRUE(message.ok() && !message->empty()) << next.value;
    EXPECT_EQ(message->front().text(), written[next.value]);
  }
}

/// A visitor. During its calls the log's thread names the segment and prepares the next one.
class WorksMeanwhile final : public log::LogVisitor {
 public:
  explicit WorksMeanwhile(std::function<void()> work) : work_(std::move(work)) {}
  bool on_segment(const log::SurveyedSegment& segment) override {
    if (work_) std::exchange(work_, nullptr)();
    return keeper.on_segment(segment);
  }
  bool on_batch(const log::ScannedBatch& batch, const BatchView& view) override {
    return keeper.on_batch(batch, view);
  }
  bool on_finding(const log::Finding& finding) override { return keeper.on_finding(finding); }
  bool on_summary(const log::SegmentSummary& summary) override { return keeper.on_summary(summary); }
  Keeper keeper;

 private:
  std::function<void()> work_;
};

TEST_F(UnnamedSegmentTest, IsInspectedWhenItIsRenamedInTheMeantime) {
  begin_one();
  WorksMeanwhile visitor([&] { EXPECT_TRUE(work()); });
  const auto totals = log::inspect_log(directory, storage, {}, visitor).value_or_throw();
  ASSERT_TRUE(is_named() && storage.exists(next_path));
  EXPECT_EQ(totals.next_offset, Offset{written.size()});
  EXPECT_EQ(visitor.keeper.messages, written);
}

TEST_F(UnnamedSegmentTest, IsSurveyedAlsoWhenItGetsItsNameAfterTheListing) {
  begin_one();
  storage.on_call = [&, named = false](Call call, const std::string& path) mutable {
    if (call == Call::open && path == next_path && !std::exchange(named, true)) {
      EXPECT_TRUE(work());
    }
    return FaultyStorage::Fault{};
  };
  Keeper keeper;
  inspect(keeper);
  ASSERT_TRUE(is_named());
  EXPECT_EQ(keeper.messages, written);
}

// At each storage call of a reader in turn, the log appends two more segments and begins the next one, which
// has no name yet.
TEST_F(UnnamedSegmentTest, IsNeverShownWithoutThoseBeforeIt) {
  for (const bool viewed : {true, false}) {
    bool went_on = true;
    for (int at = 1; went_on; ++at) {
      log.reset();
      written.clear();
      for (const auto& path : storage.paths()) ASSERT_TRUE(storage.unlink(path).ok());
      ASSERT_NO_FATAL_FAILURE(begin_one());
      const Messages before = written;
      went_on = false;
      storage.on_call = [&, calls = 0](Call, const std::string&) mutable {
        if (++calls != at) return FaultyStorage::Fault{};
        went_on = true;
        for (int more = 0; more < 2; ++more) {
          EXPECT_TRUE(work());
          while (!is_unnamed()) add();
        }
        return FaultyStorage::Fault{};
      };
      Messages seen;
      if (viewed) {
        const auto view = queue::ViewEngine::open(directory, storage).value_or_throw();
        storage.on_call = nullptr;
        seen = read_all_of(*view);
      } else {
        Keeper keeper;
        EXPECT_EQ(inspect(keeper).damages, 0U) << keeper.text();
        seen = keeper.messages;
      }
      storage.on_call = nullptr;
      ASSERT_LE(before.size(), seen.size()) << at;
      ASSERT_EQ(seen, Messages(written.begin(), std::next(written.begin(), static_cast<int>(seen.size()))))
          << at;
    }
  }
}

TEST_F(UnnamedSegmentTest, IsCopiedWhenItIsRenamedInTheMeantime) {
  for (const std::string to : {"/backup/1", "/new"}) {
    written.clear();
    options.directory = "/topics/" + std::to_string(to.size());
    log.reset();
    ASSERT_NO_FATAL_FAILURE(open());
    do {
      ASSERT_LT(written.size(), 1000U);
      written[log->next_offset().value] = std::string(3000, 'x');
      ASSERT_EQ(append({std::string(3000, 'x')}), log::AppendOutcome::appended);
      if (storage.exists(log->segments().active().path())) work();
    } while (storage.exists(log->segments().active().path()));
    storage.on_call = [&, named = false](Call call, const std::string& path) mutable {
      if (call == Call::open && path.starts_with(to) && path.find(".seg") != std::string::npos &&
          !std::exchange(named, true)) {
        EXPECT_TRUE(work());
      }
      return FaultyStorage::Fault{};
    };
    if (to == "/new") {
      const auto repaired = log::repair_to(options.directory, to, {}, storage);
      EXPECT_TRUE(repaired.ok()) << repaired.error().text();
    } else {
      const auto taken = log::snapshot_log(options.directory, to, storage);
      EXPECT_TRUE(taken.ok()) << taken.error().text();
    }
    storage.on_call = nullptr;
    EXPECT_TRUE(storage.exists(log->segments().active().path()));
    EXPECT_EQ(read_back(to), written) << to;
  }
}

TEST_F(UnnamedSegmentTest, IsNotRemovedIfItCannotBeOpened) {
  begin_one();
  log.reset();
  storage.on_call = [&](Call call, const std::string& path) {
    return FaultyStorage::Fault{call == Call::open && path == next_path ? EMFILE : 0, 0};
  };
  EXPECT_FALSE(log::SegmentLog::open(options, storage, *pool, now).ok());
  storage.on_call = nullptr;
  EXPECT_EQ(read_back(directory), written);
}

TEST_F(UnnamedSegmentTest, IsKeptByARepair) {
  begin_one();
  log.reset();
  flip(segment_path(0), 5000);
  ASSERT_TRUE(log::repair_to(directory, "/new", {}, storage).ok());
  EXPECT_TRUE(storage.exists("/new/" + log::segment_name(first)));
  const auto repaired = read_back("/new");
  ASSERT_TRUE(log::repair_in_place(directory, {}, storage).ok());
  EXPECT_TRUE(is_named());
  EXPECT_EQ(repaired, read_back(directory));
  EXPECT_LT(repaired.size(), written.size());
  EXPECT_EQ(repaired.count(first.value), 1U);
  EXPECT_EQ(reopened_next, Offset{written.size()});
}

}  // namespace
}  // namespace lightq::test
