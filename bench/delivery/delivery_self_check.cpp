/// Tests suite `delivery` itself. Layer: bench.
#include "delivery/delivery_self_check.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "delivery/delivery_state.hpp"
#include "delivery/delivery_suite.hpp"
#include "support/load/delayed_load.hpp"
#include "support/load/group_stream.hpp"
#include "support/load/unequal_members.hpp"
#include "support/once_check.hpp"
#include "support/stream_program.hpp"
#include "support/temp_dir.hpp"

namespace lightq::bench {
namespace {

class DeliverySelfCheck {
 public:
  bool run() {
    notices_altered_and_repeated_messages();
    chooses_the_rejected_messages();
    computes_the_ideal_time();
    notices_early_messages();
    spreads_due_times();
    computes_lateness();
    permits_a_figure_of_zero();
    a_load_of_delayed_messages_without_a_broker_is_a_failure();
    reads_what_a_stream_program_says();
    a_stream_program_that_fails_is_a_failure();
    rounds_alternate();
    sums_up_rows();
    judges_rows();
    a_part_that_throws_is_a_failure();
    needs_a_build_to_compare_with();
    states_are_saved_and_restored();
    return good_;
  }

 private:
  void expect(bool condition, const std::string& otherwise) {
    if (condition) return;
    std::fprintf(stderr, "self-check: %s\n", otherwise.c_str());
    good_ = false;
  }
  static bool is_near(double value, double expected) { return std::fabs(value - expected) < 1e-9; }

  void notices_altered_and_repeated_messages() {
    const MessagePattern pattern(100);
    OnceCheck check(7, 3, pattern);
    std::vector<std::byte> message(100);
    pattern.write({7, MessageKind::data, 2, 0}, message.data());
    expect(check.number_of(message) == 2, "a right message was refused");
    expect(!check.number_of(ByteView(message).first(99)), "a short message passed");
    message[99] ^= std::byte{1};
    expect(!check.number_of(message), "an altered message passed");
    pattern.write({8, MessageKind::data, 2, 0}, message.data());
    expect(!check.number_of(message), "a message of another run passed");
    pattern.write({7, MessageKind::data, 3, 0}, message.data());
    expect(!check.number_of(message), "one message too many passed");
    expect(check.finish(0) && check.finish(2), "a message was refused the first time");
    expect(!check.finish(2), "a message was finished twice");
    expect(!check.is_complete(), "a missing message passed");
    expect(check.finish(1) && check.is_complete(), "a complete run was refused");
  }

  void chooses_the_rejected_messages() {
    expect(!GroupWork{}.rejects(0), "a message is rejected without a reason");
    expect(GroupWork{.rejects_one_of = 1}.rejects(0) && GroupWork{.rejects_one_of = 1}.rejects(3),
           "not all messages are rejected");
    expect(GroupWork{.rejects_one_of = 10}.rejects(20) && !GroupWork{.rejects_one_of = 10}.rejects(21),
           "the wrong messages are rejected");
  }

  void computes_the_ideal_time() {
    expect(is_near(ideal_seconds_of(5'000, {0.001, 0.001, 0.001, 0.1}), 5'000 / 3'010.0),
           "the ideal time is wrong");
    expect(ideal_seconds_of(5'000, {0}) == 0, "members without a time have an ideal time");
  }

  void notices_early_messages() {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    const GroupWork work{.delay = std::chrono::milliseconds(10)};
    expect(work.is_early(second_ns, second_ns + 5'000'000), "a message that came too early passed");
    expect(!work.is_early(second_ns, second_ns + 10'000'000), "a message that came in time was refused");
    expect(!work.is_early(0, 1), "a message without a time was refused");
    expect(!GroupWork{}.is_early(second_ns, second_ns), "a message without a delay was refused");
  }

  void spreads_due_times() {
    constexpr std::uint64_t count = 1'000;
    for (const bool scattered : {false, true}) {
      const DueTimes due{5'000, 1'000'000, count, scattered};
      std::vector<bool> seen(count);
      for (std::uint64_t number = 0; number < count; ++number) {
        const std::int64_t step = (due.of(number) - due.first_us) / 1'000;
        if (step >= 0 && step < 1'000) seen[static_cast<std::size_t>(step)] = true;
      }
      expect(std::ranges::all_of(seen, [](bool each) { return each; }), "due times are not spread evenly");
      expect((due.of(0) < due.of(1) && due.of(1) < due.of(2) && due.of(2) < due.of(3)) == !scattered,
             "due times have the wrong order");
    }
    expect(DueTimes{5'000, 0, count}.of(7) == 5'000, "messages are not due at one moment");
  }

  void computes_lateness() {
    const auto due = [](std::uint64_t number) { return static_cast<std::int64_t>(1'000 * number); };
    DelayedLoad load(4, 100);
    expect(load.last_received_us() == 0, "a message was received that never came");
    load.note(1, 1'500, 3'000);
    load.note(2, 2'000, 2'000);
    const auto late = load.lateness(due);
    expect(late && late->appended_ms == std::vector<double>{0.5, 0} &&
               late->received_ms == std::vector<double>{2, 0},
           "a lateness is wrong");
    expect(load.last_received_us() == 3'000, "the last message was not the last");
    load.note(3, 2'999, 3'001);
    expect(!load.lateness(due), "a message passed that was appended before it was due");
    load.note(3, 3'000, 2'999);
    expect(!load.lateness(due), "a message passed that was received before it was due");
  }

  void permits_a_figure_of_zero() {
    DeliverySuite suite({});
    suite.add_bound("a", "a", "MiB", {0, -2}, 1);
    expect(render_text(suite.take_report()).find("goal met") != std::string::npos, "nothing is too much");
  }

  void a_load_of_delayed_messages_without_a_broker_is_a_failure() {
    DelayedLoad load(1, 100);
    SessionEnds ends;
    ends.control_uri = "tcp://127.0.0.1:1";
    ends.topic = "none";
    expect(!load.publish(ends, 0, 1, [](std::uint64_t) { return std::int64_t{0}; }),
           "messages were published without a broker");
  }

  /// Runs a shell script in place of lightq_bench_stream.
  static Result<double> run_script(const std::string& script) {
    const TempDir directory;
    const std::string path = (directory.path() / "program").string();
    write_file(path, "#!/bin/sh\n" + script).value_or_throw();
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    auto program = StreamProgram::start(path);
    if (!program) return program.error();
    return (*program)->run("queue", 100, 5);
  }

  void reads_what_a_stream_program_says() {
    const auto rate = run_script("read line; [ \"$line\" = 'queue 100 5' ] && echo 12.5\n");
    expect(rate && *rate == 12.5, "a rate was read wrongly");
  }

  void a_stream_program_that_fails_is_a_failure() {
    const auto failed = run_script("read line; echo 'failed: a message is missing'\n");
    expect(!failed && failed.error().message.find("a message is missing") != std::string::npos,
           "a stream's failure was lost");
    expect(!run_script("read line; echo nonsense\n"), "nonsense is a rate");
    expect(!run_script("read line; echo 0.0\n"), "nothing is a rate");
    expect(!run_script("read line\n"), "a program that ends without an answer passed");
    expect(!StreamProgram::start("/nonexistent/program"), "a program was started that does not exist");
  }

  void rounds_alternate() {
    std::string calls;
    const auto call = [&calls](char who) {
      return [&calls, who] { return calls += who, static_cast<double>(calls.size()); };
    };
    const auto pairs = DeliverySuite::alternate(2, call('o'), call('r'));
    expect(calls == "orroor", "rounds do not alternate: " + calls);
    expect(pairs.ours == std::vector<double>{4, 5} && pairs.reference == std::vector<double>{3, 6},
           "a value is in the wrong round, or the warm-up was counted");
  }

  void sums_up_rows() {
    const std::vector<Row> rows = {
        compare("a", "a", "msg/s", Better::more, {2, 2}, "before", {1, 1}),
        compare("b", "b", "msg/s", Better::more, {8, 4}, "before", {1, 2}),
    };
    const Row sum = sum_up("sum", "sum", rows, {{2, 2}, {8, 2}});
    expect(is_near(sum.ratio.median, std::sqrt(2 * 5.0)), "the mean of the medians is wrong");
    expect(is_near(sum.ratio.min, 2) && is_near(sum.ratio.max, 4), "the spread of the rounds is wrong");
    expect(is_near(sum.ours.median, std::sqrt(2 * 6.0)) && sum.rounds == 2, "the sum's figures are wrong");
  }

  void judges_rows() {
    DeliverySuite suite({});
    suite.add_bound("a", "a", "MiB", {2, 2}, 1);
    suite.add_bound("b", "b", "MiB", {2, 2}, 4);
    suite.add_bound("c", "c", "ms", {2, 2}, 0);
    const Report report = suite.take_report();
    expect(report.rows[0].ratio.median == 0.5 && report.rows[1].ratio.median == 2, "a ratio is wrong");
    expect(!report.rows[2].judged(), "a row is judged that only informs");
    const std::string text = render_text(report);
    expect(text.find("BELOW FLOOR") != std::string::npos && text.find("goal met") != std::string::npos,
           "a row is judged wrongly");
  }

  void a_part_that_throws_is_a_failure() {
    DeliveryOptions options;
    options.parts = SuiteParts({"wanted", "unwanted"});
    expect(!options.parts.add("no part"), "a part was taken that does not exist");
    expect(options.parts.add("wanted"), "a part was not taken");
    DeliverySuite suite(options);
    suite.run("unwanted", [&](DeliverySuite&) { expect(false, "a part ran that was not wanted"); });
    suite.run("wanted", [](DeliverySuite&) {
      Result<void>(Error{ErrorCode::internal, "on purpose", 0}).value_or_throw();
    });
    const Report report = suite.take_report();
    expect(report.failures.size() == 1 && report.failures[0].find("on purpose") != std::string::npos,
           "a failure was lost");
  }

  void needs_a_build_to_compare_with() {
    DeliverySuite suite({});
    suite.run("unused", measure_unused);
    expect(suite.take_report().failures.size() == 1, "nothing was compared with");
  }

  void states_are_saved_and_restored() {
    constexpr std::size_t few = 1'000;
    const log::OffsetSet set = left_of_acknowledgements(random_offsets(few, 10));
    expect(set.size() == few, "the wrong number of messages is left");
    const StateFigures waiting = figures_of_waiting(set);
    expect(waiting.memory_bytes > few / 2 && waiting.saved_bytes > few / 2, "a state takes nothing");
    const StateFigures flight = figures_of_flight(2, few);
    expect(flight.saved_bytes > few / 2, "messages in flight were not saved");
  }

  bool good_ = true;
};

}  // namespace

bool self_check_delivery() {
  return DeliverySelfCheck().run();
}

}  // namespace lightq::bench
