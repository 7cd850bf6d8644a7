/// One writer and several readers, each on its own thread and without locks. Readers wait without polling.
#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <lightq/queue.hpp>

using namespace std::chrono_literals;

int main() {
  constexpr std::uint64_t count = 100'000;
  auto queue = lightq::Queue::open("beside", {.background = true}).value_or_throw();
  std::atomic<int> complete = 0;
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&queue, &complete] {
        auto reader = queue.reader().value_or_throw();
        std::uint64_t seen = 0;
        while (seen < count && reader.wait(10s)) {
          for (const auto& message : reader.next_batch().value_or_throw()) {
            if (message.text() == std::to_string(message.offset.value)) ++seen;
          }
        }
        if (seen == count) ++complete;
      });
    }
    for (std::uint64_t i = 0; i < count; ++i) queue.enqueue(std::to_string(i)).value_or_throw();
  }
  std::cout << complete << " readers have seen all " << count << '\n';
  return complete == 3 ? 0 : 1;
}
