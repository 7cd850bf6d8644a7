/// Tests of session consumers over connections that break in every way. Every message is delivered, and no
/// message is delivered again after the broker surely received its acknowledgement. Also producers and groups
/// together.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/session_proxy_fixture.hpp"

namespace lightq::testing {
namespace {

using test::FaultMix;

/// The messages that the members of a group received, and those that must not be delivered again.
struct GroupRecord {
  std::set<std::uint64_t> seen;  // the offsets of received messages
  /// Offsets that were acknowledged over a connection that the broker closed in good order, with the number
  /// of that delivery.
  std::map<std::uint64_t, std::uint32_t> settled;
  /// Returns true if another member than the asking one may have left messages behind that it had not
  /// started. They have the number 1 at their next delivery, and may come after newer messages.
  std::function<bool()> may_have_leftovers;
};

/// A member of a group that acknowledges, rejects, leaves and rejoins at random.
class Member {
 public:
  Member(std::function<Consumer()> make, GroupRecord& record)
      : make_(std::move(make)), consumer_(make_()), record_(record) {}

  /// Receives available messages, and waits for at most 1 ms.
  void step(test::Random& random) {
    if (random.one_in(60)) return come_back();
    auto batch = consumer_.receive_batch(Timeout(random.below(2)));
    ASSERT_TRUE(batch.ok()) << batch.error().text();
    if (!batch->has_value()) return;
    look_at_connection();
    const std::uint32_t delivery = (*batch)->delivery();
    const OffsetRange range = (*batch)->range();
    ASSERT_EQ(0U, (*batch)->lost());
    if (delivery == 1) {
      ASSERT_TRUE(range.begin >= next_ || record_.may_have_leftovers()) << "out of order";
      next_ = std::max(next_, range.end);
    }
    for (const Delivered& message : **batch) take(message, delivery, random);
  }
  /// Closes the consumer and opens a new one. If the broker confirmed the close, the acknowledged messages
  /// are settled.
  void come_back() {
    look_at_connection();
    const bool told =
        consumer_.connected() && consumer_.close(Timeout(30'000)).ok() && opens_ == consumer_.stats().opens;
    if (told) record_.settled.insert(acknowledged_.begin(), acknowledged_.end());
    EXPECT_TRUE(!told || doubtful_.empty()) << "offset " << doubtful_.front() << " was delivered again";
    violations_ += consumer_.stats().violations;
    acknowledged_.clear();
    doubtful_.clear();
    received_.clear();
    consumer_ = make_();
    opens_ = 0;
    next_ = {};
  }
  /// Returns the offsets and texts of the messages since the last call.
  std::vector<std::pair<std::uint64_t, std::string>> take_contents() { return std::exchange(contents_, {}); }
  [[nodiscard]] std::uint64_t violations() const { return violations_ + consumer_.stats().violations; }

 private:
  /// Forgets acknowledgements that were sent over an earlier connection, because they may never have arrived.
  void look_at_connection() {
    if (consumer_.stats().opens == opens_) return;
    opens_ = consumer_.stats().opens;
    acknowledged_.clear();
    doubtful_.clear();
    received_.clear();
    next_ = {};
  }
  /// Handles one message. Its connection may have ended since, and a later delivery may have gone to another
  /// member that acknowledged the message. So only deliveries before the settled one are permitted. A
  /// delivery with the same number is permitted if it was not started, and so was not counted: then its
  /// connection has ended.
  void take(const Delivered& message, std::uint32_t delivery, test::Random& random) {
    const std::uint64_t offset = message.offset.value;
    const auto [known, is_new] = received_.emplace(offset, delivery);
    ASSERT_TRUE(is_new || std::exchange(known->second, delivery) < delivery)
        << "offset " << offset << " came twice over a connection with the number " << delivery;
    const auto done = record_.settled.find(offset);
    ASSERT_TRUE(done == record_.settled.end() || delivery <= done->second)
        << "offset " << offset << " was done with at delivery " << done->second << ", this is " << delivery;
    if (done != record_.settled.end() && delivery == done->second && !message.revoked())
      doubtful_.push_back(offset);
    contents_.emplace_back(offset, std::string(message.text()));
    record_.seen.insert(offset);
    if (random.one_in(40)) return consumer_.reject(message.offset, Timeout(random.below(3)));
    consumer_.acknowledge(message);
    acknowledged_.emplace_back(offset, delivery);
  }

  std::function<Consumer()> make_;
  Consumer consumer_;
  GroupRecord& record_;
  // Acknowledgements over the present connection.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> acknowledged_;
  std::vector<std::uint64_t> doubtful_;  // settled, and received over the present connection
  // The number of the last delivery of each message over the present connection. A message that the program
  // received was started, so its next delivery has a higher number.
  std::map<std::uint64_t, std::uint32_t> received_;
  std::vector<std::pair<std::uint64_t, std::string>> contents_;
  std::uint64_t opens_ = 0;
  Offset next_;
  std::uint64_t violations_ = 0;
};

class SessionProxyGroupTest : public SessionProxyTest, public ::testing::WithParamInterface<SeedAndWay> {
 protected:
  SessionProxyGroupTest() : SessionProxyTest(std::get<Spoken>(GetParam())) {}
  Member member() {
    return Member(
        [this] {
          return consumer({.group = "billing", .prefetch_messages = 200, .prefetch_bytes = 64 * limits::KiB});
        },
        record);
  }
  /// Returns the members. Messages may be left over once a connection was disturbed, or a member has come
  /// back. A sole member receives its own leftovers over a new connection, in order.
  /// `producers`: the other connections through the proxy.
  std::vector<Member> members(int count, std::uint64_t producers = 0) {
    const std::uint64_t undisturbed = static_cast<std::uint64_t>(count) + producers;
    record.may_have_leftovers = [this, count, undisturbed] {
      const test::FaultCounts faults = proxy->counts();
      const bool disturbed = faults.cuts + faults.stalls + faults.replays + faults.flips > 0;
      return count > 1 && (disturbed || faults.connections > undisturbed);
    };
    std::vector<Member> made;
    for (int i = 0; i < count; ++i) made.push_back(member());
    return made;
  }
  void fill(std::uint64_t count) {
    auto one = client.producer("orders").value_or_throw();
    for (std::uint64_t i = 0; i < count; ++i) one.send(message(0, i)).value_or_throw();
    one.close(deadline).value_or_throw();
  }
  GroupStats group_stats() {
    const auto stats = client.stats("orders").value_or_throw();
    for (const GroupStats& group : stats.groups)
      if (group.group == "billing") return group;
    return {};
  }
  /// Checks that the messages are those that were sent, and the same at each delivery.
  void check_contents(Member& member) {
    for (auto& [offset, text] : member.take_contents()) {
      const auto identity = identify(text);
      const auto [known, is_new] = contents_.emplace(offset, identity);
      ASSERT_EQ(identity, known->second) << "offset " << offset;
    }
  }
  void step(Member& member) {
    member.step(random);
    check_contents(member);
  }
  /// Runs the members until all `count` messages were delivered and the broker has received all
  /// acknowledgements.
  void finish(std::vector<Member>& members, std::uint64_t count) {
    const auto begun = std::chrono::steady_clock::now();
    for (std::uint64_t turn = 0;; ++turn) {
      for (Member& member : members) {
        step(member);
        if (HasFatalFailure()) return;
      }
      if (turn % 20 == 0 && record.seen.size() == count && group_stats().committed_offset == count) break;
      ASSERT_TRUE(in_time(begun)) << record.seen.size() << " of " << count << " seen, committed "
                                  << group_stats().committed_offset;
    }
    for (Member& member : members) member.come_back();
  }
  /// Checks that no member is left, and that no message is waiting or delivered again.
  void expect_settled(std::uint64_t count) {
    EXPECT_TRUE(proxy->wait_until_idle(deadline)) << "an end that nobody has noticed";
    const GroupStats stats = group_stats();
    EXPECT_EQ(count, stats.committed_offset);
    EXPECT_EQ(count, stats.next_offset);
    EXPECT_EQ(0U, stats.lag + stats.lost + stats.unacknowledged + stats.consumers + stats.oldest_ms);
    auto late = client.consumer("orders", {.group = "billing"}).value_or_throw();
    EXPECT_FALSE(late.receive(0ms).value_or_throw().has_value());
    std::map<std::uint64_t, std::uint64_t> next;  // the next number of each producer
    for (const auto& [offset, identity] : contents_)
      EXPECT_EQ(next[identity.first]++, identity.second) << offset;
    EXPECT_EQ(count, contents_.size());
  }

  GroupRecord record;
  test::Random random{std::get<int>(GetParam())};

 private:
  // By offset: the producer and the number of the message.
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> contents_;
};

TEST_P(SessionProxyGroupTest, DeliversEverythingThroughCutsAnywhere) {
  fill(3'000);
  begin(random.seed(), {.cut = 1, .to_broker_max = 4096, .connections_max = 80});
  std::vector<Member> members = this->members(1);
  finish(members, 3'000);
  EXPECT_EQ(0U, members.front().violations());
  members.clear();
  EXPECT_GT(proxy->counts().cuts, 3U);
  expect_settled(3'000);
  tell("proxy");
}

TEST_P(SessionProxyGroupTest, DeliversEverythingThroughAllNetworkFaults) {
  fill(3'000);
  begin(random.seed(), bearable({.cut = 1,
                                 .stall = 16,
                                 .replay = 4,
                                 .flip = 4,
                                 .to_broker_max = 4096,
                                 .to_client_max = 128 * 1024,
                                 .connections_max = 40}));
  std::vector<Member> members = this->members(2);
  finish(members, 3'000);
  members.clear();
  expect_settled(3'000);
  tell("proxy");
}

TEST_P(SessionProxyGroupTest, ProducersAndAGroupTogether) {
  constexpr std::uint64_t each = 1'000;
  begin(random.seed(), bearable({.cut = 2,
                                 .stall = 30,
                                 .replay = 8,
                                 .flip = 8,
                                 .to_broker_max = 8192,
                                 .to_client_max = 8192,
                                 .connections_max = 120}));
  std::vector<Producer> producers;
  for (int i = 0; i < 3; ++i) producers.push_back(producer({.batch_bytes = 8 * limits::KiB}));
  std::vector<Member> members = this->members(3, producers.size());
  const auto begun = std::chrono::steady_clock::now();
  for (bool busy = true; busy;) {
    ASSERT_TRUE(in_time(begun));
    busy = false;
    for (std::size_t i = 0; i < producers.size(); ++i) {
      const std::uint64_t sent = producers[i].stats().sent;
      const std::uint64_t burst = std::min(each - sent, random.below(60));
      for (std::uint64_t k = 0; k < burst; ++k) producers[i].send(message(i, sent + k)).value_or_throw();
      producers[i].poll(Timeout(0)).value_or_throw();
      busy |= producers[i].confirmed() < each;
    }
    for (Member& member : members) {
      step(member);
      if (HasFatalFailure()) return;
    }
  }
  for (Producer& one : producers) {
    expect_fine(one);
    ASSERT_TRUE(one.close(deadline).ok());
  }
  expect_log({each, each, each});
  finish(members, 3 * each);
  members.clear();
  expect_settled(3 * each);
  tell("proxy");
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionProxyGroupTest, each_seed(), seed_name);

}  // namespace
}  // namespace lightq::testing
