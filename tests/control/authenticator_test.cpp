/// Tests of checking passwords off the control thread: control/authenticator.
#include "broker/control/authenticator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/loop_thread.hpp"

namespace lightq::broker {
namespace {

using protocol::Credentials;
using test::run_until;

struct Room {
  EventLoop loop;
  Authenticator authenticator{loop, "lightq_admin", Secret("adminpw"), 4};
  CredentialRecord user{3, "user", hash_password("right").value_or_throw()};

  AuthOutcome verify(const CredentialRecord* credential, Credentials given) {
    std::optional<AuthOutcome> outcome;
    authenticator.verify(credential, std::move(given), [&](AuthOutcome got) { outcome = got; });
    run_until(loop, [&] { return outcome.has_value(); });
    return outcome.value_or(AuthOutcome::busy);
  }
  AuthOutcome verify_admin(Credentials given) {
    std::optional<AuthOutcome> outcome;
    authenticator.verify_admin(std::move(given), [&](AuthOutcome got) { outcome = got; });
    run_until(loop, [&] { return outcome.has_value(); });
    return outcome.value_or(AuthOutcome::busy);
  }
};

TEST(PasswordHash, KnowsItsPasswordAndNoOther) {
  const auto text = hash_password("right").value_or_throw();
  EXPECT_TRUE(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << text;
  EXPECT_TRUE(verify_password(text, "right"));
  EXPECT_FALSE(verify_password(text, "wrong"));
  EXPECT_FALSE(verify_password(text, ""));
  EXPECT_FALSE(verify_password("nonsense", "right"));
  EXPECT_FALSE(verify_password(std::string(1000, '$'), "right"));
  EXPECT_NE(hash_password("right").value_or_throw(), text) << "no salt";
}

TEST(PasswordHash, DrawsTextsOfAllTheBitsAsked) {
  EXPECT_EQ(random_text(32).size(), 43U);
  EXPECT_NE(random_text(32), random_text(32));
}

TEST(PasswordHash, KeysItsDigestsAndKeepsTheirPartsApart) {
  const KeyedHash one;
  const KeyedHash other;
  EXPECT_EQ(one.digest(1, "ab", "c"), one.digest(1, "ab", "c"));
  EXPECT_NE(one.digest(1, "ab", "c"), one.digest(1, "a", "bc"));
  EXPECT_NE(one.digest(1, "ab", "c"), one.digest(2, "ab", "c"));
  EXPECT_NE(one.digest(1, "ab", "c"), other.digest(1, "ab", "c"));
}

TEST(Authenticator, TellsRightFromWrong) {
  Room room;
  EXPECT_EQ(room.verify(&room.user, {"user", "right"}), AuthOutcome::right);
  EXPECT_EQ(room.verify(&room.user, {"user", "wrong"}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify(&room.user, {"other", "right"}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify(nullptr, {"user", "right"}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify_admin({"lightq_admin", "adminpw"}), AuthOutcome::right);
  EXPECT_EQ(room.verify_admin({"lightq_admin", "right"}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify_admin({"user", "adminpw"}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify(nullptr, {"lightq_admin", "adminpw"}), AuthOutcome::wrong)
      << "the admin's password is nobody's";
}

TEST(Authenticator, DoesTheSameWorkForNobodyAsForAWrongPassword) {
  Room room;
  room.verify(&room.user, {"user", "wrong"});
  EXPECT_EQ(room.authenticator.computations(), 1U);
  room.verify(nullptr, {"nobody", "wrong"});
  EXPECT_EQ(room.authenticator.computations(), 2U);
  room.verify(nullptr, {"nobody", "wrong"});
  EXPECT_EQ(room.authenticator.computations(), 3U) << "a refusal is never remembered";
}

TEST(Authenticator, RecognisesCredentialsItHasSeenToBeRight) {
  Room room;
  room.verify(&room.user, {"user", "right"});
  EXPECT_EQ(room.authenticator.remembered({"user", "right"}), 3U);
  EXPECT_EQ(room.authenticator.remembered({"user", "wrong"}), 0U);
  bool at_once = false;
  room.authenticator.verify(&room.user, {"user", "right"},
                            [&](AuthOutcome outcome) { at_once = outcome == AuthOutcome::right; });
  EXPECT_TRUE(at_once);
  EXPECT_EQ(room.authenticator.computations(), 1U);
  const CredentialRecord another{4, "user", room.user.argon2};
  room.verify(&another, {"user", "right"});
  EXPECT_EQ(room.authenticator.computations(), 2U) << "of another credential nothing is known";
}

TEST(Authenticator, ForgetsTheCredentialsUnusedForLongestBeyondItsLimit) {
  Room room;
  const auto given = [](std::uint64_t id) { return Credentials{"user", "password " + std::to_string(id)}; };
  constexpr std::uint64_t most = limits::credentials_remembered_max / 2;  // each is remembered in two ways
  for (std::uint64_t id = 1; id <= most; ++id) room.authenticator.remember(id, given(id));
  EXPECT_EQ(room.authenticator.remembered(given(1)), 1U)
      << "the limit is not reached yet; now 1 was used last";
  for (const std::uint64_t id : {most + 1, most + 2}) room.authenticator.remember(id, given(id));
  EXPECT_EQ(room.authenticator.remembered(given(1)), 1U);
  EXPECT_EQ(room.authenticator.remembered(given(2)), 0U);
  EXPECT_EQ(room.authenticator.remembered(given(3)), 3U);
  EXPECT_EQ(room.authenticator.remembered(given(most + 1)), most + 1);
}

TEST(Authenticator, ChecksOnceForAllWhoAskTheSame) {
  Room room;
  int right = 0;
  for (int i = 0; i < 100; ++i) {
    room.authenticator.verify(&room.user, {"user", "right"},
                              [&](AuthOutcome outcome) { right += outcome == AuthOutcome::right ? 1 : 0; });
  }
  run_until(room.loop, [&] { return right == 100; });
  EXPECT_EQ(room.authenticator.computations(), 1U);
}

TEST(Authenticator, IsBusyWhenTooManyPasswordsWait) {
  Room room;
  int busy = 0;
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    room.authenticator.verify(&room.user, {"user", "wrong" + std::to_string(i)},
                              [&](AuthOutcome outcome) { ++(outcome == AuthOutcome::busy ? busy : wrong); });
  }
  EXPECT_GE(busy, 10) << "at most 4 wait and a few were done meanwhile";
  run_until(room.loop, [&] { return busy + wrong == 20; });
  EXPECT_GE(wrong, 4);
}

TEST(Authenticator, HashesTheSameCredentialsOnceForManyTopics) {
  Room room;
  int hashed = 0;
  int known = 0;
  const auto enrol = [&] {
    room.authenticator.enrol({"new", "secret"}, [&](const Result<Enrolment>& enrolment) {
      ASSERT_TRUE(enrolment.ok());
      if (enrolment.value().known_id != 0) {
        EXPECT_EQ(enrolment.value().known_id, 9U);
        ++known;
        return;
      }
      EXPECT_TRUE(verify_password(enrolment.value().argon2, "secret"));
      room.authenticator.remember(9, {"new", "secret"});
      ++hashed;
    });
  };
  for (int i = 0; i < 50; ++i) enrol();
  run_until(room.loop, [&] { return hashed + known == 50; });
  enrol();
  EXPECT_EQ(hashed, 1);
  EXPECT_EQ(known, 50);
  EXPECT_EQ(room.authenticator.computations(), 1U);
}

/// An authenticator whose clock stands still, and that keeps what it would do later.
struct StoppedRoom {
  std::vector<std::pair<std::chrono::milliseconds, std::function<void()>>> later;
  EventLoop loop;
  Authenticator authenticator{
      loop,
      "lightq_admin",
      Secret("adminpw"),
      1024,
      {.now = [] { return LoginThrottle::Time(std::chrono::hours(1)); },
       .later = [this](std::chrono::milliseconds delay,
                       std::function<void()> task) { later.emplace_back(delay, std::move(task)); }}};
  CredentialRecord user{3, "user", hash_password("right").value_or_throw()};
  std::vector<AuthOutcome> outcomes;

  void try_password(const std::string& password, const std::string& source) {
    authenticator.verify(
        &user, {"user", password}, [this](AuthOutcome got) { outcomes.push_back(got); }, source);
  }
  /// Whether that many have been answered, or wait for later.
  void wait_for(std::size_t answered, std::size_t held_back) {
    run_until(loop, [&] { return outcomes.size() == answered && later.size() == held_back; });
  }
};

TEST(Authenticator, HoldsBackTheAnswersToASourceThatFailsAgainAndAgain) {
  StoppedRoom room;
  for (int i = 0; i < 5; ++i) room.try_password("guess " + std::to_string(i), "attacker");
  room.wait_for(5, 0);
  room.try_password("guess 5", "attacker");
  room.try_password("guess 6", "attacker");
  room.wait_for(5, 2);
  EXPECT_EQ(room.later[0].first, std::chrono::milliseconds(16));
  EXPECT_EQ(room.later[1].first, std::chrono::milliseconds(32));
  room.try_password("right", "attacker");
  room.wait_for(6, 2);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::right) << "right ones are not held back";
  for (const auto& [delay, task] : room.later) task();
  EXPECT_EQ(room.outcomes.size(), 8U);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::wrong);
}

TEST(Authenticator, AnswersThatAreHeldBackAreUnderWay) {
  StoppedRoom room;
  const std::size_t most = limits::logins_waiting_per_source_max;
  for (std::size_t i = 0; i < 5; ++i) room.try_password("first " + std::to_string(i), "attacker");
  room.wait_for(5, 0);
  for (std::size_t i = 0; i < most; ++i) room.try_password("guess " + std::to_string(i), "attacker");
  room.wait_for(5, most);
  const auto before = room.authenticator.computations();
  room.try_password("one more", "attacker");
  ASSERT_EQ(room.outcomes.size(), 6U) << "at once";
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::busy);
  EXPECT_EQ(room.authenticator.throttled(), 1U);
  EXPECT_EQ(room.authenticator.computations(), before);
  room.try_password("right", "elsewhere");
  room.wait_for(7, most);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::right) << "others are not concerned";
  room.try_password("right", "attacker");
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::right) << "nor is who is remembered, wherever";
  room.later.front().second();
  room.try_password("one more", "attacker");
  room.wait_for(9, most + 1);
}

TEST(Authenticator, SourcesTakeTurnsAtTheWorker) {
  StoppedRoom room;
  std::vector<std::string> order;
  const auto ask = [&](const std::string& source, int number) {
    room.authenticator.verify(
        &room.user, {"user", source + std::to_string(number)},
        [&, source](AuthOutcome) { order.push_back(source); }, source);
  };
  for (int i = 0; i < 12; ++i) ask("many", i);
  ask("one", 0);
  run_until(room.loop, [&] { return std::ranges::count(order, "one") == 1; });
  EXPECT_LE(order.size(), 4U) << "behind what the worker had, and one of the others";
  run_until(room.loop, [&] { return order.size() + room.later.size() == 13; });
}

TEST(Secret, LeavesNothingBehindWhenItMoves) {
  Secret first("short");
  Secret second(std::move(first));
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): that is the promise
  EXPECT_EQ(second.expose(), "short");
  std::string text = "wipe me";
  const char* place = text.data();
  wipe_text(text);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(place[0], '\0');
  EXPECT_EQ(place[6], '\0');
}

}  // namespace
}  // namespace lightq::broker
