/// Limits the stored messages: capacity with reject, drop_oldest or block; retention by bytes, age and
/// number; segment sizes.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <lightq/queue.hpp>

using lightq::Overflow;
using namespace std::chrono_literals;

namespace {

lightq::QueueOptions small_segments() {
  lightq::QueueOptions options;
  options.segment_bytes = 64 * 1024;       // dropped and reused as a whole
  options.segment_messages_max = 100;      // a segment ends at the limit that is reached first
  options.mapped_bytes_max = 1024 * 1024;  // of address space, for readers and the writer together
  return options;
}

bool reject() {
  auto options = small_segments();
  options.capacity_messages = 1000;
  options.overflow = Overflow::reject;
  auto queue = lightq::Queue::open("rejects", options).value_or_throw();
  while (queue.enqueue("message")) {
  }
  std::cout << "rejects at " << queue.next_offset().value << '\n';
  return queue.next_offset().value == 1000;
}

bool drop_oldest() {
  auto options = small_segments();
  options.capacity_bytes = 100'000;
  options.overflow = Overflow::drop_oldest;
  auto queue = lightq::Queue::open("drops", options).value_or_throw();
  for (int i = 0; i < 10'000; ++i) queue.enqueue("a message of about 40 bytes, all in all").value_or_throw();
  std::cout << "dropped " << queue.stats().dropped_messages << '\n';
  return queue.stats().dropped_messages != 0;
}

bool block() {
  auto options = small_segments();
  options.capacity_messages = 200;  // a commit frees whole segments of it
  options.block_timeout = 10s;
  auto queue = lightq::Queue::open("blocks", options).value_or_throw();
  auto cursor = queue.cursor("consumer").value_or_throw();
  std::jthread consumer([&cursor] {
    for (int i = 0; i < 5000; ++i) {
      if (cursor.wait(10s)) cursor.dequeue().value_or_throw();
    }
  });
  for (int i = 0; i < 5000; ++i) queue.enqueue("waits while it is full").value_or_throw();
  return queue.next_offset().value == 5000;
}

bool retain() {
  auto options = small_segments();
  options.retention_bytes = 1024 * 1024;  // a segment is removed when one rule permits it
  options.retention_time = 24h;
  options.retention_messages = 500;
  options.retain_uncommitted = true;  // but keeps messages that a named cursor needs
  auto queue = lightq::Queue::open("retains", options).value_or_throw();
  for (int i = 0; i < 10'000; ++i) queue.enqueue("message").value_or_throw();
  queue.maintain();
  std::cout << "keeps " << queue.next_offset().value - queue.first_offset().value << '\n';
  return queue.next_offset().value - queue.first_offset().value < 800;
}

// A message may be larger than a segment: it gets a segment of its own.
bool large() {
  auto queue = lightq::Queue::open("large", small_segments()).value_or_throw();
  const std::string text(10'000'000, 'x');
  queue.enqueue(text).value_or_throw();
  return queue.dequeue().value_or_throw()->text() == text;
}

}  // namespace

int main() {
  return reject() && drop_oldest() && block() && retain() && large() ? 0 : 1;
}
