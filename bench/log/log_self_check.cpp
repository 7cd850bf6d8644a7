/// Tests suite `log` itself. Layer: bench.
#include "log/log_self_check.hpp"

#include <cstdio>
#include <filesystem>

#include "log/go_queue.hpp"
#include "log/log_suite.hpp"
#include "log/raw_file.hpp"

namespace lightq::bench {
namespace {

class SelfCheck {
 public:
  bool run() {
    notices_altered_messages();
    a_wrong_byte_in_a_file_is_noticed();
    reads_what_a_driver_says();
    a_driver_that_fails_is_a_failure();
    knows_which_queues_a_driver_has();
    a_part_that_throws_is_a_failure();
    rounds_alternate();
    judges_rows();
    our_queue_gives_back_what_it_got();
    return good_;
  }

 private:
  void expect(bool condition, const std::string& otherwise) {
    if (condition) return;
    std::fprintf(stderr, "self-check: %s\n", otherwise.c_str());
    good_ = false;
  }

  template <typename Work>
  static std::string thrown_by(Work&& work) {
    try {
      work();
    } catch (const std::exception& problem) {
      return problem.what();
    }
    return "";
  }

  void notices_altered_messages() {
    NumberedMessages messages(20);
    const ByteView third = messages.at(3);
    std::vector<std::byte> copy(third.begin(), third.end());
    expect(thrown_by([&] { messages.check_is(3, copy); }).empty(), "a right message was refused");
    expect(!thrown_by([&] { messages.check_is(4, copy); }).empty(), "a message in the wrong place passed");
    expect(!thrown_by([&] { messages.check_is(3, ByteView(copy).first(19)); }).empty(),
           "a short message passed");
    copy[19] ^= std::byte{1};
    expect(!thrown_by([&] { messages.check_is(3, copy); }).empty(), "an altered message passed");
    expect(sum_of(copy) != sum_of(messages.at(3)), "a sum does not depend on the last byte");
  }

  void a_wrong_byte_in_a_file_is_noticed() {
    const Scratch scratch;
    const RawFile file(scratch.path("file"), 8192);
    NumberedMessages messages(4096);
    file.write_at(messages.at(1), 4096);
    const RawMapping mapping(file.fd(), file.size(), PROT_READ | PROT_WRITE);
    const auto read = [&] { messages.check_is(1, {mapping.data() + 4096, 4096}); };
    expect(thrown_by(read).empty(), "a file does not hold what was written to it");
    mapping.data()[8191] ^= std::byte{1};
    expect(!thrown_by(read).empty(), "a wrong byte in a file passed");
  }

  /// Runs a shell script in place of the driver.
  static Result<QueueTimes> run_script(const Scratch& scratch, const std::string& script) {
    const std::string path = scratch.path("driver");
    write_file(path, "#!/bin/sh\n" + script).value_or_throw();
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return run_go_queue(path, {"bigqueue", scratch.path("run"), 1000, 500, 16384, 100, 3});
  }

  static constexpr const char* good_script =
      "echo '{\"operation\":\"append\",\"ns_per_operation\":12.5}'\n"
      "echo '{\"operation\":\"read\",\"ns_per_operation\":7}'\n";

  void reads_what_a_driver_says() {
    const Scratch scratch;
    const Result<QueueTimes> times = run_script(scratch, good_script);
    expect(times && times->append_ns == 12.5 && times->read_ns == 7, "a driver's times were read wrongly");
  }

  void a_driver_that_fails_is_a_failure() {
    const Scratch scratch;
    const Result<QueueTimes> times =
        run_script(scratch, std::string(good_script) + "echo altered >&2\nexit 1\n");
    expect(!times && times.error().message.find("altered") != std::string::npos,
           "a driver's failure was lost");
    expect(!run_script(scratch, "true\n"), "a driver that says nothing passed");
  }

  void knows_which_queues_a_driver_has() {
    const Scratch scratch;
    const std::string path = scratch.path("driver");
    const auto queues_of = [&](const std::string& script) {
      write_file(path, "#!/bin/sh\n" + script).value_or_throw();
      std::filesystem::permissions(path, std::filesystem::perms::owner_all);
      return go_queues(path, scratch.path(""));
    };
    const auto queues = queues_of("[ \"$*\" = -queues ] && printf 'bigqueue\npqueue-steps\n'\n");
    expect(queues && *queues == std::vector<std::string>{"bigqueue", "pqueue-steps"},
           "a driver's queues were read wrongly");
    expect(!queues_of("echo bigqueue\nexit 1\n"), "a driver that cannot list its queues passed");
  }

  void a_part_that_throws_is_a_failure() {
    LogOptions options;
    options.parts = SuiteParts({"wanted", "unwanted"});
    expect(!options.parts.add("no part"), "a part was taken that does not exist");
    expect(options.parts.add("wanted"), "a part was not taken");
    LogSuite suite(options);
    suite.run("unwanted", [&](LogSuite&) { expect(false, "a part ran that was not wanted"); });
    suite.run("wanted", [](LogSuite&) { check(false, "on purpose"); });
    const Report report = suite.take_report();
    expect(report.failures.size() == 1 && report.failures[0] == "wanted: on purpose", "a failure was lost");
  }

  void rounds_alternate() {
    std::string calls;
    std::vector<double> ours;
    std::vector<double> references;
    const auto call = [&](char who) {
      return [&calls, who] { return calls += who, static_cast<double>(calls.size()); };
    };
    LogSuite::alternate(2, call('o'), call('r'), ours, references);
    expect(calls == "orroor", "rounds do not alternate: " + calls);
    expect(ours.size() == 2 && references.size() == 2, "the warm-up round was counted");
  }

  void judges_rows() {
    LogSuite suite({});
    suite.add_expected("a", "a", "µs", Better::less, {100, 100}, 50);
    suite.add_expected("b", "b", "GB/s", Better::more, {2, 2}, 1);
    const Report report = suite.take_report();
    expect(report.rows[0].ratio.median == 0.5 && report.rows[1].ratio.median == 2, "a ratio is wrong");
    const std::string text = render_text(report);
    expect(text.find("BELOW FLOOR") != std::string::npos && text.find("goal met") != std::string::npos,
           "a row is judged wrongly");
  }

  void our_queue_gives_back_what_it_got() {
    const Scratch scratch;
    Queue queue = Queue::open(scratch.path("queue"), recycling_options(65536, 4)).value_or_throw();
    NumberedMessages messages(1000);
    for (std::uint64_t i = 0; i < 100; ++i) queue.enqueue(messages.at(i)).value_or_throw();
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto message = queue.dequeue().value_or_throw();
      if (!message) return expect(false, "our queue lost a message");
      messages.check_is(i, message->payload);
    }
    expect(!queue.dequeue().value_or_throw(), "our queue invented a message");
  }

  bool good_ = true;
};

}  // namespace

bool self_check_log() {
  return SelfCheck().run();
}

}  // namespace lightq::bench
