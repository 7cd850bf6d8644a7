/// Tests of letters whose message the source topic's log has dropped, but carried over for another group.
#include <gmock/gmock.h>

#include "endpoint/return_world.hpp"
#include "log/carried/carried_records.hpp"
#include "support/batches.hpp"

namespace lightq::broker {
namespace {

class LettersOfCopies : public ReturnWorld {
 protected:
  LettersOfCopies() : ReturnWorld(protocol::BrokerType::file, protocol::BrokerType::file) {}
};

TEST_F(LettersOfCopies, ALetterGoesBackIfItsMessageWasCarriedOver) {
  make_letters({"a", "b"});
  test::FakeConsumer other;
  ASSERT_EQ(source->open_consumer(test::asked("other"), other).code, ClientError::none);
  ASSERT_TRUE(steps_until([&] { return other.opened_at.has_value(); }));
  source->detach_consumer(other);
  ConsumerGroup* const needing = source->letters().groups().find("other");
  ASSERT_NE(needing, nullptr);
  needing->seek({0});
  auto copy = test::make_batch({"a"});
  stamp_batch(copy, {0}, wall_time(), 0);
  ASSERT_TRUE(source_store->carried()->add(copy));
  ASSERT_TRUE(source_store->drop_first(source_store->next_offset(), 0));
  ASSERT_EQ(source_store->first_offset(), Offset{2});
  retry();
  EXPECT_TRUE(steps_until([&] { return returned.has_value() && is_quiet(); }));
  ASSERT_TRUE(returned->ok());
  const LetterCounts counts = returned->value();
  EXPECT_EQ(counts.given_back, 1U);
  EXPECT_EQ(counts.published, 1U) << "nothing has the other message";
  EXPECT_THAT(deliveries, testing::ElementsAre(testing::Pair("a", 1U), testing::Pair("b", 1U)));
  EXPECT_EQ(copies_in_source("b"), 1);
}

}  // namespace
}  // namespace lightq::broker
