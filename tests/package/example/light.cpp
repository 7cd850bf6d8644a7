/// A program that only sends and receives: it must not pay for JSON.
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>

#if defined(INCLUDE_NLOHMANN_JSON_HPP_) || defined(NLOHMANN_JSON_VERSION_MAJOR)
#error "producer.hpp and consumer.hpp must not include JSON"
#endif

int main() {
  return sizeof(lightq::PlainProducer) > 0 && sizeof(lightq::PlainConsumer) > 0 ? 0 : 1;
}
