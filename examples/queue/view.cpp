/// Reads a queue that this or another process writes, without changing anything on disk.
#include <iostream>

#include <lightq/queue.hpp>

int main() {
  auto queue = lightq::Queue::open("viewed").value_or_throw();
  queue.enqueue("one").value_or_throw();
  queue.flush().value_or_throw();  // completes the batch: views show only complete ones

  auto view = lightq::QueueView::open("viewed").value_or_throw();
  auto reader = view.reader().value_or_throw();
  std::cout << reader.next().value_or_throw()->text() << '\n';

  queue.enqueue("two").value_or_throw();
  queue.flush().value_or_throw();
  view.refresh().value_or_throw();
  const auto second = reader.next().value_or_throw();
  std::cout << (second ? second->text() : "nothing") << '\n';
  return second && second->text() == "two" ? 0 : 1;
}
