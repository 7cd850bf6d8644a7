/// A response over HTTP. Layer: http.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lightq::broker {

/// The status, headers and content of a response. The connection adds Date, Content-Length and Connection.
/// A stream has no length: HttpExchange::send_more sends further content, and the connection ends behind it.
struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< further ones
  /// Called instead of sending if the connection has ended, or if it ends before all is sent; empty: nothing
  /// is. Thread: the HTTP thread.
  std::function<void()> not_sent = {};
  bool is_stream = false;
  /// Called for a stream, each time the system has taken all content so far; not behind the last part. Never
  /// called within send_more. Thread: the HTTP thread.
  std::function<void()> taken = {};
  /// Destroyed when the response is sent or dropped.
  std::shared_ptr<const void> held = {};
};

}  // namespace lightq::broker
