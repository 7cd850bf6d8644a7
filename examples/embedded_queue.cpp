/// A durable queue inside a program. It can be killed at any time; the next run continues where this one
/// stopped.
#include <iostream>

#include <lightq/queue.hpp>

int main() {
  auto queue = lightq::Queue::open("orders").value_or_throw();
  queue.enqueue("first").value_or_throw();
  queue.enqueue("second").value_or_throw();
  while (auto message = queue.dequeue().value_or_throw()) std::cout << message->text() << '\n';
}
