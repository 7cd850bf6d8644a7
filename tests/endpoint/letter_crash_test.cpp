/// Tests of crashes during the transfer of dead messages: at each step, with and without a power cut, and
/// again while the broker recovers. Each message is in the dead-letter topic once and finished in its group.
#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <string>
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
      if (between < messages_between && (between + 1) * events_between <= events) {
        group.die();
        ++between;
      }
      if (turns % 50 == 49 && !saves_at_once) group.disk = group.memory;  // a save that nobody waits for
      if (between == messages_between && group.memory.waiting.empty()) return;
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
    for (std::uint64_t offset = 0; offset < group.memory.next_offset; ++offset) {
      const bool finished = group.memory.finished.contains(offset);
      const std::string which = "message " + std::to_string(offset);
      if (counts[offset] > 1) return which + " is in the topic twice";
      if (finished && counts[offset] == 0) return which + " is lost";
      if (!finished) return which + " is not finished";
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
      // A message dies again if its death was not saved.
      while (group.memory.next_offset < deaths) group.die();
      if (!run_to_the_end()) ADD_FAILURE() << "the transfer does not end";
    }
    return was_cut;
  }

  Random random_;
};

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
TEST_P(LetterRulesTest, NumbersThatAreGivenAgainAreNoticed) {
  forgets_numbers = true;
  EXPECT_THAT(complaint(), testing::HasSubstr("is lost"));
}
INSTANTIATE_TEST_SUITE_P(Wrongs, LetterRulesTest,
                         testing::Values(CrashRun{BrokerType::file, Crash::cut_keeps_all}), crash_name);
#endif

}  // namespace
}  // namespace lightq::broker
