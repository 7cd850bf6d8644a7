/// Part `delay-ten-million`: ten million delayed messages on disk. Layer: bench.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "delivery/delivery_suite.hpp"
#include "support/child_process.hpp"
#include "support/load/delayed_load.hpp"
#include "support/process_usage.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t many = 10'000'000;
constexpr std::uint64_t first_of = 10;  // one of this many is in the first tenth that falls due
constexpr std::size_t many_bytes = 100;
constexpr double many_mib = 1024.0 * 1024.0;
constexpr std::int64_t many_day_us = 24LL * 3600 * 1'000'000;
constexpr std::chrono::seconds many_wait{60};
constexpr std::chrono::seconds clear_time_max{60};
constexpr double left_mib_max = 160;  // the segment file that is being written has 128 MiB

/// The load: message 0 is due in a year, every tenth of the others tomorrow, and the rest in the two days
/// after.
struct ManyDues {
  std::int64_t begin_us = wall_us();

  [[nodiscard]] std::int64_t tenth_us() const { return begin_us + many_day_us; }
  [[nodiscard]] std::int64_t rest_us() const { return begin_us + 2 * many_day_us; }
  [[nodiscard]] std::int64_t of(std::uint64_t number) const {
    if (number == 0) return begin_us + 365 * many_day_us;
    if (number % first_of == 0) return tenth_us();
    return rest_us() + static_cast<std::int64_t>(number);
  }
};

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

double memory_mib_of(const BrokerRoute& route) {
  return static_cast<double>(own_resident_bytes_of(*route.process()).value_or_throw()) / many_mib;
}

/// Returns the space on disk of the schedules' directories.
double schedule_mib_of(BrokerRoute& route) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& each :
       std::filesystem::recursive_directory_iterator(route.broker().data_directory(), ignored)) {
    struct stat found{};
    if (each.path().parent_path().filename() == "delayed" && ::stat(each.path().c_str(), &found) == 0)
      bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
  }
  return static_cast<double>(bytes) / many_mib;
}

/// The seconds until a command that makes messages due is answered, and until all have arrived.
struct DeliveryTimes {
  double command_s = 0;
  double all_s = 0;
};

/// Makes the waiting messages due now that are due in this time, and receives them.
DeliveryTimes deliver(DelayedLoad& load, const BrokerRoute& route, std::uint64_t count, std::int64_t from_us,
                      std::int64_t until_us) {
  const Clock::time_point begun = Clock::now();
  const auto hurried =
      route.command("hurry_delayed", {{"due_from_us", from_us}, {"due_until_us", until_us}}, many_wait)
          .value_or_throw();
  const double command_s = seconds_since(begun);
  if (hurried["messages"] != count) {
    throw_failure(hurried["messages"].dump() + " messages were made due instead of " + std::to_string(count));
  }
  load.receive(session_ends_of(route), count, many_wait).value_or_throw();
  return {command_s, seconds_since(begun)};
}

/// Returns the seconds of the command, one value for each tenth of the messages.
std::vector<double> deliver_rest(DelayedLoad& load, const BrokerRoute& route, const ManyDues& dues) {
  std::vector<double> commands_s;
  constexpr std::uint64_t step = many / 10;
  for (std::uint64_t from = 0; from < many; from += step) {
    throw_if_stopped();
    commands_s.push_back(deliver(load, route, step - step / first_of,
                                 dues.rest_us() + static_cast<std::int64_t>(from),
                                 dues.rest_us() + static_cast<std::int64_t>(from + step))
                             .command_s);
  }
  return commands_s;
}

/// Waits until the files of messages that have left are gone, at most clear_time_max. Returns their space.
double space_left(BrokerRoute& route) {
  const Clock::time_point begun = Clock::now();
  double left_mib = schedule_mib_of(route);
  while (left_mib > left_mib_max && Clock::now() - begun < clear_time_max) {
    throw_if_stopped();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    left_mib = schedule_mib_of(route);
  }
  return left_mib;
}

}  // namespace

void measure_delay_ten_million(DeliverySuite& suite) {
  if (suite.options().quick) return suite.note("Part `delay-ten-million` is left out by `--quick`.");
  const auto route =
      BrokerRoute::start(suite.options().broker_binary, {{"broker_type", "file"}}).value_or_throw();
  route->prepare("ten-million").value_or_throw();
  DelayedLoad load(many, many_bytes);
  const ManyDues dues;
  const auto due = [&](std::uint64_t number) { return dues.of(number); };
  const std::string title = "ten million delayed messages of 100 B";
  const double before_mib = memory_mib_of(*route);

  Clock::time_point begun = Clock::now();
  load.publish(session_ends_of(*route), 0, many, due).value_or_throw();
  suite.add_bound("delay_many_publish", title + ", until all are confirmed", "s", {seconds_since(begun)}, 0);
  suite.add_bound("delay_many_memory", title + ", the broker's memory", "MiB",
                  {memory_mib_of(*route) - before_mib}, 640);
  suite.add_bound("delay_many_space", title + ", space on disk", "MiB", {schedule_mib_of(*route)}, 0);

  route->broker().stop(SIGTERM).value_or_throw();
  begun = Clock::now();
  route->broker().start_again().value_or_throw();
  const auto stats = route->command("stats", {}).value_or_throw();
  suite.add_bound("delay_many_start", title + ", start of the broker", "s", {seconds_since(begun)}, 10);
  if (stats["delayed"]["messages"] != many) throw_failure("messages are missing after a start");

  const double tenth_s =
      deliver(load, *route, many / first_of - 1, dues.tenth_us(), dues.tenth_us() + 1).all_s;
  suite.add_bound("delay_many_tenth", title + ", one tenth falls due and arrives", "s", {tenth_s}, 0);
  begun = Clock::now();
  const std::vector<double> commands_s = deliver_rest(load, *route, dues);
  suite.add_bound("delay_many_rest", title + ", the others but one fall due and arrive", "s",
                  {seconds_since(begun)}, 0);
  suite.add_bound("delay_many_hurry", title + ", 900,000 of them are made due by a command", "s", commands_s,
                  0);
  suite.add_bound("delay_many_left", title + ", space on disk when one is left", "MiB", {space_left(*route)},
                  left_mib_max);
  const auto left = route->command("list_delayed", {}).value_or_throw();
  if (left["messages"].size() != 1 || load.received() != many - 1)
    throw_failure("not all messages but one have arrived");
}

}  // namespace lightq::bench
