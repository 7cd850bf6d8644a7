/// Forks the two ends of a stream and computes the result from their records. Layer: bench support.
#include "support/stream_run.hpp"

#include <array>
#include <cstring>
#include <random>

#include "support/child_process.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

constexpr int linger_ms = 10'000;
constexpr std::size_t curve_key_characters = 40;
// A paced producer may end later than planned by this fraction of the plan, plus a fixed time for one hiccup.
constexpr double lateness_max = 0.05;
constexpr double hiccup_seconds_max = 0.2;

StreamResult throughput_of(StreamRun& run) {
  StreamResult result;
  result.seconds = static_cast<double>(run.seen().last_receive_ns - run.seen().first_receive_ns) / 1e9;
  if (result.seconds > 0) {
    result.messages_per_second = static_cast<double>(run.plan.message_count) / result.seconds;
  }
  return result;
}

/// Adds the latencies of a paced run to the result. Returns an error if the producer fell behind its clock,
/// because then fewer messages were under way than planned.
Result<StreamResult> with_latency(StreamRun& run, StreamResult result) {
  const double seconds = static_cast<double>(run.seen().send_end_ns - run.seen().send_begin_ns) / 1e9;
  const double planned = static_cast<double>(run.plan.message_count) / run.plan.messages_per_second;
  if (seconds > planned * (1 + lateness_max) + hiccup_seconds_max) {
    return failure("the producer took " + std::to_string(seconds) + " s for what is due in " +
                   std::to_string(planned) + " s");
  }
  for (std::size_t i = run.latency_ns.size() / 10; i < run.latency_ns.size(); ++i) {
    result.latency_us.push_back(static_cast<double>(run.latency_ns[i]) / 1e3);
  }
  return result;
}

}  // namespace

StreamKeys StreamKeys::generate(std::string server_key) {
  std::array<char, curve_key_characters + 1> public_key{};
  std::array<char, curve_key_characters + 1> secret_key{};
  zmq_curve_keypair(public_key.data(), secret_key.data());
  return {std::move(server_key), public_key.data(), secret_key.data()};
}

StreamRun::StreamRun(const StreamEnds& stream_ends, const StreamPlan& stream_plan)
    : ends(stream_ends),
      plan(stream_plan),
      pattern(plan.message_bytes),
      latency_ns(plan.messages_per_second > 0 ? plan.message_count : 1) {
  std::random_device random;
  id = std::uint64_t{random()} << 32 | random();
}

int StreamRun::fail(const std::string& fault) {
  if (seen().fault[0] == '\0') std::strncpy(seen().fault, fault.c_str(), sizeof seen().fault - 1);
  return 1;
}

zmq::socket_t client_socket(zmq::context_t& context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::sndhwm, client_high_water_messages);
  socket.set(zmq::sockopt::rcvhwm, client_high_water_messages);
  socket.set(zmq::sockopt::linger, linger_ms);
  return socket;
}

Result<StreamResult> run_stream(const StreamEnds& ends, const StreamPlan& plan) {
  StreamRun run(ends, plan);
  std::vector<ChildProcess> children;
  const std::pair<const char*, int (*)(StreamRun&)> roles[] = {{"consumer", consume}, {"producer", produce}};
  std::vector<std::string> names;
  for (const auto& [name, work] : roles) {
    Result<ChildProcess> child = ChildProcess::start([&run, work = work] { return work(run); });
    if (!child) return child.error();
    children.push_back(std::move(child).value());
    names.emplace_back(name);
  }
  const Result<void> ended = wait_for_all(children, names, Clock::now() + plan.time_max);
  if (run.seen().fault[0] != '\0') return failure(run.seen().fault);
  if (!ended) return ended.error();
  const StreamResult result = throughput_of(run);
  if (run.paced()) return with_latency(run, result);
  return result;
}

}  // namespace lightq::bench
