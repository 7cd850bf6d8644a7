/// Tests of access/authenticator: checking passwords outside the control thread.
#include "access/authenticator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/loop_thread.hpp"
#include "support/planted.hpp"

namespace lightq::broker {
namespace {

using protocol::Credentials;
using test::run_until;

struct Room {
  explicit Room(std::size_t waiting_max = 1024)
      : authenticator(loop, "lightq_admin", Secret(planted::admin_password), waiting_max) {}
  EventLoop loop;
  Authenticator authenticator;
  CredentialRecord user{3, "user", hash_password(planted::user_password).value_or_throw()};

  AuthOutcome verify(const CredentialRecord* credential, Credentials given) {
    std::optional<AuthOutcome> outcome;
    authenticator.verify(credential, std::move(given), [&](AuthOutcome got) { outcome = got; });
    run_until(loop, [&] { return outcome.has_value(); });
    return outcome.value_or(AuthOutcome::busy);
  }
  AuthOutcome verify_admin(Credentials given) {
    const CredentialRecord* const credential = authenticator.admin_credential(given.user_id);
    return verify(credential, std::move(given));
  }
};

TEST(PasswordHash, KnowsItsPasswordAndNoOther) {
  const auto text = hash_password(planted::user_password).value_or_throw();
  EXPECT_TRUE(text.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << text;
  EXPECT_TRUE(verify_password(text, planted::user_password));
  EXPECT_FALSE(verify_password(text, "wrong"));
  EXPECT_FALSE(verify_password(text, ""));
  EXPECT_FALSE(verify_password("nonsense", planted::user_password));
  EXPECT_FALSE(verify_password(std::string(1000, '$'), planted::user_password));
  EXPECT_NE(hash_password(planted::user_password).value_or_throw(), text) << "no salt";
}

TEST(PasswordHash, GeneratesTextsWithTheRequestedBits) {
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

TEST(Authenticator, DistinguishesCorrectFromWrongPasswords) {
  Room room;
  EXPECT_EQ(room.verify(&room.user, {"user", planted::user_password}), AuthOutcome::right);
  EXPECT_EQ(room.verify(&room.user, {"user", "wrong"}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify(&room.user, {"other", planted::user_password}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify(nullptr, {"user", planted::user_password}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify_admin({"lightq_admin", planted::admin_password}), AuthOutcome::right);
  EXPECT_EQ(room.verify_admin({"lightq_admin", planted::user_password}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify_admin({"user", planted::admin_password}), AuthOutcome::wrong);
  EXPECT_EQ(room.verify(nullptr, {"lightq_admin", planted::admin_password}), AuthOutcome::wrong)
      << "the admin's password is nobody's";
}

TEST(Authenticator, AnUnknownUserCostsAsMuchWorkAsAWrongPassword) {
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
  room.verify(&room.user, {"user", planted::user_password});
  EXPECT_EQ(room.authenticator.remembered({"user", planted::user_password}), 3U);
  EXPECT_EQ(room.authenticator.remembered({"user", "wrong"}), 0U);
  bool at_once = false;
  room.authenticator.verify(&room.user, {"user", planted::user_password},
                            [&](AuthOutcome outcome) { at_once = outcome == AuthOutcome::right; });
  EXPECT_TRUE(at_once);
  EXPECT_EQ(room.authenticator.computations(), 1U);
  const CredentialRecord another{4, "user", room.user.argon2};
  room.verify(&another, {"user", planted::user_password});
  EXPECT_EQ(room.authenticator.computations(), 2U) << "of another credential nothing is known";
}

TEST(Authenticator, ForgetsTheCredentialsUnusedForLongestBeyondItsLimit) {
  Room room;
  const auto given = [](std::uint64_t id) { return Credentials{"user", "password " + std::to_string(id)}; };
  constexpr std::uint64_t most = limits::credentials_remembered_max / 2;  // each credential has two entries
  for (std::uint64_t id = 1; id <= most; ++id) room.authenticator.remember(id, given(id));
  EXPECT_EQ(room.authenticator.remembered(given(1)), 1U)
      << "the limit is not reached yet; now 1 was used last";
  for (const std::uint64_t id : {most + 1, most + 2}) room.authenticator.remember(id, given(id));
  EXPECT_EQ(room.authenticator.remembered(given(1)), 1U);
  EXPECT_EQ(room.authenticator.remembered(given(2)), 0U);
  EXPECT_EQ(room.authenticator.remembered(given(3)), 3U);
  EXPECT_EQ(room.authenticator.remembered(given(most + 1)), most + 1);
}

TEST(Authenticator, ChecksEqualCredentialsOnceForAllRequests) {
  Room room;
  int right = 0;
  for (int i = 0; i < 100; ++i) {
    room.authenticator.verify(&room.user, {"user", planted::user_password},
                              [&](AuthOutcome outcome) { right += outcome == AuthOutcome::right ? 1 : 0; });
  }
  run_until(room.loop, [&] { return right == 100; });
  EXPECT_EQ(room.authenticator.computations(), 1U);
}

TEST(Authenticator, IsBusyWhenTooManyPasswordsWait) {
  Room room(4);
  int busy = 0;
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    room.authenticator.verify(&room.user, {"user", "wrong" + std::to_string(i)},
                              [&](AuthOutcome outcome) { ++(outcome == AuthOutcome::busy ? busy : wrong); });
  }
  EXPECT_EQ(busy, 18) << "one is computed, and one waits: a source has a quarter of the places";
  run_until(room.loop, [&] { return busy + wrong == 20; });
  EXPECT_EQ(wrong, 2);
  EXPECT_EQ(room.authenticator.throttled(), 18U);
}

TEST(Authenticator, HashesTheSameCredentialsOnceForManyTopics) {
  Room room;
  int hashed = 0;
  int known = 0;
  const auto enrol = [&] {
    room.authenticator.enrol({"new", planted::new_password}, [&](const Result<Enrolment>& enrolment) {
      ASSERT_TRUE(enrolment.ok());
      if (enrolment.value().known_id != 0) {
        EXPECT_EQ(enrolment.value().known_id, 9U);
        ++known;
        return;
      }
      EXPECT_TRUE(verify_password(enrolment.value().argon2, planted::new_password));
      room.authenticator.remember(9, {"new", planted::new_password});
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

TEST(Authenticator, SharesAComputationOnlyBetweenEqualCredentials) {
  Room room;
  const CredentialRecord other{4, "user", room.user.argon2};
  // Only requests with the same source and subject share a computation. It makes no difference which
  // credential the broker knows.
  const std::vector<Asking> subjects = {{"a", ""}, {"a", "topic t"}, {"b", "topic t"}, {"a", "topic u"}};
  int runs = 0;
  for (const CredentialRecord* const first :
       std::vector<const CredentialRecord*>{&room.user, &other, nullptr}) {
    for (const CredentialRecord* const second : {first, static_cast<const CredentialRecord*>(nullptr)}) {
      for (std::size_t i = 0; i < subjects.size(); ++i) {
        const std::string run = std::to_string(++runs);  // a new source without known failures
        const auto before = room.authenticator.computations();
        const auto ask = [&](const CredentialRecord* credential, const Asking& asking) {
          room.authenticator.verify(credential, {"user", "wrong"}, [](AuthOutcome) {},
                                    {run + asking.source, asking.subject});
        };
        ask(first, subjects[0]);
        ask(second, subjects[i]);
        run_until(room.loop, [&] { return !room.authenticator.is_computing(); });
        EXPECT_EQ(room.authenticator.computations() - before, i == 0 ? 1U : 2U) << i;
      }
    }
  }
}

TEST(Authenticator, ComputesACorrectPasswordOnceForAllRequests) {
  Room room;
  std::size_t right = 0;
  for (int i = 0; i < 200; ++i) {
    room.authenticator.verify(&room.user, {"user", planted::user_password},
                              [&](AuthOutcome got) { right += got == AuthOutcome::right ? 1 : 0; },
                              {.source = {}, .subject = "topic " + std::to_string(i)});
  }
  run_until(room.loop, [&] { return right == 200; });
  EXPECT_EQ(room.authenticator.computations(), 1U);
}

/// An authenticator with a clock that the test advances. It queues delayed tasks.
struct StoppedRoom {
  explicit StoppedRoom(std::size_t most = 1024) : waiting_max(most) {}
  const std::size_t waiting_max;
  LoginThrottle::Time now{std::chrono::hours(1)};
  std::vector<std::pair<LoginThrottle::Time, std::function<void()>>> later;
  EventLoop loop;
  Authenticator authenticator{
      loop,
      "lightq_admin",
      Secret(planted::admin_password),
      waiting_max,
      {.now = [this] { return now; },
       .later = [this](std::chrono::milliseconds delay,
                       std::function<void()> task) { later.emplace_back(now + delay, std::move(task)); }}};
  CredentialRecord user{3, "user", hash_password(planted::user_password).value_or_throw()};
  std::vector<AuthOutcome> outcomes;

  void try_password(const std::string& password, const std::string& source,
                    const std::string& name = "user") {
    authenticator.verify(name == "user" ? &user : nullptr, {name, password},
                         [this](AuthOutcome got) { outcomes.push_back(got); }, {source, {}});
  }
  /// Advances the clock and runs the tasks that are due.
  void pass(std::chrono::milliseconds time) {
    now += time;
    auto tasks = std::exchange(later, {});
    for (auto& task : tasks) {
      if (task.first > now) {
        later.push_back(std::move(task));
      } else {
        task.second();
      }
    }
  }
  void wait_for_computations(std::uint64_t count) {
    run_until(loop, [&] { return authenticator.computations() == count && is_idle(); });
  }
  [[nodiscard]] bool is_idle() const { return !authenticator.is_computing(); }
  /// Sends wrong passwords until the source waits one second for each reply.
  void slow_down(const std::string& source, int failures = 12) {
    for (int i = 0; i < failures; ++i) {
      try_password("slow " + std::to_string(i), source, "anybody");
      wait_for_computations(authenticator.computations());
      pass(std::chrono::milliseconds(1000));
    }
    outcomes.clear();
  }
};

TEST(Authenticator, HoldsBackTheAnswersToASourceThatFailsAgainAndAgain) {
  StoppedRoom room;
  for (int i = 0; i < 5; ++i) room.try_password("guess " + std::to_string(i), "attacker");
  room.wait_for_computations(5);
  EXPECT_EQ(room.outcomes.size(), 5U);
  room.try_password("guess 5", "attacker");
  room.wait_for_computations(6);
  ASSERT_EQ(room.later.size(), 1U);
  EXPECT_EQ(room.later[0].first - room.now, std::chrono::milliseconds(16));
  room.pass(std::chrono::milliseconds(15));
  EXPECT_EQ(room.outcomes.size(), 5U);
  room.try_password(planted::user_password, "attacker");
  room.wait_for_computations(7);
  EXPECT_EQ(room.outcomes.size(), 6U);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::right) << "right ones are not held back";
  room.pass(std::chrono::milliseconds(1));
  EXPECT_EQ(room.outcomes.size(), 7U);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::wrong);
}

TEST(Authenticator, DelayedRepliesDoNotDelayOtherRequests) {
  StoppedRoom room;
  room.slow_down("attacker");
  const auto before = room.authenticator.computations();
  constexpr std::size_t most = limits::logins_waiting_slowed_max;
  for (std::size_t i = 0; i < most; ++i) {
    room.try_password("guess " + std::to_string(i), "attacker", "zed");
    room.wait_for_computations(before + i + 1);
    room.pass(std::chrono::milliseconds(32));
  }
  EXPECT_TRUE(room.outcomes.empty()) << "all are held back";
  room.try_password(planted::user_password, "attacker");
  room.wait_for_computations(before + most + 1);
  ASSERT_EQ(room.outcomes.size(), 1U);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::right);
  EXPECT_EQ(room.authenticator.throttled(), 0U);
}

TEST(Authenticator, ASlowedSourceComputesAtABoundedRate) {
  StoppedRoom room;
  room.slow_down("attacker");
  const auto before = room.authenticator.computations();
  for (int i = 0; i < 12; ++i) room.try_password("guess " + std::to_string(i), "attacker", "zed");
  room.try_password(planted::user_password, "elsewhere");
  run_until(room.loop, [&] { return room.outcomes.size() == 1 && room.is_idle(); });
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::right) << "others are not concerned";
  EXPECT_EQ(room.authenticator.computations() - before, 2U);
  for (std::uint64_t done = 2; done < 6; ++done) {
    room.pass(std::chrono::milliseconds(31));
    EXPECT_EQ(room.authenticator.computations() - before, done);
    room.pass(std::chrono::milliseconds(1));
    room.wait_for_computations(before + done + 1);
  }
}

TEST(Authenticator, AUserWithManyGuessesMakesRoomForAnotherNameOfItsSource) {
  StoppedRoom room;
  room.slow_down("attacker");
  const auto before = room.authenticator.computations();
  constexpr std::size_t most = limits::logins_waiting_slowed_max;
  // The worker computes one request, and `most` wait.
  for (std::size_t i = 0; i <= most; ++i) room.try_password("guess " + std::to_string(i), "attacker", "zed");
  EXPECT_TRUE(room.outcomes.empty());
  room.try_password("another", "attacker", "zed");
  ASSERT_EQ(room.outcomes.size(), 1U);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::busy);
  room.try_password(planted::user_password, "attacker");
  ASSERT_EQ(room.outcomes.size(), 2U);
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::busy) << "the newest of the other name";
  EXPECT_EQ(room.authenticator.throttled(), 2U);
  room.wait_for_computations(before + 1);
  room.pass(std::chrono::milliseconds(32));
  room.wait_for_computations(before + 2);
  room.pass(std::chrono::milliseconds(32));
  room.wait_for_computations(before + 3);
  ASSERT_EQ(room.outcomes.size(), 3U) << "its turn came after one of the other name";
  EXPECT_EQ(room.outcomes.back(), AuthOutcome::right);
}

TEST(Authenticator, SendsTheOldestDelayedReplyEarlyWhenThereAreTooMany) {
  StoppedRoom room;
  room.slow_down("attacker");
  const auto before = room.authenticator.computations();
  constexpr std::size_t most = limits::answers_held_back_per_source_max;
  constexpr std::size_t each = limits::logins_waiting_slowed_max + 1;
  std::size_t asked = 0;
  for (std::uint64_t done = 1; asked < most; ++done) {
    for (std::size_t i = 0; i < each; ++i)
      room.try_password("guess " + std::to_string(done), "attacker", "zed");
    asked += each;
    room.wait_for_computations(before + done);
    room.now += std::chrono::milliseconds(32);  // while no delayed task runs
  }
  EXPECT_EQ(room.outcomes, std::vector<AuthOutcome>(asked - most, AuthOutcome::wrong));
  room.pass(std::chrono::milliseconds(1000));
  EXPECT_EQ(room.outcomes.size(), asked) << "each is given once";
}

TEST(Authenticator, NewPasswordsDoNotWaitBehindPasswordChecks) {
  StoppedRoom room;
  room.slow_down("attacker");
  for (std::size_t i = 0; i < 40; ++i) room.try_password("guess " + std::to_string(i), "attacker", "zed");
  const auto before = room.authenticator.computations();
  std::optional<std::uint64_t> tried_first;
  room.authenticator.hash(
      Secret(planted::new_password),
      [&](const Result<std::string>& got) {
        EXPECT_TRUE(got.ok());
        tried_first = room.authenticator.computations() - before;
      },
      "attacker");
  run_until(room.loop, [&] { return tried_first.has_value(); });
  EXPECT_LE(tried_first, 2U) << "the one at the worker, and its own";
}

TEST(Authenticator, AUserWithManyRememberedPasswordsDoesNotDelayOthersOfItsSource) {
  StoppedRoom room;
  std::size_t busy = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    room.authenticator.hash(
        Secret("new " + std::to_string(i)), [&](const Result<std::string>& got) { busy += got.ok() ? 0 : 1; },
        "source", "ann");
  }
  bool hashed = false;
  room.authenticator.hash(
      Secret(planted::new_password), [&](const Result<std::string>& got) { hashed = got.ok(); }, "source",
      "administrator");
  run_until(room.loop, [&] { return hashed; });
  EXPECT_GE(busy, 60 - limits::passwords_waiting_per_source_max - 1);
}

TEST(Authenticator, CountsEachRefusalByTheNameOfItsLimitAndNoOther) {
  StoppedRoom room(8);  // at most two for each source
  LimitCounts counts;
  room.authenticator.count_in(counts);
  const auto counted = [&] {
    std::map<std::string, std::uint64_t> reached;
    for (const auto& [name, count] : counts.all()) {
      if (count > 0) reached.emplace(name, count);
    }
    return reached;
  };
  using Reached = std::map<std::string, std::uint64_t>;
  // The worker computes the first request.
  for (int i = 0; i < 3; ++i) room.try_password("guess " + std::to_string(i), "a", "zed");
  EXPECT_EQ(counted(), Reached());
  room.try_password("guess", "a", "zed");
  EXPECT_EQ(counted(), (Reached{{"logins_waiting_per_source_max", 1}}));
  for (const char* source : {"b", "b", "c", "c", "d", "d"}) {
    room.try_password(source + std::to_string(room.later.size()), source, std::string("of ") + source);
  }
  room.try_password("right", "e");
  EXPECT_EQ(counted(), (Reached{{"logins_waiting_max", 1}, {"logins_waiting_per_source_max", 1}}));
  run_until(room.loop, [&] { return room.is_idle(); });

  StoppedRoom slowed;
  LimitCounts of_slowed;
  slowed.slow_down("a");
  slowed.authenticator.count_in(of_slowed);
  for (std::size_t i = 0; i <= limits::logins_waiting_slowed_max + 1; ++i)
    slowed.try_password("guess " + std::to_string(i), "a", "zed");
  EXPECT_EQ(of_slowed.of(Limit::logins_waiting_slowed_max), 1U);
  EXPECT_EQ(of_slowed.of(Limit::logins_waiting_per_source_max), 0U);
  for (std::size_t i = 0; i <= limits::passwords_waiting_per_source_max; ++i)
    slowed.authenticator.hash(Secret("new"), [](const Result<std::string>&) {}, "b");
  EXPECT_EQ(of_slowed.of(Limit::passwords_waiting_per_source_max), 1U) << "the worker has another's";
  EXPECT_EQ(of_slowed.of(Limit::logins_waiting_slowed_max), 1U);
  EXPECT_EQ(slowed.authenticator.throttled(), 2U);
  run_until(slowed.loop, [&] { return slowed.is_idle(); });
}

TEST(Authenticator, RemembersUpToItsLimit) {
  Room room;
  room.authenticator.remember_at_most(4);
  for (std::uint64_t id = 1; id <= 3; ++id)
    room.authenticator.remember(id, {"user", "password " + std::to_string(id)});
  EXPECT_EQ(room.authenticator.remembered({"user", "password 1"}), 0U);
  EXPECT_EQ(room.authenticator.remembered({"user", "password 2"}), 2U);
  EXPECT_EQ(room.authenticator.remembered({"user", "password 3"}), 3U);
}

TEST(Authenticator, SourcesTakeTurnsAtTheWorker) {
  StoppedRoom room;
  std::vector<std::string> order;
  const auto ask = [&](const std::string& source, int number) {
    room.authenticator.verify(&room.user, {"user", source + std::to_string(number)},
                              [&, source](AuthOutcome) { order.push_back(source); }, {source, {}});
  };
  for (int i = 0; i < 12; ++i) ask("many", i);
  ask("one", 0);
  run_until(room.loop, [&] { return std::ranges::count(order, "one") == 1; });
  EXPECT_LE(order.size(), 3U) << "behind what the worker had, and one of the others";
}

}  // namespace
}  // namespace lightq::broker
