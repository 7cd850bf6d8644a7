/// Part `slow-member`: a group of four members with default options, one of which is 100 times slower. Layer:
/// bench.
#include <chrono>
#include <string>

#include "delivery/delivery_suite.hpp"
#include "support/load/unequal_members.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t backlog_messages = 5'000;
constexpr int slow_factor = 100;
constexpr int slow_member_rounds = 5;
// The ratios are ideal / time: the goal is 1.3 times the ideal time, and the floor 1.5 times.
constexpr double slow_member_goal = 1 / 1.3;
constexpr double slow_member_floor = 1 / 1.5;

void measure_backlog(DeliverySuite& suite, BrokerRoute& route, const std::string& name,
                     std::chrono::microseconds work) {
  const UnequalMembers members{{work, work, work, work * slow_factor}};
  StreamPlan plan;
  plan.message_count = backlog_messages;
  std::vector<double> seconds;
  std::vector<double> ideal;
  for (int round = 0; round <= suite.options().rounds(slow_member_rounds); ++round) {
    throw_if_stopped();
    const BacklogTimes times = run_backlog(session_ends_of(route), plan, members).value_or_throw();
    if (round == 0) continue;
    seconds.push_back(times.seconds);
    ideal.push_back(times.ideal_seconds);
  }
  suite.add(compare(name,
                    "5,000 messages, four members, handlers of " + std::to_string(work.count()) +
                        " µs, one 100 times slower",
                    "s", Better::less, seconds, "ideal", ideal),
            slow_member_goal, slow_member_floor);
}

}  // namespace

void measure_slow_member(DeliverySuite& suite) {
  const auto route =
      BrokerRoute::start(suite.options().broker_binary, {{"broker_type", "queue"}}).value_or_throw();
  route->prepare("slow-member").value_or_throw();
  measure_backlog(suite, *route, "slow_member", std::chrono::microseconds(1'000));
  measure_backlog(suite, *route, "slow_member_200us", std::chrono::microseconds(200));
}

}  // namespace lightq::bench
