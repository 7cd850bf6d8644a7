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

  /// Returns the content of a path. Errors: another status than 200; no response within 30 s.
  Result<std::string> get(const std::string& path);

 private:
  HttpClient(Descriptor socket, std::string login) : socket_(std::move(socket)), login_(std::move(login)) {}

  Descriptor socket_;
  std::string login_;  // the value of Authorization
};

}  // namespace lightq::bench
