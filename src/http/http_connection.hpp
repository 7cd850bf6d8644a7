/// One connection over HTTP. Layer: http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "crypto/tls_cipher.hpp"
#include "http/http_loop.hpp"
#include "http/http_settings.hpp"
#include "http/request_parser.hpp"
#include "http/router.hpp"
#include "net/request_source.hpp"

namespace lightq::broker {

/// Reads requests, passes them to its owner one by one, and writes the responses. Encrypts if it has a
/// cipher. Every wait has a deadline. An idle connection has no buffer. Thread: the HTTP thread.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  /// The object that handles requests. HttpServer implements it.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Handles a request: calls `reply` once, on any thread.
    virtual void requested(HttpConnection& connection, HttpRequest request) = 0;
    /// Called when the connection begins to wait for a request, and when one begins to arrive or is handled.
    virtual void idle_changed(HttpConnection& connection, bool is_idle) = 0;
    /// Called when a request was refused before it was handled.
    virtual void refused(const HttpResponse& response) = 0;
    /// Called once, at the end.
    virtual void closed(HttpConnection& connection) = 0;
    /// Called when more bytes of a request's content from `source` are kept. Returns false if there is no
    /// space for them.
    virtual bool keep_content(const std::string& source, std::size_t bytes) = 0;
    virtual void release_content(const std::string& source, std::size_t bytes) = 0;
    /// Called before a long response to `source` is sent. Returns false if there is no space for it.
    virtual bool keep_response(const std::string& source, std::size_t bytes) = 0;
    virtual void release_response(const std::string& source, std::size_t bytes) = 0;
    /// Called when a request was refused because there was no space for its content.
    virtual void content_refused() = 0;
    /// Returns memory for input, shared by all connections.
    virtual std::vector<std::byte>& scratch() = 0;
  };

  /// Lifetime: `owner` and `settings` outlive the connection.
  HttpConnection(boost::asio::ip::tcp::socket socket, Owner& owner, const HttpSettings& settings,
                 std::uint64_t id);

  void start();
  void close();
  /// Sends the response to the request that is under way. Does nothing if there is none, or it has another
  /// number: the request took too long, and was answered already. HttpResponse::not_sent is called then.
  void respond(std::uint64_t request, HttpResponse response);

  /// Sends further content of the stream with which this request was answered: see HttpExchange::send_more.
  void send_more(std::uint64_t request, std::string_view part, bool is_last);
  /// Closes the connection when the client ends its side before the response. Requires: this request is under
  /// way.
  void watch_end(std::uint64_t request);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// Returns the number of the request that is under way.
  [[nodiscard]] std::uint64_t request_number() const { return requests_; }
  [[nodiscard]] const RequestSource& source() const { return source_; }

 private:
  /// The reason for which the connection waits. Each has a deadline.
  /// In a stream it runs only while content waits.
  enum class Wait : std::uint8_t { first_byte, head, body, idle, work, send, linger, stream };

  using AsioError = boost::system::error_code;

  /// The bytes that the owner counts for this connection.
  struct Counted {
    std::size_t content = 0;   // of the request
    std::size_t response = 0;  // 0 for a short one
  };

  void wait_for(Wait wait);
  void on_deadline();
  void read_more();
  void on_readable(const AsioError& error);
  bool take_bytes(std::size_t count);
  void parse();
  void handle();
  void refuse(HttpResponse response);
  void send(HttpResponse response);
  void write(std::string_view plain);
  void write_pending();
  void on_written(const AsioError& error, std::size_t bytes);
  void after_response();
  void linger();
  void look_for_end();
  void drop_input();
  bool keep_content();
  void release_content();
  void keep_response(HttpResponse& response);
  void release_response();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer deadline_;
  Owner& owner_;
  const HttpSettings& settings_;
  const std::uint64_t id_;
  const RequestSource source_;
  std::unique_ptr<WireCipher> cipher_;     // null: nothing is encrypted
  std::unique_ptr<RequestParser> parser_;  // while a request arrives
  std::string input_;                      // decrypted, and not parsed
  std::vector<std::byte> wire_input_;      // encrypted, and not decrypted
  std::vector<std::byte> output_;          // to write next
  std::vector<std::byte> sending_;         // while is_writing_
  std::size_t written_ = 0;                // of sending_
  Counted counted_;
  std::function<void()> not_sent_;  // of the response that is sent
  std::function<void()> taken_;     // of the stream that is sent
  Wait wait_ = Wait::first_byte;
  std::uint64_t requests_ = 0;
  bool is_under_way_ = false;  // a request is handled
  bool keeps_alive_ = true;
  bool is_head_ = false;        // the request asks for no content
  bool is_writing_ = false;     // an asynchronous write runs
  bool is_reading_ = false;     // an asynchronous wait for input runs
  bool is_responding_ = false;  // output_ has a response to its end
  bool is_closed_ = false;
};

}  // namespace lightq::broker
