/// The second file of a user's program: it produces and consumes in every way.
#include <lightq/lightq.hpp>

lightq::Result<void> send_one(lightq::Client& client);

lightq::Result<void> send_one(lightq::Client& client) {
  auto producer = client.producer("orders");
  if (!producer) return producer.error();
  if (auto sent = producer->send("an order"); !sent) return sent.error();
  auto consumer = client.consumer("orders");
  if (!consumer) return consumer.error();
  auto order = consumer->receive(lightq::Timeout(1000));
  if (!order) return order.error();
  if (*order) consumer->acknowledge(**order);
  auto reader = client.reader("orders");
  if (!reader) return reader.error();
  auto plain = client.plain_producer("orders");
  if (!plain) return plain.error();
  auto subscriber = client.plain_consumer("orders", {.mode = lightq::Mode::sub});
  if (!subscriber) return subscriber.error();
  return plain->send("another");
}
