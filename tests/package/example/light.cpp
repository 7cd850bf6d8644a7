/// A program that only sends and receives. It must not include JSON.
#include <lightq/consumer.hpp>
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>
#include <lightq/producer.hpp>

#if defined(INCLUDE_NLOHMANN_JSON_HPP_) || defined(NLOHMANN_JSON_VERSION_MAJOR)
#error "producers and consumers must not include JSON"
#endif

int main() {
  const bool all = sizeof(lightq::Producer) > 0 && sizeof(lightq::Consumer) > 0 &&
                   sizeof(lightq::PlainProducer) > 0 && sizeof(lightq::PlainConsumer) > 0;
  return all ? 0 : 1;
}
