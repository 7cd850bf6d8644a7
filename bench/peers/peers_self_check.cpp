/// Lets a faulty server make each mistake. Layer: bench peers.
#include "peers/peers_self_check.hpp"

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

#include "peers/faulty_server.hpp"
#include "peers/work/backlog_work.hpp"
#include "peers/work/kill_work.hpp"
#include "peers/work/run_children.hpp"
#include "peers/work/stream_work.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t messages = 200;
constexpr std::uint64_t confirmed_min = 1'000;

/// Returns true if `work` throws an error with `wanted` in its text; for an empty one, if it does not
/// throw.
bool reports(const std::string& title, const std::string& wanted, const std::function<void()>& work) {
  std::string found;
  try {
    work();
  } catch (const std::exception& problem) {
    found = problem.what();
  }
  const bool good = wanted.empty() ? found.empty() : found.find(wanted) != std::string::npos;
  std::printf("%s %s: %s\n", good ? "ok  " : "FAIL", title.c_str(),
              found.empty() ? "no error" : found.c_str());
  return good;
}

void stream(Mistake mistake, bool ordered, Pattern pattern = Pattern::stream) {
  FaultyServer server(mistake);
  StreamWork work;
  work.queue.pattern = pattern;
  work.queue.consumers = pattern == Pattern::fan_out ? 3 : 1;
  work.messages = messages;
  work.ordered = ordered;
  run_stream_work(server, work);
}

void backlog(Mistake mistake) {
  FaultyServer server(mistake);
  BacklogWork work;
  work.queue.pattern = Pattern::work_queue;
  work.messages = messages;
  work.handlers.assign(3, std::chrono::microseconds(100));
  run_backlog_work(server, work);
}

void expect_lost(Mistake mistake, bool all) {
  FaultyServer server(mistake);
  const KillCount count = run_kill_work(server, {}, confirmed_min);
  const std::uint64_t wanted = all ? count.confirmed : 0;
  if (count.confirmed < confirmed_min || count.lost != wanted)
    throw std::runtime_error(std::to_string(count.lost) + " of " + std::to_string(count.confirmed) +
                             " count as lost");
}

void expect_altered() {
  FaultyServer server(Mistake::damage);
  const KillCount count = run_kill_work(server, {}, confirmed_min);
  if (count.altered != 1)
    throw std::runtime_error(std::to_string(count.altered) + " messages count as altered");
}

}  // namespace

bool self_check_peers() {
  const bool results[] = {
      reports("nothing wrong, in order", "", [] { stream(Mistake::none, true); }),
      reports("nothing wrong, in any order", "", [] { stream(Mistake::none, false); }),
      reports("nothing wrong, three readers", "", [] { stream(Mistake::none, true, Pattern::fan_out); }),
      reports("nothing wrong, three workers", "", [] { backlog(Mistake::none); }),
      reports("a lost message", "consumer 1: ", [] { stream(Mistake::lose, true); }),
      reports("a repeated message", "consumer 1: ", [] { stream(Mistake::repeat, true); }),
      reports("a repeated message, in any order", "twice", [] { stream(Mistake::repeat, false); }),
      reports("swapped messages", "consumer 1: ", [] { stream(Mistake::swap, true); }),
      reports("swapped messages, in any order", "", [] { stream(Mistake::swap, false); }),
      reports("a damaged message", "consumer 1: ", [] { stream(Mistake::damage, true); }),
      reports("a damaged message, in any order", "altered", [] { stream(Mistake::damage, false); }),
      reports("a damaged message, three readers", "consumer ",
              [] { stream(Mistake::damage, true, Pattern::fan_out); }),
      reports("a message without a confirm", "were confirmed instead of",
              [] { stream(Mistake::no_confirm, true); }),
      reports("a message without an acknowledgement", "1 messages are left in the queue",
              [] { stream(Mistake::not_settled, true); }),
      reports("a repeated message, three workers", "came to two workers, or twice",
              [] { backlog(Mistake::repeat); }),
      reports("a damaged message, three workers", "altered", [] { backlog(Mistake::damage); }),
      reports("a server that keeps everything", "", [] { expect_lost(Mistake::none, false); }),
      reports("a server that loses everything", "", [] { expect_lost(Mistake::lose_all_dead, true); }),
      reports("a damaged message after a kill", "", expect_altered),
  };
  bool all = true;
  for (const bool good : results) all = all && good;
  return all;
}

}  // namespace lightq::bench
