/// Tests of Result: which of value and error it has after copies, moves and assignments.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::test {
namespace {

const std::string long_text = "longer than a string stores without an allocation";

Error some_error() {
  return {ErrorCode::timeout, long_text, 5};
}

TEST(Result, HasAValueOrAnError) {
  const Result<std::string> value(long_text);
  const Result<std::string> error(some_error());
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, long_text);
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().code, ErrorCode::timeout);
  EXPECT_EQ(error.error().message, long_text);
  EXPECT_EQ(error.error().system_error, 5);
}

TEST(Result, IsCopied) {
  const Result<std::string> value(long_text);
  const Result<std::string> error(some_error());
  const Result<std::string> value_too(value);
  const Result<std::string> error_too(error);
  EXPECT_EQ(*value, *value_too);
  EXPECT_EQ(error.error().message, error_too.error().message);
}

TEST(Result, IsAssignedOverEachState) {
  const Result<std::string> value(long_text);
  const Result<std::string> error(some_error());
  Result<std::string> result("x");
  result = error;
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, long_text);
  result = error;
  ASSERT_FALSE(result.ok());
  result = value;
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, long_text);
  result = value;
  EXPECT_EQ(*result, long_text);
  const auto& same = result;
  result = same;
  EXPECT_EQ(*result, long_text);
}

TEST(Result, MovesNonCopyableValues) {
  using Owner = std::unique_ptr<std::string>;
  static_assert(!std::is_copy_constructible_v<Result<Owner>>);
  static_assert(!std::is_copy_assignable_v<Result<Owner>>);
  static_assert(std::is_nothrow_move_constructible_v<Result<Owner>>);
  Result<Owner> result(std::make_unique<std::string>(long_text));
  Result<Owner> moved(std::move(result));
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(**moved, long_text);
  moved = Result<Owner>(some_error());
  ASSERT_FALSE(moved.ok());
  moved = Result<Owner>(std::make_unique<std::string>("y"));
  EXPECT_EQ(*std::move(moved).value_or_throw(), "y");
}

TEST(Result, ThrowsItsErrorOnRequest) {
  EXPECT_THROW((void)Result<int>(some_error()).value_or_throw(), Exception);
  EXPECT_EQ(Result<int>(3).value_or_throw(), 3);
}

TEST(ResultDeathTest, EndsTheProcessInEveryBuildWhenTheWrongOneIsTaken) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Result<std::string> value(long_text);
  Result<std::string> error(some_error());
  const auto& constant = error;
  const std::string took_value =
      "lightq: the program took the value of a Result that is an error: " + long_text;
  const std::string took_error = "lightq: the program took error\\(\\) of a Result that is no error";
  EXPECT_DEATH((void)error.value(), took_value);
  EXPECT_DEATH((void)constant.value(), took_value);
  EXPECT_DEATH((void)std::move(error).value(), took_value);
  EXPECT_DEATH((void)*error, took_value);
  EXPECT_DEATH((void)*constant, took_value);
  EXPECT_DEATH((void)error->size(), took_value);
  EXPECT_DEATH((void)constant->size(), took_value);
  EXPECT_DEATH((void)value.error(), took_error);
  EXPECT_DEATH((void)Result<void>().error(), took_error);
}

/// A value that cannot be moved while `throws` is true.
struct Fragile {
  explicit Fragile(bool& flag) : throws(&flag) {}
  Fragile(const Fragile& other) : throws(other.throws) {
    if (*throws) throw std::runtime_error("not now");
  }
  bool* throws;
};

TEST(Result, IsAnErrorAfterAnAssignmentThatThrows) {
  bool throws = false;
  Result<Fragile> from(std::in_place, throws);
  Result<Fragile> to(some_error());
  throws = true;
  EXPECT_THROW(to = std::move(from), std::runtime_error);
  EXPECT_FALSE(to.ok());
  throws = false;
  to = std::move(from);
  EXPECT_TRUE(to.ok());
}

}  // namespace
}  // namespace lightq::test
