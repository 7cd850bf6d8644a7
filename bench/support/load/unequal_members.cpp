/// The publisher and the members of a group with a backlog. Layer: bench support.
#include "support/load/unequal_members.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <span>
#include <string>

#include "support/child_process.hpp"
#include "support/once_check.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

constexpr Timeout look_interval{20};

/// Shared memory in which a member records results.
struct MemberBoard {
  std::uint64_t handled;
  std::uint64_t handler_ns;  // of all handlers together
  std::uint64_t last_done_ns;
};

struct BacklogRun {
  BacklogRun(const SessionEnds& session_ends, const StreamPlan& plan, const UnequalMembers& unequal)
      : stream({}, plan),
        ends(session_ends),
        members(unequal),
        check(stream.id, plan.message_count, stream.pattern),
        boards(members.work.size()) {}

  StreamRun stream;
  SessionEnds ends;
  const UnequalMembers& members;
  OnceCheck check;
  SharedArray<MemberBoard> boards;
  SharedArray<std::atomic<std::size_t>> open{1};     // members that have opened the topic
  SharedArray<std::atomic<std::uint64_t>> begin{1};  // the time at which all had
};

int publish_backlog(BacklogRun& run) {
  Client client = connect_to(run.ends);
  Producer producer = client.producer(run.ends.topic, {}, run.ends.transport).value_or_throw();
  const MessagePattern& pattern = run.stream.pattern;
  for (std::uint64_t i = 0; i < run.stream.plan.message_count; ++i) {
    const auto write = [&](std::span<std::byte> to) {
      pattern.write({run.stream.id, MessageKind::data, i, 0}, to.data());
    };
    producer.send_in_place(pattern.message_bytes(), write).value_or_throw();
  }
  producer.close(stream_patience).value_or_throw();
  return 0;
}

void sleep_for(std::chrono::microseconds time) {
  const auto nanoseconds = std::chrono::nanoseconds(time).count();
  const timespec wanted{static_cast<time_t>(nanoseconds / 1'000'000'000),
                        static_cast<long>(nanoseconds % 1'000'000'000)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, nullptr);
}

/// Waits until all members have opened the topic. Returns false if they do not come.
bool wait_for_members(BacklogRun& run) {
  const Clock::time_point give_up = Clock::now() + stream_patience;
  std::uint64_t none = 0;
  if (++run.open[0] == run.boards.size()) run.begin[0].compare_exchange_strong(none, now_ns());
  while (run.begin[0] == 0) {
    if (Clock::now() > give_up) return false;
    sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

int handle_messages(BacklogRun& run, std::size_t place) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  MemberBoard& board = run.boards[place];
  Client client = connect_to(run.ends);
  Consumer consumer = client.consumer(run.ends.topic, {}, run.ends.transport).value_or_throw();
  consumer.wait_open(stream_patience).value_or_throw();
  if (!wait_for_members(run)) return run.stream.fail("not all members came");
  Clock::time_point give_up = Clock::now() + stream_patience;
  while (!run.check.is_complete()) {
    const auto message = consumer.receive(look_interval).value_or_throw();
    if (!message) {
      if (Clock::now() < give_up) continue;
      return run.stream.fail("messages are missing: " + std::to_string(run.check.finished()) + " were done");
    }
    const auto number = run.check.number_of(message->payload);
    if (!number) return run.stream.fail("a message came altered, or from another run");
    const std::uint64_t begun_ns = now_ns();
    sleep_for(run.members.work[place]);
    board.last_done_ns = now_ns();
    board.handler_ns += board.last_done_ns - begun_ns;
    board.handled += 1;
    consumer.acknowledge(*message);
    if (!run.check.finish(*number)) return run.stream.fail("a message came to two members, or twice");
    give_up = Clock::now() + stream_patience;
  }
  consumer.close(stream_patience).value_or_throw();
  return 0;
}

Result<void> run_roles(BacklogRun& run, const std::vector<std::function<int()>>& roles,
                       const std::vector<std::string>& names) {
  std::vector<ChildProcess> children;
  for (const std::function<int()>& role : roles) {
    Result<ChildProcess> child = ChildProcess::start([&] {
      try {
        return role();
      } catch (const std::exception& problem) {
        return run.stream.fail(problem.what());
      }
    });
    if (!child) return child.error();
    children.push_back(std::move(child).value());
  }
  const Result<void> ended = wait_for_all(children, names, Clock::now() + run.stream.plan.time_max);
  if (run.stream.seen().fault[0] != '\0') return failure(run.stream.seen().fault);
  return ended;
}

BacklogTimes times_of(BacklogRun& run) {
  std::uint64_t last = 0;
  std::vector<double> handler_seconds;
  for (std::size_t i = 0; i < run.boards.size(); ++i) {
    const MemberBoard& board = run.boards[i];
    last = std::max(last, board.last_done_ns);
    // A member that came too late for any message: its handler takes the time for which it is told to sleep.
    const double mean = board.handled > 0
                            ? static_cast<double>(board.handler_ns) / static_cast<double>(board.handled) / 1e9
                            : std::chrono::duration<double>(run.members.work[i]).count();
    handler_seconds.push_back(mean);
  }
  return {static_cast<double>(last - run.begin[0]) / 1e9,
          ideal_seconds_of(run.stream.plan.message_count, handler_seconds)};
}

}  // namespace

double ideal_seconds_of(std::uint64_t messages, const std::vector<double>& handler_seconds) {
  double per_second = 0;
  for (const double seconds : handler_seconds) {
    if (seconds > 0) per_second += 1 / seconds;
  }
  return per_second > 0 ? static_cast<double>(messages) / per_second : 0;
}

Result<BacklogTimes> run_backlog(const SessionEnds& ends, const StreamPlan& plan,
                                 const UnequalMembers& members) {
  BacklogRun run(ends, plan, members);
  if (auto published = run_roles(run, {[&run] { return publish_backlog(run); }}, {"producer"}); !published)
    return published.error();
  std::vector<std::function<int()>> roles;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < members.work.size(); ++i) {
    roles.emplace_back([&run, i] { return handle_messages(run, i); });
    names.push_back("member " + std::to_string(i + 1));
  }
  if (auto worked = run_roles(run, roles, names); !worked) return worked.error();
  return times_of(run);
}

}  // namespace lightq::bench
