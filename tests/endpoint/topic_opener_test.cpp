/// Tests of TopicOpener: the producers, cursors and logs that a topic has after a start.
#include "topic/reactor/topic_opener.hpp"
#include "log/format/restored_mark.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "log/tools/segment_copy.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"
#include "support/golden_files.hpp"
#include "support/storage_keys.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using test::FaultyStorage;

class RememberingSink final : public LogSink {
 public:
  void write(LogLevel level, std::string_view line) override {
    EXPECT_EQ(level, LogLevel::warn);
    lines.emplace_back(line);
  }
  std::vector<std::string> lines;
};

class TopicOpenerTest : public testing::Test {
 protected:
  Result<FoundTopic> try_open(BrokerType type = BrokerType::file) {
    sink.lines.clear();
    TopicDefinition definition{{1}, *TopicName::parse("orders"), {}};
    definition.settings.broker_type = type;
    return TopicOpener(storage, pool).open(definition, {.topics_directory = "/topics"}, now, sink);
  }
  void open(BrokerType type = BrokerType::file) {
    topic = {};
    auto opened = try_open(type);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    topic = std::move(*opened);
  }
  void send(std::uint64_t begin) {
    auto batch = test::make_batch_of_producer(5, 0, begin, {"message"});
    ASSERT_EQ(topic.log->append(batch, now).outcome, log::AppendOutcome::appended);
    topic.producers->stored({{5, 0}, begin, 1}, now);
    ASSERT_TRUE(topic.log->flush().ok());
  }
  void save() {
    now.us += 1'000'000;
    auto taken = topic.producers->take_save(LogEnds::of(*topic.log), now);
    ASSERT_TRUE(taken);
    ASSERT_TRUE(topic.producer_file->write(std::move(*taken)).ok());
    topic.producers->saved(true);
  }
  /// Writes two producer files, then a message that neither covers.
  void fill() {
    open();
    topic.producers->open({}, 5, now);
    for (const std::uint64_t begin : {0U, 1U}) {
      send(begin);
      save();
    }
    send(2);
  }
  void save_cursor_at(std::uint64_t offset) {
    ASSERT_TRUE(topic.cursor_file->write(log::CursorFile::encode({{"group:g", {offset}, {}}})).ok());
  }
  /// Returns the cursors without those that mark where the log's lives begin.
  static std::vector<log::NamedCursor> of_consumers(std::vector<log::NamedCursor> cursors) {
    std::erase_if(cursors, [](const auto& each) { return each.name.starts_with(LogLives::cursor_prefix); });
    return cursors;
  }
  [[nodiscard]] bool warned_of(const std::string& what) const {
    return sink.lines.size() == 1 && sink.lines.front().rfind("topic orders: ", 0) == 0 &&
           sink.lines.front().find(what) != std::string::npos;
  }

  FaultyStorage storage;
  log::SegmentPool pool{{"/pool"}, storage};
  RememberingSink sink;
  Timestamp now{1'000'000'000'000};
  FoundTopic topic;
  const std::string files[2] = {"/topics/1/producers.0", "/topics/1/producers.1"};
};

TEST_F(TopicOpenerTest, ATopicOfAFewMessagesUsesLittleDiskAndGrowsQuickly) {
  open();
  topic.producers->open({}, 5, now);
  for (std::uint64_t at = 0; at < 10; ++at) send(at);
  EXPECT_EQ(topic.log->held_bytes(), limits::segment_bytes_first);
  EXPECT_LE(topic.log->held_bytes(), 64 * limits::KiB);
  std::uint64_t rolls = 0;
  std::uint64_t held = topic.log->held_bytes();
  for (std::uint64_t at = 10; topic.log->stored_bytes() < 2 * limits::MiB; ++at) {
    auto batch = test::make_batch_of_producer(5, 0, at, {std::string(1000, 'x')});
    ASSERT_EQ(topic.log->append(batch, now).outcome, log::AppendOutcome::appended);
    rolls += std::exchange(held, topic.log->held_bytes()) == held ? 0 : 1;
  }
  EXPECT_LE(rolls, 4U) << "16 KiB, 64 KiB, 256 KiB, 1 MiB, 2 MiB";
}

TEST_F(TopicOpenerTest, ProducersAreKnownAfterAStart) {
  for (const BrokerType type : {BrokerType::file, BrokerType::queue_file}) {
    fill();
    open(type);
    ASSERT_NE(topic.producers->find(5), nullptr);
    EXPECT_EQ(topic.producers->find(5)->expected, 3U);
    EXPECT_TRUE(sink.lines.empty());
    ASSERT_TRUE(topic.segments->destroy().ok());
    EXPECT_FALSE(storage.exists(files[0]) || storage.exists(files[1]));
  }
}

TEST_F(TopicOpenerTest, CursorsPastTheLogsEndAreCutOnTheDiskBeforeAnythingIsAppended) {
  fill();  // three messages
  const log::NamedCursor within{"group:a", {2}, {}};
  ASSERT_TRUE(
      topic.cursor_file
          ->write(log::CursorFile::encode(
              {within, {"group:b", {9}, {}}, {"own:c", {1}, log::unfinished_between({1}, {{{2}, {7}}})}}))
          .ok());
  topic = {};
  open();
  EXPECT_TRUE(warned_of("group:b was at message 9, but the log ends at 3"));
  log::CursorFile on_disk(storage, "/topics/1");
  const auto found = on_disk.load();
  ASSERT_TRUE(found.ok());
  const std::vector<log::NamedCursor> cut{
      within, {"group:b", {3}, {}}, {"own:c", {1}, log::unfinished_between({1}, {{{2}, {3}}})}};
  EXPECT_EQ(of_consumers(*found), cut);
  EXPECT_EQ(of_consumers(topic.stored), cut);
  EXPECT_EQ(topic.stored, *found);
}

// Cursors beyond the end of the log are cut. A topic that opened before the cut is on disk would count later
// messages with those offsets as acknowledged after a crash.
TEST_F(TopicOpenerTest, NoTopicOpensBeforeItsCutCursorsAreOnTheDisk) {
  for (const int error : {EIO, ENOSPC, EMFILE}) {
    bool failed = true;
    for (int n = 0; failed; ++n) {
      fill();  // three messages
      save_cursor_at(9);
      topic = {};
      failed = false;
      storage.on_call = [&, left = n](FaultyStorage::Call call, const std::string& path) mutable {
        const bool counts = call != FaultyStorage::Call::read && path.find("/cursors.") != path.npos;
        if (!counts || left-- != 0) return FaultyStorage::Fault{};
        failed = true;
        return FaultyStorage::Fault{error, 0};
      };
      {
        const auto opened = try_open();
        EXPECT_EQ(opened.ok(), !failed) << "call " << n;
        EXPECT_EQ(opened ? 0 : opened.error().system_error, failed ? error : 0) << "call " << n;
      }
      storage.on_call = nullptr;
      open();
      for (std::uint64_t at = 3; at < 9; ++at) send(at);
      topic = {};
      storage.power_cut([] { return false; });
      open();
      EXPECT_EQ(topic.log->next_offset(), Offset{9});
      ASSERT_EQ(of_consumers(topic.stored).size(), 1U);
      EXPECT_EQ(topic.stored.front().offset, Offset{3}) << "call " << n;
      ASSERT_TRUE(topic.segments->destroy().ok());
      topic = {};
    }
  }
}

// The start that cut the cursors could not sync them. So the system has the cut cursors, but the disk has
// not.
TEST_F(TopicOpenerTest, CutCursorsThatWereNeverSyncedAreWrittenAgain) {
  fill();
  save_cursor_at(9);
  save_cursor_at(9);  // in both files
  topic = {};
  storage.on_call = [](FaultyStorage::Call call, const std::string& path) {
    const bool fails = call == FaultyStorage::Call::sync && path.find("/cursors.0") != path.npos;
    return FaultyStorage::Fault{fails ? EIO : 0, 0};
  };
  EXPECT_EQ(try_open().error().system_error, EIO);
  storage.on_call = nullptr;
  open();
  EXPECT_EQ(topic.stored.front().offset, Offset{3});
  send(3);
  topic = {};
  storage.power_cut([] { return false; });
  EXPECT_EQ(log::CursorFile(storage, "/topics/1").load()->front().offset, Offset{3});
}

// A consumer may have seen messages after the end that a crash removed from the log. Other messages get their
// offsets, so the log needs another incarnation.
TEST_F(TopicOpenerTest, AnUnclosedLogBeginsANewLife) {
  for (const BrokerType type : {BrokerType::file, BrokerType::queue_file}) {
    open(type);
    const std::uint64_t first = topic.lives.incarnation();
    topic.producers->open({}, 5, now);
    for (const std::uint64_t at : {0U, 1U, 2U}) send(at);
    auto lost = test::make_batch({"in memory only, in a queue_file topic"});
    ASSERT_EQ(topic.log->append(lost, now).outcome, log::AppendOutcome::appended);
    open(type);  // as after a kill
    const std::uint64_t end = type == BrokerType::file ? 4 : 3;
    EXPECT_EQ(topic.log->next_offset(), Offset{end});
    const std::uint64_t second = topic.lives.incarnation();
    EXPECT_NE(second, first);
    EXPECT_EQ(topic.lives.same_up_to(first), Offset{end});
    EXPECT_EQ(log::CursorFile(storage, "/topics/1").load().value_or_throw(), topic.stored);
    ASSERT_TRUE(topic.log->close().ok());
    open(type);
    EXPECT_EQ(topic.lives.incarnation(), second) << "it was closed";
    send(3);
    topic = {};
    storage.power_cut([] { return false; });
    open(type);
    EXPECT_NE(topic.lives.incarnation(), second);
    EXPECT_EQ(topic.lives.same_up_to(second), topic.log->next_offset());
    EXPECT_EQ(topic.lives.same_up_to(first), Offset{end});
    EXPECT_TRUE(sink.lines.empty());
    ASSERT_TRUE(topic.segments->destroy().ok());
  }
}

TEST_F(TopicOpenerTest, ALifeThatCannotBeWrittenIsShownToNoClient) {
  fill();
  const std::uint64_t first = topic.lives.incarnation();
  topic = {};
  storage.on_call = [](FaultyStorage::Call call, const std::string& path) {
    const bool fails = call == FaultyStorage::Call::write && path.find("/cursors.") != path.npos;
    return FaultyStorage::Fault{fails ? ENOSPC : 0, 0};
  };
  open();
  storage.on_call = nullptr;
  EXPECT_TRUE(warned_of("consumers without a named cursor begin anew"));
  const std::uint64_t hidden = topic.lives.incarnation();
  EXPECT_NE(hidden, first);
  EXPECT_EQ(topic.lives.cursors().size(), 1U) << "to be written with the next cursors";
  EXPECT_TRUE(of_consumers(topic.stored).size() == topic.stored.size()) << "and known not to be there yet";
  open();
  EXPECT_EQ(topic.lives.same_up_to(hidden), std::nullopt);
}

TEST_F(TopicOpenerTest, ATransientTopicKeepsThemInMemory) {
  for (const BrokerType type : {BrokerType::queue, BrokerType::direct}) {
    open(type);
    topic.producers->open({}, 5, now);
    EXPECT_TRUE(topic.producers->is_settled(topic.producers->change()));
    EXPECT_FALSE(topic.producers->wants_save());
    EXPECT_EQ(topic.producer_file, nullptr);
  }
  EXPECT_TRUE(storage.paths().empty());
}

TEST_F(TopicOpenerTest, AnOlderCopyIsNamedAndAsGood) {
  fill();
  storage.bytes_of(files[1]).back() ^= std::byte{1};
  open();
  EXPECT_TRUE(warned_of("using an older copy of its producers, because the newest is damaged: " + files[1] +
                        ": position 12"))
      << sink.lines[0];
  EXPECT_EQ(topic.producers->find(5)->expected, 3U);
}

TEST_F(TopicOpenerTest, WithoutASoundFileNoProducerIsKnownAndTheFilesAreRemoved) {
  fill();
  for (const auto& file : files) storage.bytes_of(file).back() ^= std::byte{1};
  open();
  EXPECT_TRUE(warned_of("the broker has forgotten producers"));
  EXPECT_EQ(topic.producers->find(5), nullptr);
  EXPECT_FALSE(storage.exists(files[0]) || storage.exists(files[1]));
  open();
  EXPECT_TRUE(sink.lines.empty());
  EXPECT_EQ(topic.producers->find(5), nullptr);
}

// The log may reach that offset again with other messages.
TEST_F(TopicOpenerTest, AFileThatKnowsMoreThanTheLogIsGoneBeforeAnythingIsAppended) {
  fill();
  topic = {};
  for (const auto& path : storage.paths()) {
    if (!path.ends_with(".seg")) continue;
    ASSERT_TRUE(storage.unlink(path).ok());
  }
  open();
  EXPECT_TRUE(warned_of("the log ended at 2, but the log ends at 0"));
  storage.power_cut([] { return false; });
  EXPECT_FALSE(storage.exists(files[0]) || storage.exists(files[1]));
}

TEST_F(TopicOpenerTest, FilesOfAnotherVersionKeepTheTopicClosed) {
  fill();
  for (const auto& file : files) storage.bytes_of(file)[8] = std::byte{3};
  topic = {};
  const auto opened = try_open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::foreign_format);
  EXPECT_NE(opened.error().message.find("producers.0: position 8: "), std::string::npos)
      << opened.error().message;
  EXPECT_TRUE(storage.exists(files[0]) && storage.exists(files[1]));
}

// The log of the killed process could be opened, but it stays unchanged too.
TEST_F(TopicOpenerTest, FilesOfANewerVersionKeepTheTopicUnchanged) {
  for (const std::string name : {"cursors.0", "cursors.1", "producers.0", "producers.1"}) {
    fill();
    save_cursor_at(1);
    topic = {};
    const std::string path = "/topics/1/" + name;
    ASSERT_TRUE(storage.open(path, log::OpenMode::create).ok());
    const auto good =
        std::exchange(storage.bytes_of(path), test::newer_file(name.substr(0, name.size() - 2)));
    auto& segment = storage.bytes_of("/topics/1/" + log::segment_name({0}));
    segment.at(segment.size() - 100) = std::byte{1};  // a start would wipe this byte
    std::map<std::string, std::vector<std::byte>> before;
    for (const auto& each : storage.paths()) before[each] = storage.bytes_of(each);
    const auto opened = try_open();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::foreign_format);
    EXPECT_EQ(opened.error().message.rfind(path + ": position 8: ", 0), 0U) << opened.error().message;
    EXPECT_NE(opened.error().message.find("a newer version of LightQ wrote it"), std::string::npos);
    for (const auto& each : storage.paths()) EXPECT_EQ(storage.bytes_of(each), before[each]) << each;
    EXPECT_EQ(storage.paths().size(), before.size());
    for (const auto& each : storage.paths()) {
      if (each.starts_with("/topics/")) storage.unlink(each).value_or_throw();
    }
  }
}

TEST_F(TopicOpenerTest, AnEncryptedTopicNeedsAKey) {
  TopicDefinition definition{{1}, *TopicName::parse("orders"), {}};
  definition.settings.encrypt_at_rest = true;
  std::deque<TopicOpener> openers;  // must outlive the topics
  const auto opened_with = [&](BrokerType type, const log::BatchCiphers* keys) {
    definition.settings.broker_type = type;
    TopicOpener& opener = openers.emplace_back(storage, pool);
    if (keys != nullptr) opener.encrypt_with(*keys);
    return opener.open(definition, {.topics_directory = "/topics"}, now, sink);
  };
  const auto keys = test::storage_keys({1});
  const auto others = test::storage_keys({2});
  for (const BrokerType type : {BrokerType::file, BrokerType::queue_file}) {
    const auto bare = opened_with(type, nullptr);
    ASSERT_FALSE(bare.ok());
    EXPECT_EQ(bare.error().code, ErrorCode::not_supported);
    EXPECT_NE(bare.error().message.find("storage_key_file"), std::string::npos);
    EXPECT_FALSE(storage.exists("/topics/1/" + log::segment_name({0})));
    auto opened = opened_with(type, keys.get());
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    topic = std::move(*opened);
    send(0);
    for (const auto& path : storage.paths())
      EXPECT_EQ(as_text(storage.bytes_of(path)).find("message"), std::string_view::npos) << path;
    topic = {};
    EXPECT_EQ(opened_with(type, others.get()).error().code, ErrorCode::not_supported);
    EXPECT_EQ(try_open(type).error().code, ErrorCode::not_supported) << "the topic says that it is in clear";
    opened = opened_with(type, keys.get());
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    topic = std::move(*opened);
    EXPECT_EQ(topic.log->next_offset(), Offset{1});
    ASSERT_TRUE(topic.segments->destroy().ok());
    topic = {};
  }
}

TEST_F(TopicOpenerTest, ADiskThatCannotReadThemKeepsTheTopicClosed) {
  fill();
  topic = {};
  storage.on_read = [&](const std::string& path, std::uint64_t, std::size_t) {
    return path.find("producers") != path.npos;
  };
  EXPECT_EQ(try_open().error().code, ErrorCode::io_error);
  storage.on_read = nullptr;
  open();
  EXPECT_EQ(topic.producers->find(5)->expected, 3U);
}

// A copy ends before the original, whose later messages clients have seen.
TEST_F(TopicOpenerTest, ARestoredLogBeginsAnotherLifeAtItsEnd) {
  fill();  // three messages
  ASSERT_TRUE(topic.log->close().ok());
  open();
  const std::uint64_t before = topic.lives.incarnation();
  ASSERT_TRUE(topic.log->close().ok());
  topic = {};
  ASSERT_TRUE(log::mark_restored("/topics/1", storage).ok());
  storage.power_cut([] { return false; });
  open();
  const std::uint64_t restored = topic.lives.incarnation();
  EXPECT_NE(restored, before);
  EXPECT_EQ(topic.lives.same_up_to(before), Offset{3});
  EXPECT_FALSE(log::is_marked_restored("/topics/1", storage));
  send(3);
  ASSERT_TRUE(topic.log->close().ok());
  open();
  EXPECT_EQ(topic.lives.incarnation(), restored);
  EXPECT_EQ(topic.lives.same_up_to(before), Offset{3});
}

// Otherwise a start that failed to write would leave a copy that counts as the original.
TEST_F(TopicOpenerTest, AMarkOfARestoreStaysUntilItsLifeIsOnTheDisk) {
  fill();
  ASSERT_TRUE(topic.log->close().ok());
  topic = {};
  ASSERT_TRUE(log::mark_restored("/topics/1", storage).ok());
  storage.on_call = [](FaultyStorage::Call call, const std::string& path) -> FaultyStorage::Fault {
    const bool fails = call == FaultyStorage::Call::write && path.find("cursors") != std::string::npos;
    return {fails ? ENOSPC : 0, 0};
  };
  EXPECT_FALSE(try_open().ok()) << "it would not know later where the lost messages began";
  storage.on_call = nullptr;
  EXPECT_TRUE(log::is_marked_restored("/topics/1", storage));
  open();
  EXPECT_FALSE(log::is_marked_restored("/topics/1", storage));
}

}  // namespace
}  // namespace lightq::broker
