/// A stranger's program: compiles, links, and is told in a second that nobody listens.
#include <lightq/lightq.hpp>

int main() {
  lightq::ClientOptions options;
  options.request_timeout = std::chrono::milliseconds(50);
  const auto client = lightq::Client::connect("tcp://127.0.0.1:1", options);
  return !client && client.error().code == lightq::ErrorCode::timeout ? 0 : 1;
}
