/// Tests of crashes during the transfer of dead messages: at each step, with and without a power cut, and
/// again while the broker recovers. Each message is in the dead-letter topic once and finished in its group.
/// The dead-letter topic may change meanwhile, and be removed: then each message is in one of the topics, or
/// parked in its group, but not both.
#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "endpoint/letter_world.hpp"
#include "support/random.hpp"

namespace lightq::broker {
namespace {

using protocol::BrokerType;
using test::Random;

constexpr std::uint64_t messages_before = 5;
constexpr std::uint64_t messages_between = 3;  // they die while the others are moved

/// A kind of crash.
enum class Crash {
  kill,
  cut_keeps_nothing,  ///< a power cut; nothing that was not synced stays
  cut_keeps_all,
  cut_keeps_some,
};

struct CrashRun {
  BrokerType type;
  Crash crash;
};

protocol::TopicSettings settings_of(BrokerType type) {
  return {
      .broker_type = type, .ring_bytes = limits::ring_bytes_min, .segment_bytes = limits::segment_bytes_min};
}

class LetterCrashTest : public LetterWorld, public testing::WithParamInterface<CrashRun> {
 protected:
  LetterCrashTest() : LetterWorld(settings_of(GetParam().type)) {}

  /// Runs one life: some messages die, and are moved. Others die when some events have passed. Ends at the
  /// event that is armed.
  void live() {
    constexpr std::uint64_t events_between = 3;
    std::uint64_t between = 0;
    for (int turns = 0; turns < 2000 && !is_dead; ++turns) {
      const bool is_idle = changes_targets_ && group.memory.waiting.empty();
      if (!changes_.empty() && (changes_.front().first <= events || is_idle)) {
        group.set_target(changes_.front().second);
        changes_.erase(changes_.begin());
      }
      if (between < messages_between && ((between + 1) * events_between <= events || is_idle)) {
        group.die();
        ++between;
      }
      if (turns % 50 == 49 && !saves_at_once) group.disk = group.memory;  // a save that nobody waits for
      if (between == messages_between && changes_.empty() && group.memory.waiting.empty()) return;
      step();
    }
  }
  void crash_now(std::uint64_t next_end) {
    const Crash kind = GetParam().crash;
    const auto keeps = [this, kind] {
      return kind == Crash::cut_keeps_all || (kind == Crash::cut_keeps_some && random_.one_in(2));
    };
    crash(kind != Crash::kill, keeps, next_end);
  }
  /// Returns a complaint about the final state, or nothing.
  std::string judge() {
    std::map<std::uint64_t, int> counts;
    for (const std::uint64_t letter : letters_in_topic()) ++counts[letter];
    if (others != nullptr) {
      for (const std::uint64_t letter : letters_in(*others)) ++counts[letter];
    }
    for (std::uint64_t offset = 0; offset < group.memory.next_offset; ++offset) {
      const bool finished = group.memory.finished.contains(offset);
      const std::string which = "message " + std::to_string(offset);
      if (counts[offset] > 1) return which + " is in the topic twice";
      if (finished && counts[offset] == 0) return which + " is lost";
      if (!changes_targets_ || !group.memory.parked.contains(offset)) {
        if (!finished) return which + " is not finished";
      } else if (finished || counts[offset] != 0) {
        return which + " is parked, and in a topic";
      }
    }
    return {};
  }
  /// Lets messages die and be moved. Crashes before event `first_end`, and perhaps again before event
  /// `second_end` of the recovery. Returns true if the first crash came before the end.
  bool run(std::uint64_t first_end, std::uint64_t second_end) {
    for (std::uint64_t left = messages_before; left > 0; --left) group.die();
    group.disk = group.memory;
    arm(first_end);
    live();
    const bool was_cut = is_dead;
    const std::uint64_t deaths = group.memory.next_offset;
    for (const std::uint64_t end : {second_end, std::uint64_t{0}}) {
      crash_now(end);
      if (changes_targets_ && random_.one_in(3)) group.set_target(random_.one_in(2) ? others_id : TopicId{});
      // A message dies again if its death was not saved.
      while (group.memory.next_offset < deaths) group.die();
      if (!run_to_the_end()) ADD_FAILURE() << "the transfer does not end";
    }
    return was_cut;
  }

  /// Runs with a dead-letter topic that changes, and that is removed, at any events.
  bool run_with_changes(std::uint64_t first_end, std::uint64_t second_end) {
    changes_targets_ = true;
    changes_.clear();
    std::uint64_t at = 0;
    for (int i = 0; i < 3; ++i) {
      at += random_.between(1, 12);
      const TopicId targets[] = {{1}, others_id, {}};
      changes_.emplace_back(at, targets[random_.below(3)]);
    }
    group.set_target(random_.one_in(2) ? TopicId{1} : others_id);
    return run(first_end, second_end);
  }

  Random random_;
  std::vector<std::pair<std::uint64_t, TopicId>> changes_;  // of the target, by the number of the event
  bool changes_targets_ = false;
};

TEST_P(LetterCrashTest, EachMessageIsInOneTopicOrParkedWhenTheTargetChanges) {
  ASSERT_TRUE(open_others());
  std::uint64_t parked = 0;
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t end = 1;
         run_with_changes(end, random_.one_in(2) ? random_.between(1, 40) : 0) || end < 15; ++end) {
      ASSERT_EQ(judge(), "") << "round " << round << ", cut before event " << end;
    }
    ASSERT_EQ(judge(), "");
    parked = group.memory.parked.size();
  }
  EXPECT_GT(parked, 5U);
  EXPECT_GT(letters_in_topic().size(), 20U);
  EXPECT_GT(letters_in(*others).size(), 20U);
}

TEST_P(LetterCrashTest, EachMessageIsMovedOnceWhateverStepIsCut) {
  std::uint64_t end = 1;
  while (run(end, random_.one_in(2) ? random_.between(1, 40) : 0)) {
    ASSERT_EQ(judge(), "") << "cut before event " << end;
    ++end;
  }
  EXPECT_EQ(judge(), "");
  EXPECT_GT(end, 15U);  // a run with fewer events proves nothing
  std::printf("%llu cuts, %zu letters\n", static_cast<unsigned long long>(end - 1),
              letters_in_topic().size());
}

std::vector<CrashRun> all_crashes() {
  std::vector<CrashRun> runs;
  for (const BrokerType type : {BrokerType::file, BrokerType::queue_file})
    for (const Crash crash :
         {Crash::kill, Crash::cut_keeps_nothing, Crash::cut_keeps_all, Crash::cut_keeps_some})
      runs.push_back({type, crash});
  return runs;
}
std::string crash_name(const testing::TestParamInfo<CrashRun>& run) {
  const char* const words[] = {"Kill", "KeepsNothing", "KeepsAll", "KeepsSome"};
  return std::string(run.param.type == BrokerType::file ? "File" : "QueueFile") +
         words[static_cast<int>(run.param.crash)];
}
INSTANTIATE_TEST_SUITE_P(Runs, LetterCrashTest, testing::ValuesIn(all_crashes()), crash_name);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // says nothing about memory or threads
// The test above proves something only if it notices a faulty group.
class LetterRulesTest : public LetterCrashTest {
 protected:
  /// Runs until the fault is noticed, or no event is left. Returns the complaint.
  std::string complaint() {
    for (std::uint64_t end = 1; run(end, 0); ++end) {
      if (const std::string found = judge(); !found.empty()) return found;
    }
    return "nothing";
  }
};
TEST_P(LetterRulesTest, NumbersThatAreSentBeforeTheyAreSavedAreNoticed) {
  saves_at_once = true;
  EXPECT_THAT(complaint(), testing::HasSubstr("is in the topic twice"));
}
TEST_P(LetterRulesTest, NumbersThatAreSentToAnotherTopicAreNoticed) {
  ASSERT_TRUE(open_others());
  forgets_target = true;
  std::string found;
  for (std::uint64_t end = 1; end < 200 && found.empty(); ++end) {
    run_with_changes(1 + end % 50, 0);
    found = judge();
  }
  EXPECT_THAT(found, testing::HasSubstr("is in the topic twice"));
}
TEST_P(LetterRulesTest, NumbersThatAreGivenAgainAreNoticed) {
  forgets_numbers = true;
  EXPECT_THAT(complaint(), testing::HasSubstr("is lost"));
}
INSTANTIATE_TEST_SUITE_P(Wrongs, LetterRulesTest,
                         testing::Values(CrashRun{BrokerType::file, Crash::cut_keeps_all}), crash_name);
#endif

}  // namespace
}  // namespace lightq::broker
