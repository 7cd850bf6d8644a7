/// A member of a group works long on some messages. It gives back those that it does not begin, and stops its
/// work on a message that the broker has taken back. Runs its own broker.
#include <lightq/lightq.hpp>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "own_broker.hpp"

using namespace std::chrono_literals;
using lightq::Consumer;
using lightq::Delivered;

namespace {

Delivered next_of(Consumer& consumer) {
  const auto message = consumer.receive(5s).value_or_throw();
  if (!message) throw std::runtime_error("a message is missing");
  return *message;
}

/// Works on a message in small steps, until the broker takes it back. Between the steps it lets the consumer
/// look for revocations.
void work_until_revoked(Consumer& consumer, const Delivered& message) {
  const std::stop_token revoked = consumer.stop_token(message);
  while (!revoked.stop_requested()) {
    std::this_thread::sleep_for(10ms);  // a step of the work
    consumer.poll().value_or_throw();
  }
}

int run(lightq::Client& client) {
  client.create_topic("films").value_or_throw();
  auto out = client.producer("films").value_or_throw();
  for (const char* const film : {"short", "endless"}) out.send(film).value_or_throw();
  out.close(5s).value_or_throw();

  // A message may take 200 ms from its start. Without this option it is half an hour.
  auto worker = client.consumer("films", {.group = "encode", .ack_timeout = 200ms}).value_or_throw();
  const Delivered brief = next_of(worker);
  worker.release({brief.offset, brief.offset + 1});  // not begun: this delivery does not count
  const Delivered endless = next_of(worker);
  const std::string name(endless.text());  // the next call of the worker invalidates the message
  work_until_revoked(worker, endless);
  std::cout << "the work on the film '" << name << "' was stopped\n";
  worker.close(5s).value_or_throw();

  auto other = client.consumer("films", {.group = "encode"}).value_or_throw();
  bool as_expected = true;
  for (int i = 0; i < 2; ++i) {
    const Delivered film = next_of(other);
    std::cout << "the film '" << film.text() << "' comes with delivery number " << film.delivery << '\n';
    as_expected &= film.delivery == (film.text() == "endless" ? 2U : 1U);
    other.acknowledge(film);
  }
  other.close(5s).value_or_throw();
  return as_expected ? 0 : 1;
}

}  // namespace

int main() {
  const OwnBroker broker;
  auto client = broker.client();
  return run(client);
}
