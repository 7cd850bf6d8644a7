/// Tests how a mirror finds the place where it continues.
#include "client/mirror/mirror_state.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/temp_dir.hpp"

namespace lightq::cli {
namespace {

TEST(MirrorPlaces, KnowTheOffsetOfEachNumber) {
  MirrorPlaces places;
  EXPECT_EQ(places.offset_of(0), std::nullopt);
  EXPECT_TRUE(places.note(7, 100));
  EXPECT_FALSE(places.note(8, 101)) << "follows from the one before";
  EXPECT_TRUE(places.note(9, 105));
  EXPECT_EQ(places.offset_of(6), std::nullopt);
  EXPECT_EQ(places.offset_of(7), 100U);
  EXPECT_EQ(places.offset_of(8), 101U);
  EXPECT_EQ(places.offset_of(9), 105U);
  EXPECT_EQ(places.offset_of(20), 116U);
}

TEST(MirrorPlaces, ReplaceThePlaceOfAMessageThatIsGone) {
  MirrorPlaces places;
  places.note(0, 0);
  EXPECT_TRUE(places.note(0, 50));
  EXPECT_EQ(places.points(), (std::vector<MirrorPlaces::Point>{{0, 50}}));
}

/// For every number that a target may have stored when the mirror is killed, the points that were saved
/// before the next message was sent give the offset of that message.
TEST(MirrorPlaces, AfterEachKillGiveTheNextOffset) {
  MirrorPlaces saved;
  std::map<std::uint64_t, std::uint64_t> sent;
  std::uint64_t offset = 3;
  for (std::uint64_t sequence = 0; sequence < 200; ++sequence) {
    if (sequence % 7 == 3) offset += sequence % 5;
    saved.note(sequence, offset);
    sent[sequence] = offset++;
    for (std::uint64_t stored = sequence < 20 ? 0 : sequence - 20; stored <= sequence; ++stored) {
      MirrorPlaces found = saved;
      found.forget_before(stored);
      ASSERT_EQ(found.offset_of(stored), sent.at(stored)) << sequence;
      found.cut_from(stored);
      found.note(stored, sent.at(stored));
      ASSERT_EQ(found.offset_of(stored), sent.at(stored));
      ASSERT_EQ(found.offset_of(stored + 1), sent.at(stored) + 1) << "later points are forgotten";
    }
  }
}

TEST(MirrorState, IsReadAsItWasSaved) {
  const test::TempDir directory;
  const std::string file = directory / "below/state.json";
  EXPECT_FALSE(load_mirror_state(file).value_or_throw());
  MirrorState state{.producer = {~std::uint64_t{0}, 9}, .incarnation = 1ULL << 63};
  state.secret.emplace();
  state.secret->at(3) = std::byte{0xAB};
  state.places.note(1, 5);
  state.places.note(3, 70);
  ASSERT_TRUE(save_mirror_state(file, state));
  const auto read = load_mirror_state(file).value_or_throw();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->producer, state.producer);
  EXPECT_EQ(read->incarnation, state.incarnation);
  EXPECT_EQ(read->secret, state.secret);
  EXPECT_EQ(read->places.points(), state.places.points());
}

TEST(MirrorState, RefusesOtherTexts) {
  const std::string good = mirror_state_text({.producer = {1, 2}, .incarnation = 3});
  ASSERT_TRUE(parse_mirror_state(good)) << good;
  for (const char* const text :
       {"", "{}", "[]", R"({"format":2,"producer_id":"1","producer_epoch":0,"incarnation":"1","places":[]})",
        R"({"format":1,"producer_id":"x","producer_epoch":0,"incarnation":"1","places":[]})",
        R"({"format":1,"producer_id":"1","producer_epoch":65536,"incarnation":"1","places":[]})",
        R"({"format":1,"producer_id":"1","producer_epoch":0,"incarnation":"1","places":[[1,1],[1,2]]})",
        R"({"format":1,"producer_id":"1","producer_epoch":0,"incarnation":"1","places":[[1,5],[2,5]]})",
        R"({"format":1,"producer_id":"1","producer_epoch":0,"incarnation":"1","secret":"AA=="})"})
    EXPECT_FALSE(parse_mirror_state(text)) << text;
}

}  // namespace
}  // namespace lightq::cli
