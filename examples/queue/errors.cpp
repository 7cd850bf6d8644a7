/// Errors as values: only one process can open a queue, recovery reports its findings, and damage is named
/// and skipped.
#include <iostream>

#include <lightq/queue.hpp>

int main() {
  auto queue = lightq::Queue::open("errors").value_or_throw();
  const auto second = lightq::Queue::open("errors");
  if (second.ok() || second.error().code != lightq::ErrorCode::in_use) return 1;
  std::cout << second.error().text() << '\n';

  const lightq::QueueRecovery& recovery = queue.recovery();
  std::cout << (recovery.clean ? "closed cleanly" : "scanned ") << recovery.scanned_bytes << " bytes\n";
  for (const auto& lost : recovery.damaged) {
    std::cerr << lost.file << ", position " << lost.begin_position << ": offsets " << lost.first.value
              << " to " << lost.next.value << " cannot be read\n";
  }

  queue.enqueue("message").value_or_throw();
  auto reader = queue.reader().value_or_throw();
  for (;;) {
    const auto message = reader.next();
    if (!message.ok()) {
      std::cerr << message.error().text() << '\n';                       // names file and position
      if (message.error().code == lightq::ErrorCode::corrupt) continue;  // the reader is now behind it
      return 1;
    }
    if (!message->has_value()) break;
    std::cout << (*message)->text() << '\n';
  }
  return queue.close().ok() ? 0 : 1;
}
