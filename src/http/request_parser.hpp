/// Parses requests over HTTP/1.1 from bytes. Layer: http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <lightq/base/limits.hpp>

#include "http/http_request.hpp"
#include "http/http_response.hpp"

namespace lightq::broker {

/// The limits of one request.
struct RequestLimits {
  std::size_t head_bytes_max = limits::http_head_bytes_max;
  std::size_t body_bytes_max = limits::http_body_bytes_max;
};

/// Parses one request at a time, of HTTP/1.0 or 1.1. Refuses everything that two programs could read in
/// different ways: more than one length, a length beside Transfer-Encoding, an encoding other than chunked,
/// more than one Host or Authorization, a header over several lines. Thread: one.
class RequestParser {
 public:
  enum class State : std::uint8_t {
    more,     ///< the request is not complete
    request,  ///< take_request has it
    refused,  ///< refusal() answers it; the connection must end after that
  };

  explicit RequestParser(const RequestLimits& request_limits = {});
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;
  ~RequestParser();

  /// Parses bytes from the front of `bytes`, and returns how many it has taken. The caller passes the others
  /// again, followed by newer ones. While the state is `more`, the parser leaves at most
  /// RequestLimits::head_bytes_max bytes.
  std::size_t feed(std::string_view bytes);
  [[nodiscard]] State state() const;
  /// Returns true if the head is complete.
  [[nodiscard]] bool has_head() const;
  /// Returns the bytes of content that it keeps.
  [[nodiscard]] std::size_t content_bytes() const;
  /// Returns true once if the client waits for `100 Continue` before it sends the body.
  [[nodiscard]] bool take_wants_continue();
  /// Returns the request, and prepares for the next one. Requires: state() is `request`.
  [[nodiscard]] HttpRequest take_request();
  /// Requires: state() is `refused`.
  [[nodiscard]] const HttpResponse& refusal() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace lightq::broker
