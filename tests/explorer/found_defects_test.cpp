/// What the explorer has found: each defect once more, in the fewest steps.
#include <gtest/gtest.h>

#include "explorer/log_client.hpp"

namespace lightq::test {
namespace {

class FoundDefectsTest : public testing::Test {
 protected:
  FoundDefectsTest() {
    EXPECT_TRUE(disk.make_directory("/topics").ok());
    disk.settle();
  }
  ~FoundDefectsTest() override { EXPECT_EQ(client.violation.value_or(""), ""); }

  /// The machine loses power; of what was not synced only this sector survives.
  void cut_power(std::uint32_t sector = 0) {
    client.close();
    ExplorerStorage& before = client.storage();
    ExplorerStorage& next = &before == &disk ? after : disk;
    const std::vector<CutAtom> atoms = before.atoms();
    Cut cut;
    for (const CutAtom& atom : atoms) {
      cut.push_back(static_cast<std::uint8_t>(atom.sector == sector && sector != 0 ? atom.versions - 1 : 0));
    }
    next.become(before, atoms, cut);
    client.move_to(next);
    client.open(Ending::power_cut);
  }

  ExplorerWorld world;
  Payloads payloads;
  ExplorerStorage disk{world};
  ExplorerStorage after{world};
  LogClient client{disk, payloads};
};

// The process that made the directory was killed before it could sync the directory's own name; the next one
// found segments and took the directory for settled.
TEST_F(FoundDefectsTest, OpeningMakesTheDirectorysOwnNameDurable) {
  client.open(Ending::kill);
  client.append({10});
  client.open(Ending::kill);
  EXPECT_EQ(client.log()->durable_offset(), Offset{1});
  cut_power();
  EXPECT_EQ(client.history.end(), Offset{1});
}

TEST_F(FoundDefectsTest, ACursorWrittenBeforeTheFirstMessageSurvivesWithItsDirectory) {
  client.open(Ending::kill);
  EXPECT_TRUE(client.commit(0));
  cut_power();
}

// Two appends were under way. Of the first nothing came; of the second all but the 16 bytes in its first
// sector, which say no more than the sizes and the offset. In the next life two appends of the same sizes
// lose their last sector: their 16 bytes made the rest of the earlier message whole.
TEST_F(FoundDefectsTest, RemainsOfALaterAppendAreNotMadeWholeEither) {
  const auto in_a_batch = [](std::size_t bytes) { return bytes - 68; };
  client.open(Ending::kill);
  client.append({in_a_batch(512)});
  client.flush();
  for (const std::uint32_t survivor : {10U, 9U}) {
    client.now.us += 1000;
    client.append({in_a_batch(512 - 16)});
    client.append({100});
    cut_power(survivor);
  }
  EXPECT_EQ(client.history.end(), Offset{2});
}

}  // namespace
}  // namespace lightq::test
