/// Tests of compacting the catalogue while it is in use: catalogue, catalogue_compaction and
/// catalogue_compactor in control/catalogue.
#include "control/catalogue/catalogue_compaction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>

#include "control/catalogue/commit_queue.hpp"
#include "control/catalogue_room.hpp"
#include "control/loop_thread.hpp"

namespace lightq::broker {
namespace {

using test::CatalogueRoom;
using test::name;
using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> records_of(const CatalogueState& state) {
  std::vector<std::string> lines;
  for (const auto& change : state.snapshot()) lines.push_back(encode(change));
  return lines;
}

std::uint64_t bytes_below(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory))
    bytes += file.is_regular_file() ? file.file_size() : 0;
  return bytes;
}

ClientKeyRecord client_key(TopicId topic, std::size_t number, std::uint64_t expires_ms) {
  ClientKeyRecord record;
  record.key[0] = static_cast<std::byte>(number);
  record.key[1] = static_cast<std::byte>(number >> 8U);
  record.grant = {topic, EndpointRole::produce};
  record.expires_ms = expires_ms;
  return record;
}

/// A catalogue with a topic. Its clients renew ten keys again and again.
class Renewing : public testing::Test {
 protected:
  void renew(std::size_t times) {
    for (std::size_t i = 0; i < times; ++i)
      ASSERT_TRUE(catalogue->put_client_key(client_key(topic, i % 10, ++expires_ms)).ok());
  }
  std::string generation(const std::string& which) { return room.path() + "/" + which; }
  /// Returns the records that another broker would find in a copy of the present directory.
  std::vector<std::string> found_after_a_kill() {
    CatalogueRoom other;
    std::filesystem::copy(room.path(), other.path(), std::filesystem::copy_options::recursive);
    const auto opened = other.open();
    EXPECT_THAT(other.sink.lines, testing::IsEmpty());
    return opened == nullptr ? std::vector<std::string>() : records_of(opened->state());
  }

  /// Runs a compaction that must fail. Checks that the present log stays in use and serves the next start.
  void expect_failure(const std::function<void(CatalogueCompaction&)>& run, const std::string& why) {
    renew(5000);
    ASSERT_TRUE(catalogue->is_mostly_history());
    const auto compaction = catalogue->begin_compaction();
    run(*compaction);
    catalogue->finish_compaction(*compaction);
    EXPECT_THAT(room.sink.lines, Contains(HasSubstr("not compacted: "))) << why;
    EXPECT_THAT(room.sink.lines, Contains(HasSubstr(why)));
    EXPECT_FALSE(catalogue->is_mostly_history()) << "not tried again at once";
    renew(1);
    ASSERT_TRUE(catalogue->flush().ok());
    EXPECT_TRUE(std::filesystem::exists(generation("00000001")));
    EXPECT_FALSE(std::filesystem::exists(generation("00000002")));
    EXPECT_FALSE(std::filesystem::exists(generation("00000002.new"))) << "a full disk is not made fuller";
    EXPECT_EQ(found_after_a_kill(), records_of(catalogue->state()));
  }

  CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue = room.open();
  const TopicId topic = catalogue->add_topic(name("orders"), {}, 0)->id;
  std::uint64_t expires_ms = 1'900'000'000'000;
};

TEST_F(Renewing, IsDueWhenMostRecordsAreObsoleteAndTheyAreMany) {
  renew(4000);
  EXPECT_FALSE(catalogue->is_mostly_history()) << "too little";
  renew(200);
  EXPECT_TRUE(catalogue->is_mostly_history());
  for (std::size_t i = 10; i < 4500; ++i)
    ASSERT_TRUE(catalogue->put_client_key(client_key(topic, i, expires_ms)).ok());
  EXPECT_FALSE(catalogue->is_mostly_history()) << "more than half is the state";
  renew(2000);
  EXPECT_TRUE(catalogue->is_mostly_history());
  const auto compaction = catalogue->begin_compaction();
  EXPECT_FALSE(catalogue->is_mostly_history()) << "it is under way";
  compaction->run({});
  catalogue->finish_compaction(*compaction);
  EXPECT_FALSE(catalogue->is_mostly_history());
}

TEST_F(Renewing, KeepsConcurrentChanges) {
  const auto credential = catalogue->add_credential("user", "x").value();
  const auto doomed = catalogue->add_topic(name("doomed"), {}, credential)->id;
  renew(100);
  const auto compaction = catalogue->begin_compaction();
  ASSERT_TRUE(catalogue->remove_topic(doomed).ok());
  catalogue->forget_removed_topic(doomed);
  const auto late = catalogue->add_credential("late", "y").value();
  ASSERT_TRUE(catalogue->add_topic(name("late"), {}, late).ok());
  renew(5);
  compaction->run({});
  renew(5);
  ASSERT_TRUE(catalogue->set_paused(topic, true).ok());
  catalogue->finish_compaction(*compaction);
  EXPECT_FALSE(catalogue->unflushed()) << "what waited for a flush has had one";
  ASSERT_TRUE(catalogue->add_topic(name("after"), {}, late).ok());
  ASSERT_TRUE(catalogue->flush().ok());
  const auto expected = records_of(catalogue->state());
  EXPECT_EQ(found_after_a_kill(), expected);
  catalogue.reset();
  catalogue = room.open();
  EXPECT_EQ(records_of(catalogue->state()), expected);
  EXPECT_TRUE(catalogue->state().find("orders")->definition.paused);
  EXPECT_EQ(catalogue->state().find("doomed"), nullptr);
  EXPECT_FALSE(std::filesystem::exists(generation("00000001")));
  EXPECT_TRUE(room.sink.lines.empty());
}

TEST_F(Renewing, AKillAtAnyMomentLeavesThePromisedState) {
  renew(5000);
  ASSERT_TRUE(catalogue->flush().ok());
  const auto compaction = catalogue->begin_compaction();
  EXPECT_EQ(found_after_a_kill(), records_of(catalogue->state())) << "nothing is written";
  compaction->run({});
  EXPECT_TRUE(std::filesystem::exists(generation("00000002.new")));
  EXPECT_EQ(found_after_a_kill(), records_of(catalogue->state())) << "the new one is not complete";
  renew(3);
  ASSERT_TRUE(catalogue->flush().ok());
  EXPECT_EQ(found_after_a_kill(), records_of(catalogue->state())) << "and lacks what has changed";
  // The state after the rename and before the removal of the old log: both exist.
  CatalogueRoom both;
  std::filesystem::create_directory(both.path());
  const auto recursively = std::filesystem::copy_options::recursive;
  std::filesystem::copy(generation("00000001"), both.path() + "/00000001", recursively);
  catalogue->finish_compaction(*compaction);
  std::filesystem::copy(generation("00000002"), both.path() + "/00000002", recursively);
  EXPECT_EQ(records_of(both.open()->state()), records_of(catalogue->state()));
  EXPECT_FALSE(std::filesystem::exists(both.path() + "/00000001"));
  EXPECT_EQ(found_after_a_kill(), records_of(catalogue->state()));
}

TEST_F(Renewing, ContinuesWithTheOldLogOnAFullDisk) {
  catalogue.reset();
  auto options = room.options();
  options.open_log = [usual = options.open_log](const std::filesystem::path& path) {
    auto opened = usual(path);
    if (path.extension() != ".new") return opened;
    return Result<std::unique_ptr<log::Log>>(Error{ErrorCode::no_space, "the disk is full"});
  };
  catalogue = Catalogue::open(room.path(), options, room.sink).value_or_throw();
  expect_failure([](CatalogueCompaction& compaction) { compaction.run({}); }, "the disk is full");
}

TEST_F(Renewing, ContinuesWithTheOldLogIfTheNewOneCannotReplaceIt) {
  expect_failure(
      [this](CatalogueCompaction& compaction) {
        compaction.run({});
        std::filesystem::remove_all(generation("00000002.new"));
      },
      "cannot rename");
}

TEST_F(Renewing, StopsInTheMiddleOnRequest) {
  renew(5000);
  std::stop_source stop;
  stop.request_stop();
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(catalogue->add_topic(name("t" + std::to_string(i)), {}, 0).ok());
  const auto compaction = catalogue->begin_compaction();
  compaction->run(stop.get_token());
  EXPECT_EQ(compaction->add({}).error().code, ErrorCode::shutting_down);
  catalogue->give_up_compaction();
  EXPECT_EQ(found_after_a_kill(), records_of(catalogue->state()));
}

TEST_F(Renewing, TheLogStaysShortWhileItIsUsed) {
  EventLoop loop;
  CommitQueue commits(loop, *catalogue);
  std::uint64_t longest = 0;
  for (int round = 0; round < 100; ++round) {
    renew(1000);
    bool committed = false;
    commits.commit([&](const Result<void>& done) { committed = done.ok(); });
    test::run_until(loop, [&] { return committed; });
    longest = std::max(longest, bytes_below(room.path()));
  }
  test::run_until(loop, [&] { return !std::filesystem::exists(generation("00000001")); });
  // 100,000 records are 25 MB; the state is 2 KB.
  EXPECT_LT(longest, 16 * limits::MiB);
  const auto expected = records_of(catalogue->state());
  EXPECT_EQ(found_after_a_kill(), expected);
}

TEST_F(Renewing, ADestroyedCompactorGivesUp) {
  EventLoop loop;
  renew(5000);
  {
    CatalogueCompactor compactor(loop, *catalogue);
    compactor.look();
    compactor.look();  // a compaction is running already
  }
  bool turned = false;
  loop.post_answer([&] { turned = true; });  // runs after any task that the compaction posted
  test::run_until(loop, [&] { return turned; });
  EXPECT_TRUE(std::filesystem::exists(generation("00000001")));
  EXPECT_TRUE(catalogue->is_mostly_history()) << "another one may begin";
}

}  // namespace
}  // namespace lightq::broker
