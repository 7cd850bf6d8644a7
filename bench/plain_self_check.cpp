/// Tests the benchmark itself. Layer: bench.
#include "plain_self_check.hpp"

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "plain_report.hpp"
#include "support/proxy_route.hpp"
#include "support/stream_run.hpp"

namespace lightq::bench {
namespace {

class SelfCheck {
 public:
  bool run() {
    catches_every_sabotage();
    passes_clean_streams();
    gives_up_when_nobody_is_there();
    computes_statistics();
    judges_rows();
    expect(::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD, "a child process is left behind");
    return good_;
  }

 private:
  void expect(bool condition, const std::string& otherwise) {
    if (condition) return;
    std::fprintf(stderr, "self-check: %s\n", otherwise.c_str());
    good_ = false;
  }

  static StreamPlan short_plan(Sabotage sabotage) {
    StreamPlan plan;
    plan.message_count = 500;
    plan.sabotage = sabotage;
    plan.time_max = std::chrono::seconds(10);
    if (sabotage == Sabotage::stop) plan.time_max = std::chrono::milliseconds(300);
    return plan;
  }

  void expect_fault(const std::string& name, const StreamEnds& ends, const StreamPlan& plan,
                    const std::string& words) {
    const Result<StreamResult> result = run_stream(ends, plan);
    if (result) return expect(false, name + " was not noticed");
    expect(result.error().message.find(words) != std::string::npos,
           name + " was reported as \"" + result.error().message + "\", not \"" + words + "\"");
  }

  void catches_every_sabotage() {
    const struct {
      Sabotage sabotage;
      const char* name;
      const char* words;
    } cases[] = {
        {Sabotage::damage, "a damaged byte", "damaged content"},
        {Sabotage::swap, "a swap", "message 251 came instead of 250"},
        {Sabotage::lose, "a loss", "message 251 came instead of 250"},
        {Sabotage::repeat, "a repetition", "message 250 came instead of 251"},
        {Sabotage::shorten, "a short message", "99 bytes instead of 100"},
        {Sabotage::stale, "a leftover", "another run"},
        {Sabotage::extra, "one too many", "the end came early or late"},
        {Sabotage::end_early, "one too few", "the end came early or late"},
        {Sabotage::stop, "a producer that stops", "timed out"},
        {Sabotage::crash, "a producer that dies", "producer: exit status 3"},
    };
    for (const auto& each : cases) expect_fault(each.name, {}, short_plan(each.sabotage), each.words);
  }

  void passes_clean_streams() {
    const Result<std::unique_ptr<ProxyRoute>> proxy = ProxyRoute::start(100);
    if (!proxy) return expect(false, proxy.error().text());
    StreamPlan paced = short_plan(Sabotage::none);
    paced.messages_per_second = 10'000;
    for (const StreamEnds& ends : {StreamEnds{}, (*proxy)->open().value()}) {
      const Result<StreamResult> flat_out = run_stream(ends, short_plan(Sabotage::none));
      expect(flat_out.ok() && flat_out->messages_per_second > 0, "a clean stream failed");
      const Result<StreamResult> timed = run_stream(ends, paced);
      expect(timed.ok() && timed->latency_us.size() == 450 && percentile(timed->latency_us, 0) > 0,
             "a clean paced stream failed");
    }
  }

  void gives_up_when_nobody_is_there() {
    StreamPlan plan = short_plan(Sabotage::none);
    plan.time_max = std::chrono::milliseconds(200);
    // No process listens on port 9 (discard), so connecting is retried until the time is over.
    expect_fault("a route without a broker", {"tcp://127.0.0.1:9", "tcp://127.0.0.1:9"}, plan, "timed out");
  }

  void computes_statistics() {
    const Summary odd = summarize({5, 1, 3});
    expect(odd.median == 3 && odd.min == 1 && odd.max == 5, "the median of three is wrong");
    expect(summarize({4, 1, 2, 3}).median == 2.5, "the median of four is wrong");
    expect(percentile({4, 1, 2, 3, 0}, 0.5) == 2 && percentile({1, 2}, 1) == 2, "a percentile is wrong");
  }

  void judges_rows() {
    const Load load = throughput_loads().front();
    Measurements measured;
    measured.series[{way::proxy, load}].messages_per_second = {10, 20, 10};
    measured.series[{way::proxy_deep, load}].messages_per_second = {20, 20, 40};
    measured.series[{way::queue, load}].messages_per_second = {30, 10, 20};
    const Report report = report_plain(measured, {});
    const Row& row = report.rows.front();
    expect(row.name == "queue_throughput_100" && row.goal == 1.0 && row.floor == 0.8,
           "the first row is wrong");
    expect(row.ratio.median == 0.5 && row.ratio.max == 1.5,
           "ratios are not pair by pair with the better proxy");
    expect(render_text(report).find("BELOW FLOOR") != std::string::npos, "a bad ratio is not shown as bad");
    expect(compare("", "", "", Better::less, {10}, "", {20}).ratio.median == 2, "a latency's ratio is wrong");
  }

  bool good_ = true;
};

}  // namespace

bool self_check() {
  return SelfCheck().run();
}

}  // namespace lightq::bench
