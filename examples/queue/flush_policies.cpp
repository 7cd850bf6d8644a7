/// Flush policies: no rule, every n messages, every n bytes, a timer, each append, and notification when
/// durable.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <lightq/queue.hpp>

using lightq::FlushPolicy;
using namespace std::chrono_literals;

namespace {

void append_with(const std::string& name, const lightq::QueueOptions& options) {
  auto queue = lightq::Queue::open(name, options).value_or_throw();
  for (int i = 0; i < 100; ++i) queue.enqueue("message").value_or_throw();
  std::cout << name << ": " << queue.durable_offset().value << " of " << queue.next_offset().value
            << " durable before anybody asks\n";
}

// Sixteen threads wait for the disk together and share the syncs.
void commit_as_a_group() {
  auto queue =
      lightq::Queue::open("group-commit", {.flush = FlushPolicy::every_append(), .many_writers = true})
          .value_or_throw();
  std::vector<std::jthread> writers;
  for (int i = 0; i < 16; ++i) {
    writers.emplace_back([&queue] { queue.enqueue("durable when this returns").value_or_throw(); });
  }
}

}  // namespace

int main() {
  append_with("none", {});  // survives SIGKILL, not a power cut
  append_with("every-ten", {.flush = FlushPolicy::every_messages(10)});
  append_with("every-64-KiB", {.flush = FlushPolicy::every_bytes(64 * 1024)});
  append_with("every-10-ms", {.flush = FlushPolicy::every(10ms), .background = true});
  append_with("each-append", {.flush = FlushPolicy::every_append()});
  commit_as_a_group();

  auto queue = lightq::Queue::open("told").value_or_throw();
  const lightq::Offset offset = queue.enqueue("important").value_or_throw();
  queue.on_durable(offset + 1, [](const auto& result) {
    std::cout << (result.ok() ? "on disk" : result.error().text()) << '\n';
  });
  auto future = queue.durable(offset + 1);
  const bool durable = queue.wait_durable(offset + 1, 10s).value_or_throw();
  return durable && future.get().ok() ? 0 : 1;
}
