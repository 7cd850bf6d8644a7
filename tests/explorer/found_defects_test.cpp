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

  /// The machine loses power; nothing that was not synced survives.
  void cut_power() {
    client.close();
    const std::vector<CutAtom> atoms = disk.atoms();
    after.become(disk, atoms, Cut(atoms.size(), 0));
    client.move_to(after);
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

}  // namespace
}  // namespace lightq::test
