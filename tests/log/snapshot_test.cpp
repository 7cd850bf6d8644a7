/// Tests copying a log while it is written.
#include "log/tools/snapshot.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "log/carried/carried_log.hpp"
#include "log/format/restored_mark.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/producer_slots.hpp"
#include "log/tools/segment_copy.hpp"
#include "support/tool_fixture.hpp"

namespace lightq::test {
namespace {

using Call = FaultyStorage::Call;

class SnapshotTest : public ToolFixture {
 protected:
  log::SnapshotReport snapshot() {
    const auto report = log::snapshot_log(directory, "/backup/1", storage);
    EXPECT_TRUE(report.ok()) << report.error().text();
    return report ? *report : log::SnapshotReport{};
  }
  /// Returns the messages of the snapshot, which must be sound.
  Messages content() {
    Keeper keeper;
    EXPECT_EQ(inspect(keeper, "/backup/1").damages, 0U) << keeper.text();
    EXPECT_EQ(keeper.messages.size(), distance(first, last)) << "not without gaps";
    return keeper.messages;
  }
  void check(const log::SnapshotReport& report) {
    first = report.first_offset;
    last = report.next_offset;
    const Messages held = content();
    for (const auto& [offset, payload] : held) EXPECT_EQ(payload, written.at(offset)) << offset;
  }

  Offset first;
  Offset last;
};

TEST_F(SnapshotTest, LinksSealedSegmentsAndCopiesTheActiveOne) {
  fill(98);
  const auto report = snapshot();
  check(report);
  EXPECT_EQ(content(), written);
  EXPECT_EQ(report.linked, segments().size() - 1);
  EXPECT_EQ(report.segments, segments().size());
  EXPECT_EQ(*storage.link_count(segment_path(0)), 2U);
  EXPECT_EQ(*storage.link_count(segment_path(segments().back())), 1U);
  EXPECT_EQ(read_back("/backup/1"), written);
}

TEST_F(SnapshotTest, CopiesCarriedMessages) {
  fill(98);
  log::SegmentLogOptions carried_options;
  carried_options.directory = directory;
  const auto open_copies = [&](const std::string& of) {
    carried_options.directory = of;
    return log::CarriedLog::open(carried_options, 0, {1000}, storage, *pool, now).value_or_throw();
  };
  {
    const auto carried = open_copies(directory);
    auto copy = make_batch({"carried"});
    stamp_batch(copy, {5}, now, 0);
    ASSERT_TRUE(carried->add(copy));
  }
  check(snapshot());
  const auto carried = open_copies("/backup/1");
  const log::ReadResult found = carried->find({5}, {1000});
  ASSERT_EQ(found.outcome, log::ReadOutcome::batch);
  EXPECT_EQ(payloads_of(found.batch), std::vector<std::string>{"carried"});
}

TEST_F(SnapshotTest, OfATopicContainsItsDelayedMessages) {
  fill(98);
  // Any log serves as the schedule.
  ASSERT_TRUE(log::snapshot_log(directory, directory + "/delayed", storage));
  const auto report = log::snapshot_topic(directory, "/backup/1", storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  check(*report);
  EXPECT_EQ(content(), written);
  EXPECT_EQ(read_back("/backup/1/delayed"), written);
}

// A topic's snapshot has its name only when it is complete, and after an error nothing stays.
TEST_F(SnapshotTest, OfATopicIsCompleteOrIsNotThere) {
  fill(98);
  ASSERT_TRUE(log::snapshot_log(directory, directory + "/delayed", storage));
  ASSERT_TRUE(log::snapshot_log(directory, directory + "/carried", storage));
  const auto parts_at = [&](const std::string& path) {
    return storage.list(path + "/delayed").ok() + storage.list(path + "/carried").ok();
  };
  bool done = false;
  for (int failing = 0; !done; ++failing) {
    int calls = 0;
    storage.on_call = [&](Call, const std::string&) -> FaultyStorage::Fault {
      return {calls++ == failing ? EIO : 0, 0};
    };
    done = log::snapshot_topic(directory, "/backup/1", storage).ok();
    storage.on_call = nullptr;
    ASSERT_LT(failing, 10'000);
    if (done && failing < calls) {  // that error cost nothing
      ASSERT_EQ(parts_at("/backup/1"), 2);
      remove_files("/backup/1", storage);
      done = false;
    }
    if (!done) {
      ASSERT_TRUE(all_below("/backup").empty()) << failing << ": " << all_below("/backup").begin()->first;
    }
  }
  EXPECT_EQ(parts_at("/backup/1"), 2);
  EXPECT_EQ(read_back("/backup/1/delayed"), written);
  EXPECT_EQ(all_below("/backup"), all_below("/backup/1"));
}

TEST_F(SnapshotTest, CountsTheDamagesOfAllParts) {
  fill(98);
  for (const std::string part : {"/delayed", "/carried"}) {
    ASSERT_TRUE(log::snapshot_log(directory, directory + part, storage));
    auto& bytes = storage.bytes_of(directory + part + "/" + log::segment_name({segments().back()}));
    bytes[20] ^= std::byte{1};  // of the header
  }
  const auto report = log::snapshot_topic(directory, "/backup/1", storage);
  ASSERT_TRUE(report.ok()) << report.error().text();
  EXPECT_EQ(report->damages, 2U);
}

TEST_F(SnapshotTest, StaysUnchangedWhenTheLogChanges) {
  options.retention_messages = 10;
  fill(98);
  check(snapshot());
  const Messages before = content();
  for (int round = 0; round < 10; ++round) {
    log->maintain(now);
    while (work()) now.us += 1'000'000;
    fill(40);
  }
  EXPECT_FALSE(storage.exists(segment_path(0)));
  EXPECT_EQ(content(), before);
}

TEST_F(SnapshotTest, CopiesIfTheFileSystemCannotLink) {
  fill(98);
  for (const int error : {EXDEV, EPERM, EMLINK}) {
    storage.on_call = [error](Call call, const std::string&) -> FaultyStorage::Fault {
      return {call == Call::link ? error : 0, 0};
    };
    const auto report = snapshot();
    storage.on_call = nullptr;
    EXPECT_EQ(report.linked, 0U);
    check(report);
    EXPECT_EQ(content(), written);
    for (const auto& [path, bytes] : all_below("/backup")) ASSERT_TRUE(storage.unlink(path).ok());
  }
}

// At each storage call the log drops its oldest segments, or all segments except a new one.
TEST_F(SnapshotTest, HasNoGapWhileSegmentsAreDropped) {
  options.retention_messages = 1;
  for (const bool links : {true, false}) {
    bool reached_the_end = false;
    for (int drop_at = 1; !reached_the_end; ++drop_at) {
      fill(75);
      int calls = 0;
      bool dropping = false;
      storage.on_call = [&](Call call, const std::string&) -> FaultyStorage::Fault {
        if (!dropping && ++calls == drop_at) {
          dropping = true;
          fill(40);
          log->maintain(now);
          while (work()) now.us += 1'000'000;
        }
        return {!dropping && !links && call == Call::link ? EXDEV : 0, 0};
      };
      const auto report = snapshot();
      storage.on_call = nullptr;
      reached_the_end = calls < drop_at;
      check(report);
      EXPECT_GT(report.next_offset.value, 0U);
      EXPECT_GE(report.next_offset.value + 40, written.size());
      for (const auto& [path, bytes] : all_below("/backup")) ASSERT_TRUE(storage.unlink(path).ok());
    }
  }
}

TEST_F(SnapshotTest, ContainsOnlyCompleteBatches) {
  fill(12);
  auto& bytes = storage.bytes_of(segment_path(0));
  const std::size_t end = log::segment_header_bytes + 2 * (64 + 5 * 3004) + 64 + 2 * 3004;
  bytes.at(end - 1) ^= std::byte{1};  // the last byte of the last batch has not arrived yet
  check(snapshot());
  EXPECT_EQ(content().size(), 10U);
}

// A backup copies the states of many topics before the first log.
TEST_F(SnapshotTest, InTwoStepsHasTheStateOfTheFirstAndTheLogOfTheSecond) {
  fill(50);
  log::CursorFile cursors(storage, directory);
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {42}}})).ok());
  log::TopicCopy copy(directory, "/backup/1", storage);
  ASSERT_TRUE(copy.take_state());
  fill(48);
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {90}}})).ok());
  const auto report = copy.take_log(log::TopicCopy::Extent::topic);
  ASSERT_TRUE(report.ok()) << report.error().text();
  check(*report);
  EXPECT_EQ(content(), written);
  log::CursorFile copied(storage, "/backup/1");
  const auto loaded = copied.load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  ASSERT_EQ(loaded->size(), 1U);
  EXPECT_EQ(loaded->front().offset, Offset{42});
}

TEST_F(SnapshotTest, HasTheProducersIfItIsAskedForThemAndThereIsNoSchedule) {
  fill(20);
  const log::SlotFormat& format = log::producer_slot_format();
  log::SlotFile producers(storage, directory, log::producer_slots_name, format);
  ASSERT_TRUE(producers.write(log::SlotFile::make(format, 2, log::producer_layout::as_of_bytes, 0)).ok());
  const auto has_producers = [&](const std::string& output, log::TopicCopy::Extent extent) {
    log::TopicCopy copy(directory, output, storage);
    EXPECT_TRUE(copy.take_state());
    EXPECT_TRUE(copy.take_log(extent));
    const auto found = log::SlotFile(storage, output, log::producer_slots_name, format).load();
    EXPECT_TRUE(found.ok());
    return found && found->has_value();
  };
  EXPECT_TRUE(has_producers("/backup/1", log::TopicCopy::Extent::topic_with_producers));
  EXPECT_FALSE(has_producers("/backup/2", log::TopicCopy::Extent::topic));
  ASSERT_TRUE(log::snapshot_log(directory, directory + "/delayed", storage));
  EXPECT_FALSE(has_producers("/backup/3", log::TopicCopy::Extent::topic_with_producers));
}

TEST_F(SnapshotTest, ContainsTheCursorsThatAreNotAheadOfIt) {
  fill(98);
  log::CursorFile cursors(storage, directory);
  ASSERT_TRUE(
      cursors.write(log::CursorFile::encode({{"a", {42}, log::unfinished_between({42}, {{{50}, {60}}})}}))
          .ok());
  check(snapshot());
  log::CursorFile copy(storage, "/backup/1");
  EXPECT_EQ(*copy.load(),
            (std::vector<log::NamedCursor>{{"a", {42}, log::unfinished_between({42}, {{{50}, {60}}})}}));
}

TEST_F(SnapshotTest, IsMarkedAsRestored) {
  fill(12);
  snapshot();
  storage.power_cut([] { return false; });
  EXPECT_TRUE(log::is_marked_restored("/backup/1", storage));
  EXPECT_FALSE(log::is_marked_restored(directory, storage));
}

TEST_F(SnapshotTest, CopiesAndReportsTheDamageOfTheLog) {
  fill(98);
  flip(segment_path(segments().back()), log::segment_header_bytes + 70);
  const auto report = snapshot();
  EXPECT_EQ(report.damages, 1U);
  Keeper keeper;
  EXPECT_EQ(inspect(keeper, "/backup/1").damages, 1U) << keeper.text();
  EXPECT_EQ(keeper.messages.size(), 93U);
}

TEST_F(SnapshotTest, IsCompleteOrAbsentAfterAPowerCut) {
  fill(98);
  log::CursorFile cursors(storage, directory);
  ASSERT_TRUE(cursors.write(log::CursorFile::encode({{"a", {42}}})).ok());
  const auto report = snapshot();
  log.reset();
  storage.power_cut([] { return false; });
  check(report);
  EXPECT_EQ(content(), written);
  EXPECT_EQ(read_back(directory), written);
}

TEST_F(SnapshotTest, LeavesNothingBehindWhenAnyCallFails) {
  fill(98);
  const auto before = all_below("/");
  int fail_at = 1;
  for (bool failed = true; failed; ++fail_at) {
    int calls = 0;
    storage.on_call = [&](Call call, const std::string& path) -> FaultyStorage::Fault {
      const bool counts = call != Call::read && call != Call::unlink && path.starts_with("/backup");
      return {counts && ++calls == fail_at ? ENOSPC : 0, 0};
    };
    const auto report = log::snapshot_log(directory, "/backup/1", storage);
    storage.on_call = nullptr;
    failed = !report.ok();
    if (!failed) break;
    ASSERT_EQ(report.error().code, ErrorCode::no_space);
    // The last call syncs the directory into which the whole snapshot was renamed.
    const auto after = all_below("/");
    const bool renamed = storage.exists("/backup/1/" + log::segment_name({0}));
    ASSERT_TRUE(renamed || after == before) << fail_at;
    for (const auto& [path, bytes] : all_below("/backup")) ASSERT_TRUE(storage.unlink(path).ok());
  }
  EXPECT_GT(fail_at, 8);
}

// At each storage call somebody deletes the topic, as its broker does: its files from the oldest, then its
// directory.
TEST_F(SnapshotTest, OfALogThatIsDeletedMeanwhileFailsOrIsWhole) {
  int failed = 0;
  bool reached_the_end = false;
  for (int delete_at = 1; !reached_the_end; ++delete_at) {
    fill(75);
    int calls = 0;
    storage.on_call = [&](Call, const std::string&) -> FaultyStorage::Fault {
      if (log && ++calls == delete_at) {
        const auto deleted = std::exchange(log, nullptr);
        EXPECT_TRUE(deleted->destroy().ok());
      }
      return {};
    };
    const auto report = log::snapshot_log(directory, "/backup/1", storage);
    storage.on_call = nullptr;
    reached_the_end = log != nullptr;
    if (report) {
      EXPECT_EQ(report->next_offset.value - report->first_offset.value, 75U) << delete_at;
      check(*report);
    } else {
      ++failed;
      EXPECT_TRUE(log::is_missing(report.error())) << report.error().text();
      EXPECT_NE(report.error().message.find(directory), std::string::npos) << report.error().text();
      EXPECT_TRUE(all_below("/backup").empty()) << delete_at;
    }
    for (const auto& [path, bytes] : all_below("/backup")) ASSERT_TRUE(storage.unlink(path).ok());
    EXPECT_TRUE(!log || log->destroy().ok());
    log.reset();
    written.clear();
  }
  EXPECT_GT(failed, 5);
}

TEST_F(SnapshotTest, OfADirectoryThatIsNotThereFails) {
  const auto report = log::snapshot_log("/topics/none", "/backup/1", storage);
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(log::is_missing(report.error())) << report.error().text();
  EXPECT_NE(report.error().message.find("/topics/none"), std::string::npos) << report.error().text();
  EXPECT_TRUE(all_below("/backup").empty());
}

}  // namespace
}  // namespace lightq::test
