/// A program that only sends and receives: it must not pay for JSON.
#include <lightq/consumer.hpp>
#include <lightq/producer.hpp>

#if defined(INCLUDE_NLOHMANN_JSON_HPP_) || defined(NLOHMANN_JSON_VERSION_MAJOR)
#error "producer.hpp and consumer.hpp must not include JSON"
#endif

int main() {
  return sizeof(lightq::Producer) > 0 && sizeof(lightq::Consumer) > 0 ? 0 : 1;
}
