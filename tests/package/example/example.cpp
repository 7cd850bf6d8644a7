/// A user's program: it compiles, links, and receives an immediate error because no broker listens.
#include <lightq/lightq.hpp>

#include <cerrno>
#include <chrono>

int main() {
  lightq::ClientOptions options;
  options.request_timeout = std::chrono::seconds(30);
  const auto client = lightq::Client::connect("tcp://127.0.0.1:1", options);
  return !client && client.error().system_error == ECONNREFUSED ? 0 : 1;
}
