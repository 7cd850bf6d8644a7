/// Named cursors: each reads every message, and continues at its last commit, even after kill -9.
#include <iostream>

#include <lightq/queue.hpp>

using lightq::Offset;
using lightq::Start;

int main() {
  auto queue = lightq::Queue::open("cursors").value_or_throw();
  for (const char* text : {"apples", "bread", "cheese", "dates"}) queue.enqueue(text).value_or_throw();
  const Offset last{queue.next_offset().value - 1};
  {
    auto billing = queue.cursor("billing").value_or_throw();  // new: starts at the oldest message kept
    auto first = billing.next().value_or_throw();             // delivered, not committed
    std::cout << first->text() << '\n';
    billing.commit();

    auto shipping = queue.cursor("shipping", Start::copy_of("billing")).value_or_throw();
    std::cout << "shipping begins with " << shipping.dequeue().value_or_throw()->text() << '\n';
    shipping.rewind(Start::at(last)).value_or_throw();

    auto audit = queue.cursor("audit", Start::next()).value_or_throw();  // only messages appended later
    if (audit.next().value_or_throw()) return 1;

    const lightq::Timestamp noon = queue.peek().value_or_throw()->time;
    queue.cursor("since-noon", Start::at(noon)).value_or_throw();
  }
  queue.remove_cursor("audit").value_or_throw();
  for (const auto& cursor : queue.stats().cursors) {
    std::cout << cursor.name << ": committed " << cursor.committed.value << ", delivered "
              << cursor.delivered.value << '\n';
  }
  return queue.cursor("shipping").value_or_throw().next().value_or_throw()->offset == last ? 0 : 1;
}
