/// A user's program of two files. It is built header-only and with LIGHTQ_SEPARATE_COMPILATION.
#include <lightq/lightq.hpp>

#include <cerrno>
#include <chrono>

#if defined(LIGHTQ_SEPARATE_COMPILATION) &&                                         \
    (defined(INCLUDE_NLOHMANN_JSON_HPP_) || defined(NLOHMANN_JSON_VERSION_MAJOR) || \
     defined(OPENSSL_VERSION_NUMBER))
#error "the declarations must not include JSON or OpenSSL"
#endif

lightq::Result<void> send_one(lightq::Client& client);

int main() {
  lightq::ClientOptions options;
  options.request_timeout = std::chrono::seconds(30);
  auto client = lightq::Client::connect("tcp://127.0.0.1:1", options);
  if (client) return send_one(*client) ? 0 : 2;
  return client.error().system_error == ECONNREFUSED ? 0 : 1;
}
