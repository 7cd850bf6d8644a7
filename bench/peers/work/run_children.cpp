/// Forks the processes of a run and reports the first fault. Layer: bench peers.
#include "peers/work/run_children.hpp"

#include <time.h>

#include <cstring>
#include <stdexcept>
#include <utility>

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds child_time_max{60};
constexpr std::chrono::milliseconds look_interval{1};

}  // namespace

void RunChildren::start(const std::string& name, const std::function<void()>& role) {
  children_.push_back(ChildProcess::start([&] {
                        try {
                          role();
                          return 0;
                        } catch (const std::exception& problem) {
                          Fault& fault = fault_[0];
                          if (fault.text[0] == '\0')
                            std::strncpy(fault.text, (name + ": " + problem.what()).c_str(),
                                         sizeof fault.text - 1);
                          return 1;
                        }
                      }).value_or_throw());
  names_.push_back(name);
}

void RunChildren::throw_fault(const std::string& otherwise) {
  const std::string fault(fault_[0].text);
  throw std::runtime_error(fault.empty() ? otherwise : fault);
}

void RunChildren::wait() {
  const Result<void> ended = wait_for_all(children_, names_, deadline_);
  if (!ended) throw_fault(ended.error().message);
}

void RunChildren::wait_until(const std::function<bool()>& is_done) {
  while (!is_done()) {
    if (stop_requested()) throw std::runtime_error("interrupted");
    if (Clock::now() > deadline_) throw_fault("timed out");
    for (std::size_t i = 0; i < children_.size(); ++i) {
      const auto end = children_[i].wait_until(Clock::now() + look_interval);
      if (end && !end->good() && !is_done()) throw_fault(names_[i] + ": " + end->text());
    }
  }
}

void in_child(const std::string& name, const std::function<void()>& work) {
  RunChildren child(child_time_max);
  child.start(name, work);
  child.wait();
}

void sleep_exactly(std::chrono::nanoseconds time) {
  const auto count = time.count();
  const timespec wanted{static_cast<time_t>(count / 1'000'000'000), static_cast<long>(count % 1'000'000'000)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, nullptr);
}

}  // namespace lightq::bench
