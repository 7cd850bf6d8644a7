/// Tests of letters that are given back to the group in which they died: the fate of each, and crashes at
/// every step. After a crash a letter was given back once, or it still waits.
#include <gmock/gmock.h>

#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "endpoint/return_world.hpp"
#include "support/no_memory.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using testing::ElementsAre;
using testing::IsEmpty;

class LetterReturnsTest : public ReturnWorld {
 protected:
  LetterReturnsTest() : ReturnWorld(BrokerType::file, BrokerType::file) {}

  /// Gives letters back, and runs until they were processed.
  LetterCounts retried(DeadFilter filter = {}) {
    forget_consumed();
    retry(std::move(filter));
    EXPECT_TRUE(steps_until([&] { return returned.has_value() && (!consumes || is_quiet()); }));
    return returned && *returned ? returned->value() : LetterCounts();
  }
  void drop_messages_of_source() {
    bool done = false;
    source->commands().purge([&](const Result<std::uint64_t>& purged) { done = purged.ok(); });
    EXPECT_TRUE(steps_until([&] { return done; }));
  }
  static DeadFilter only(std::uint64_t offset) { return {.ranges = {{{offset}, {offset + 1}}}}; }
};

TEST_F(LetterReturnsTest, ALetterGoesBackToItsGroupAsIfItHadNeverFailed) {
  make_letters({"a", "b", "c"});
  EXPECT_THAT(waiting_letters(), ElementsAre("a", "b", "c"));
  const LetterCounts counts = retried(only(1));
  EXPECT_EQ(counts.given_back, 1U);
  EXPECT_EQ(counts.messages, 1U);
  EXPECT_EQ(counts.published, 0U);
  EXPECT_THAT(deliveries, ElementsAre(testing::Pair("b", 1U)));
  EXPECT_THAT(waiting_letters(), ElementsAre("a", "c"));
  EXPECT_EQ(payloads_in(*topic).size(), 3U) << "consumers of the topic still find it";
  EXPECT_EQ(copies_in_source("b"), 1);
  EXPECT_EQ(retried(only(1)).messages, 0U) << "it is not given back again";
  EXPECT_THAT(deliveries, IsEmpty());
  EXPECT_EQ(retried().given_back, 2U);
  EXPECT_THAT(waiting_letters(), IsEmpty());
}

TEST_F(LetterReturnsTest, ALetterThatDiesAgainIsAnotherLetter) {
  make_letters({"a"});
  rejects = true;
  retry();
  ASSERT_TRUE(
      steps_until([&] { return returned.has_value() && is_quiet() && waiting_letters().size() == 1; }));
  rejects = false;
  EXPECT_EQ(payloads_in(*topic).size(), 2U);
  EXPECT_EQ(retried().given_back, 1U);
  EXPECT_THAT(waiting_letters(), IsEmpty());
}

TEST_F(LetterReturnsTest, ALetterIsPublishedAnewIfItsTopicNoLongerHasTheMessage) {
  make_letters({"a", "b"});
  drop_messages_of_source();
  make_letters({"c"});
  const LetterCounts counts = retried();
  EXPECT_EQ(counts.published, 2U);
  EXPECT_EQ(counts.given_back, 1U);
  EXPECT_THAT(deliveries,
              ElementsAre(testing::Pair("a", 1U), testing::Pair("b", 1U), testing::Pair("c", 1U)));
  EXPECT_EQ(copies_in_source("a"), 1);
  EXPECT_EQ(copies_in_source("c"), 1);
  EXPECT_THAT(waiting_letters(), IsEmpty());
}

TEST_F(LetterReturnsTest, ALetterGoesBackAfterMoreEndsOfTheBrokerThanTheLogKnowsLives) {
  make_letters({"a"});
  for (std::size_t life = 0; life < LogLives::kept_max + 2; ++life) crash(false, true, 0);
  make_letters({"b"});
  EXPECT_FALSE(source->same_up_to(scan_letters(*topic, {}, {{}, 100}).letters.front().death.incarnation))
      << "the first life is forgotten";
  const LetterCounts counts = retried();
  EXPECT_EQ(counts.given_back, 2U);
  EXPECT_EQ(counts.published, 0U);
  EXPECT_EQ(copies_in_source("a"), 1);
  EXPECT_THAT(deliveries, ElementsAre(testing::Pair("a", 1U), testing::Pair("b", 1U)));
}

TEST_F(LetterReturnsTest, LettersStayIfTheirGroupOrTopicIsGoneOrMayNotBeManaged) {
  make_letters({"a", "b"});
  consumes = false;
  forbidden_source = "source";
  EXPECT_EQ(retried().not_allowed, 2U);
  forbidden_source.clear();
  source_is_gone = true;
  EXPECT_EQ(retried().topic_gone, 2U);
  source_is_gone = false;
  leave();
  bool deleted = false;
  source->commands().delete_group(group_name,
                                  [&](const Result<std::uint64_t>& done) { deleted = done.ok(); });
  ASSERT_TRUE(steps_until([&] { return deleted; }));
  EXPECT_EQ(retried().group_gone, 2U);
  EXPECT_THAT(waiting_letters(), ElementsAre("a", "b"));
  EXPECT_EQ(topic->letter_book().run(), 0U);
}

TEST_F(LetterReturnsTest, AMessageThatIsNotFinishedStaysAsItIs) {
  make_letters({"a"});
  consumes = false;
  leave();
  group()->seek({0});
  EXPECT_EQ(retried().given_back, 1U);
  EXPECT_EQ(group()->messages().redelivery().ready_messages(), 0U) << "it is still to be delivered";
  EXPECT_EQ(group()->next().value, 0U);
  EXPECT_THAT(waiting_letters(), IsEmpty());
}

TEST_F(LetterReturnsTest, MoreLettersThanARunHasGoBackInSeveral) {
  std::vector<std::string> payloads;
  for (int i = 0; i < 600; ++i) payloads.push_back("message " + std::to_string(i));
  make_letters(payloads);
  EXPECT_EQ(retried().given_back, 600U);
  EXPECT_EQ(deliveries.size(), 600U);
  EXPECT_THAT(waiting_letters(), IsEmpty());
}

TEST_F(LetterReturnsTest, PurgedLettersAreNotListedAndNotGivenBack) {
  make_letters({"a", "b", "c"});
  std::uint64_t counted = 0;
  const auto count_in = [&](const Result<LetterCounts>& counts) {
    ASSERT_TRUE(counts.ok());
    counted = counts.value().messages;
  };
  office->returns().act(letters_id, LetterAction::count, {.key = "key of b"}, {}, count_in);
  ASSERT_TRUE(steps_until([&] { return counted != 0; }));
  EXPECT_EQ(counted, 1U);
  counted = 0;
  office->returns().act(letters_id, LetterAction::purge, {.key = "key of b"}, {}, count_in);
  ASSERT_TRUE(steps_until([&] { return counted != 0; }));
  EXPECT_EQ(counted, 1U);
  EXPECT_THAT(waiting_letters(), ElementsAre("a", "c"));
  crash(true, false, 0);
  EXPECT_THAT(waiting_letters(), ElementsAre("a", "c"));
  EXPECT_EQ(retried().given_back, 2U);
}

TEST_F(LetterReturnsTest, SettledLettersBetweenOthersAreNotFoundAgain) {
  make_letters({"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(retried({.ranges = {{{0}, {1}}, {{2}, {3}}, {{4}, {5}}}}).given_back, 3U);
  EXPECT_THAT(waiting_letters(), ElementsAre("b", "d", "f"));
  const LetterCounts counts = retried();
  EXPECT_EQ(counts.messages, 3U);
  EXPECT_THAT(deliveries,
              ElementsAre(testing::Pair("b", 1U), testing::Pair("d", 1U), testing::Pair("f", 1U)));
}

// The letters of a run are found in several pieces, with others between them. So the run may be longer than
// run_bytes_max. A start finds its letters in other pieces.
TEST_F(LetterReturnsTest, ALongRunThatAKillCutsGoesOnToItsEnd) {
  std::vector<std::string> payloads;
  std::vector<std::string> others;
  const std::string padding(20'000, 'x');
  for (int i = 0; i < 28; ++i) {
    payloads.push_back((i % 4 == 1 ? "b:" : "a:") + std::to_string(i) + padding);
    if (i % 4 == 1) others.push_back(payloads.back());
  }
  make_letters(payloads);
  drop_messages_of_source();
  const Offset before = source->store().next_offset();
  retry({.key = "key of a"});
  ASSERT_TRUE(steps_until([&] { return before < source->store().durable_offset(); }));
  crash(false, false, 0);
  ASSERT_NE(topic->letter_book().run(), 0U);
  ASSERT_TRUE(steps_until([&] { return is_quiet(); }));
  const auto waiting = waiting_letters();
  for (const std::string& payload : payloads)
    EXPECT_EQ(copies_in_source(payload), waiting.contains(payload) ? 0 : 1) << payload.substr(0, 4);
  EXPECT_EQ(retried({.key = "key of a"}).published, waiting.size() - others.size());
  EXPECT_THAT(waiting_letters(), testing::ElementsAreArray(std::set(others.begin(), others.end())));
}

TEST_F(LetterReturnsTest, WithoutMemoryALetterIsFoundOnce) {
  if (!test::NoMemory::is_possible) GTEST_SKIP() << "sanitizers need address space without end";
  make_letters({"a", "b:" + std::string(200'000, 'x')});
  const auto scan = [&](Offset from) {
    return scan_letters(*topic, {}, {.from = from, .letters = 10, .originals = true});
  };
  ASSERT_EQ(scan({0}).letters.size(), 2U);
  LetterPiece first;
  {
    const test::NoMemory none;
    first = scan({0});
  }
  ASSERT_TRUE(first.is_pending);
  ASSERT_EQ(first.letters.size(), 1U);
  const LetterPiece second = scan(*first.next);
  ASSERT_EQ(second.letters.size(), 1U);
  EXPECT_EQ(second.letters[0].offset.value, 1U);
}

TEST_F(LetterReturnsTest, SettledLettersAreForgottenWithTheirMessages) {
  const auto purge_letters = [&] {
    bool purged = false;
    office->returns().act(letters_id, LetterAction::purge, {}, {},
                          [&](const Result<LetterCounts>& counts) { purged = counts.ok(); });
    ASSERT_TRUE(steps_until([&] { return purged; }));
  };
  make_letters({"a", "b"});
  purge_letters();
  bool dropped = false;
  topic->commands().purge([&](const Result<std::uint64_t>& done) { dropped = done.ok(); });
  ASSERT_TRUE(steps_until([&] { return dropped; }));
  make_letters({"c"});
  purge_letters();
  EXPECT_EQ(topic->letter_book().settled().size(), 1U);
  dropped = false;
  topic->commands().purge([&](const Result<std::uint64_t>& done) { dropped = done.ok(); });
  ASSERT_TRUE(steps_until([&] { return dropped; }));
  crash(true, false, 0);
  EXPECT_TRUE(topic->letter_book().settled().empty()) << "a start forgets it, too";
}

TEST_F(LetterReturnsTest, ACommandIsAnsweredIfAllItsChosenLettersArePurgedMeanwhile) {
  std::vector<std::string> payloads;
  for (int i = 0; i < 300; ++i) payloads.push_back("c:" + std::to_string(i) + std::string(2000, '.'));
  make_letters(payloads);
  retry();
  std::optional<std::uint64_t> purged;
  office->returns().act(letters_id, LetterAction::purge, {}, {},
                        [&](const Result<LetterCounts>& counts) { purged = counts.value().messages; });
  ASSERT_TRUE(steps_until([&] { return purged.has_value() && returned.has_value(); }));
  ASSERT_TRUE(purged && returned && returned->ok());
  EXPECT_EQ(*purged + returned->value().messages, 300U);
  EXPECT_THAT(waiting_letters(), IsEmpty());
}

TEST_F(LetterReturnsTest, ListsLettersWithTheirDeaths) {
  make_letters({"a", "b", "c"});
  std::optional<LetterList> page;
  office->returns().list(letters_id, {}, {1}, 1,
                         [&](const Result<LetterList>& list) { page = list.value(); });
  ASSERT_TRUE(steps_until([&] { return page.has_value(); }));
  ASSERT_EQ(page->letters.size(), 1U);
  EXPECT_EQ(page->letters[0].offset.value, 1U);
  EXPECT_EQ(page->letters[0].death.topic, "source");
  EXPECT_EQ(page->letters[0].death.group, "workers");
  EXPECT_EQ(page->letters[0].death.offset.value, 1U);
  EXPECT_EQ(page->next, Offset{2});
}

TEST_F(LetterReturnsTest, CommandsThatReadTakeTurnsAndMoreThanTheBoundAreBusy) {
  make_letters({"a"});
  std::uint64_t turns = 0;
  bool counts_turns = true;
  const std::function<void()> count_turns = [&] {
    ++turns;
    if (counts_turns) loop().post_answer(count_turns);
  };
  loop().post_answer(count_turns);
  std::size_t answered = 0;
  std::size_t busy = 0;
  std::set<std::uint64_t> turns_with_answer;
  for (std::size_t i = 0; i <= ReturnOffice::walks_of_topic_max; ++i) {
    office->returns().list(letters_id, {}, {0}, 10, [&](const Result<LetterList>& list) {
      ++answered;
      turns_with_answer.insert(turns);
      if (!list && list.error().code == ErrorCode::busy) ++busy;
    });
  }
  EXPECT_EQ(answered, 1U);
  EXPECT_EQ(busy, 1U);
  EXPECT_TRUE(steps_until([&] { return answered == ReturnOffice::walks_of_topic_max + 1; }));
  counts_turns = false;
  step();
  EXPECT_EQ(busy, 1U);
  EXPECT_EQ(turns_with_answer.size(), answered) << "one piece in each turn";
}

TEST_F(LetterReturnsTest, MoreCommandsThatGiveBackThanTheBoundAreBusy) {
  make_letters({"a"});
  std::size_t busy = 0;
  std::size_t done = 0;
  for (std::size_t i = 0; i <= LetterReturns::wishes_max; ++i) {
    office->returns().act(
        letters_id, LetterAction::give_back, {}, [](std::string_view) { return true; },
        [&](const Result<LetterCounts>& counts) {
          if (counts)
            ++done;
          else if (counts.error().code == ErrorCode::busy)
            ++busy;
        });
  }
  EXPECT_EQ(busy, 1U);
  ASSERT_TRUE(steps_until([&] { return done == LetterReturns::wishes_max; }));
}

TEST_F(LetterReturnsTest, AListOfFewLettersAmongManyMessagesEndsEarly) {
  constexpr int messages_of_batch = 1000;
  for (int batches = 0; batches < 20; ++batches) {
    BatchBuilder batch;
    for (int i = 0; i < messages_of_batch; ++i) batch.add(as_byte_view("no letter"), Attributes{});
    topic->publishing().publish(batch);
  }
  topic->publishing().want_flush();
  topic->dispatch().published();
  ASSERT_TRUE(steps_until([&] { return topic->store().durable_offset() == topic->store().next_offset(); }));
  std::optional<LetterList> page;
  office->returns().list(letters_id, {}, {0}, 1,
                         [&](const Result<LetterList>& list) { page = list.value(); });
  ASSERT_TRUE(steps_until([&] { return page.has_value(); }));
  EXPECT_TRUE(page->letters.empty());
  ASSERT_TRUE(page->next.has_value());
  EXPECT_GT(page->next->value, 5000U);
  EXPECT_LT(page->next->value, 20'000U);
}

TEST_F(LetterReturnsTest, ATopicThatCannotSaveAnswersBusyAndGoesOn) {
  make_letters({"a"});
  consumes = false;
  fail(EIO, [](FaultyStorage::Call call, const std::string& path) {
    return call == FaultyStorage::Call::write && path.starts_with("/topics/2/cursors");
  });
  retry();
  ASSERT_TRUE(steps_until([&] { return returned.has_value(); }));
  EXPECT_FALSE(*returned);
  EXPECT_EQ(returned->error().code, ErrorCode::busy);
  arm(0);
  consumes = true;
  ASSERT_TRUE(run_until([&] {
    step();
    return is_quiet() && deliveries.size() == 1;
  }));
  EXPECT_THAT(waiting_letters(), IsEmpty());
}

// --- Crashes. ---

struct ReturnRun {
  BrokerType source;
  BrokerType letters;
  bool cut;    ///< the power fails
  bool keeps;  ///< all bytes that were not synced stay
};

class ReturnCrashTest : public ReturnWorld, public testing::WithParamInterface<ReturnRun> {
 protected:
  ReturnCrashTest() : ReturnWorld(GetParam().source, GetParam().letters) {}

  /// Makes two letters of messages that are gone, and two of messages that are there. All of that is on disk.
  void prepare(const std::string& name) {
    gone_ = {name + " a", name + " b"};
    there_ = {name + " c", name + " d"};
    arm(0);
    make_letters(gone_);
    bool purged = false;
    source->commands().purge([&](const Result<std::uint64_t>& done) { purged = done.ok(); });
    ASSERT_TRUE(steps_until([&] { return purged; }));
    make_letters(there_);
    forget_consumed();
    twice_.clear();
    bool saved = false;
    source->letters().save([&](const Result<std::uint64_t>& done) { saved = done.ok(); });
    ASSERT_TRUE(steps_until([&] { return saved; }));
  }
  /// Runs until all that was begun has ended, or the process has.
  void settle() {
    ASSERT_TRUE(steps_until([&] { return is_quiet(); }));
  }
  /// Returns a complaint, or nothing.
  std::string judge() {
    if (!twice_.empty()) return twice_ + " was given back twice";
    const auto waiting = waiting_letters();
    for (const std::string& payload : there_) {
      if (copies_in_source(payload) != 1) return payload + " was published anew";
      if (waiting.contains(payload) == acked_.contains(payload))
        return payload + (acked_.contains(payload) ? " was given back and still waits" : " is lost");
    }
    for (const std::string& payload : gone_) {
      const int copies = copies_in_source(payload);
      if (copies != (waiting.contains(payload) ? 0 : 1))
        return payload + " was published " + std::to_string(copies) + " times" +
               (waiting.contains(payload) ? ", and waits" : "");
      if (waiting.contains(payload) == acked_.contains(payload)) return payload + " is lost";
    }
    return {};
  }
  /// Gives letters back, and crashes before event `end`, and perhaps again before event `second_end` of the
  /// recovery. Returns true if the first crash came before the end.
  bool run(std::uint64_t end, std::uint64_t second_end) {
    arm(end);
    retry();
    EXPECT_TRUE(steps_until([&] { return returned.has_value() && is_quiet(); }));
    const bool was_cut = is_dead;
    for (const std::uint64_t next : {second_end, std::uint64_t{0}}) {
      crash(GetParam().cut, GetParam().keeps, next);
      settle();
    }
    return was_cut;
  }

  std::vector<std::string> gone_;
  std::vector<std::string> there_;
  test::Random random_;
};

TEST_P(ReturnCrashTest, EachLetterIsGivenBackOnceOrWaitsWhateverIsCut) {
  std::uint64_t end = 1;
  for (bool was_cut = true; was_cut; ++end) {
    prepare(std::to_string(end));
    ASSERT_EQ(waiting_letters().size(), 4U);
    was_cut = run(end, random_.one_in(2) ? random_.between(1, 60) : 0);
    ASSERT_EQ(judge(), "") << "cut before event " << end;
    arm(0);
    retry();
    ASSERT_TRUE(steps_until([&] { return returned.has_value() && is_quiet(); }));
    ASSERT_EQ(judge(), "") << "after the next command";
    ASSERT_THAT(waiting_letters(), IsEmpty());
    ASSERT_LT(end, 400U);
  }
  EXPECT_GT(end, 15U);  // a run with fewer events proves nothing
  std::printf("%llu cuts\n", static_cast<unsigned long long>(end - 2));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // says nothing about memory or threads
// The test above proves something only if it notices a faulty topic.
class ReturnRulesTest : public ReturnCrashTest {
 protected:
  /// Runs until the fault is noticed, or no event is left. Returns the complaint.
  std::string complaint() {
    std::uint64_t end = 1;
    for (bool was_cut = true; was_cut; ++end) {
      prepare(std::to_string(end));
      was_cut = run(end, 0);
      if (const std::string found = judge(); !found.empty()) return found;
      arm(0);
      retry();
      EXPECT_TRUE(steps_until([&] { return returned.has_value() && is_quiet(); }));
    }
    return "nothing";
  }
};
TEST_P(ReturnRulesTest, AGroupThatForgetsWhatItHasReceivedIsNoticed) {
  forgets_marks = true;
  EXPECT_THAT(complaint(), testing::HasSubstr("was given back twice"));
}
TEST_P(ReturnRulesTest, ARunThatIsForgottenIsNoticed) {
  on_open = [](FoundTopic& found) {
    std::erase_if(found.stored, [](const auto& each) { return each.name.starts_with("letters:run:"); });
  };
  EXPECT_THAT(complaint(),
              testing::AnyOf(testing::HasSubstr("and still waits"), testing::HasSubstr("and waits")));
}
#endif

std::string return_name(const testing::TestParamInfo<ReturnRun>& run) {
  const auto word = [](BrokerType type) { return type == BrokerType::file ? "File" : "QueueFile"; };
  return std::string(word(run.param.source)) + word(run.param.letters) +
         (!run.param.cut    ? "Kill"
          : run.param.keeps ? "CutKeepsAll"
                            : "CutKeepsNothing");
}
INSTANTIATE_TEST_SUITE_P(Runs, ReturnCrashTest,
                         testing::Values(ReturnRun{BrokerType::file, BrokerType::file, false, false},
                                         ReturnRun{BrokerType::file, BrokerType::file, true, false},
                                         ReturnRun{BrokerType::file, BrokerType::file, true, true},
                                         ReturnRun{BrokerType::file, BrokerType::queue_file, false, false},
                                         ReturnRun{BrokerType::file, BrokerType::queue_file, true, false}),
                         return_name);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(Wrongs, ReturnRulesTest,
                         testing::Values(ReturnRun{BrokerType::file, BrokerType::file, true, true}),
                         return_name);
#endif

}  // namespace
}  // namespace lightq::broker
