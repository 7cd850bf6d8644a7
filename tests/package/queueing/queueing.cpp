/// A program with an embedded queue that uses nothing else of LightQ.
#include <lightq/queue.hpp>

#if defined(ZMQ_VERSION_MAJOR) || defined(NLOHMANN_JSON_VERSION_MAJOR) || defined(LZ4_VERSION_MAJOR)
#error "a queue must not include what only clients and brokers need"
#endif

int main() {
  {
    auto queue = lightq::Queue::open("queue").value_or_throw();
    queue.enqueue("first").value_or_throw();
  }
  auto queue = lightq::Queue::open("queue").value_or_throw();
  const auto message = queue.dequeue().value_or_throw();
  return message && message->text() == "first" ? 0 : 1;
}
