/// A client of a broker's HTTP. Layer: bench support.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>

#include "support/posix.hpp"

namespace lightq::bench {

/// One connection, over which requests follow each other.
class HttpClient {
 public:
  /// `uri`: http://HOST:PORT with a numeric IPv4 host, as broker.json has it. Error: it does not connect.
  static Result<HttpClient> connect(const std::string& uri, std::string user, std::string password);

  /// Returns the content of a path. Errors: another status than 200; no response within 30 s, or one beyond
  /// 64 MiB.
  Result<std::string> get(const std::string& path);
  /// Sends a request with content; `receive` returns the response. Error: it cannot be sent.
  Result<void> post(const std::string& path, const std::string& content_type, const std::string& content);
  /// Returns the content of the next response. Errors: as of get.
  Result<std::string> receive();

 private:
  HttpClient(Descriptor socket, std::string login) : socket_(std::move(socket)), login_(std::move(login)) {}

  Result<void> send(const std::string& request);

  Descriptor socket_;
  std::string login_;  // the value of Authorization
};

}  // namespace lightq::bench
