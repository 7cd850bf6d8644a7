/// One connection over HTTP. Layer: http.
#include "http/http_connection.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <span>
#include <utility>

#include <boost/asio/buffer.hpp>

#include "http/problem.hpp"

namespace lightq::broker {

namespace {

std::string date_now() {
  std::array<char, 64> text{};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  const std::size_t length = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), length};
}

std::string head_of(const HttpResponse& response, bool keep_alive) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(reason_of(response.status)).append("\r\nDate: ").append(date_now());
  if (response.status != 204) {  // which has no content, not even an empty one
    head.append("\r\nContent-Type: ").append(response.content_type);
    if (!response.is_stream) head.append("\r\nContent-Length: ").append(std::to_string(response.body.size()));
  }
  for (const auto& [name, value] : response.headers)
    head.append("\r\n").append(name).append(": ").append(value);
  head.append("\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: ");
  return head.append(keep_alive ? "keep-alive" : "close").append("\r\n\r\n");
}

}  // namespace

HttpConnection::HttpConnection(boost::asio::ip::tcp::socket socket, Owner& owner,
                               const HttpSettings& settings, std::uint64_t id)
    : socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      owner_(owner),
      settings_(settings),
      id_(id),
      source_(source_of(socket_.native_handle())) {
  if (settings_.tls != nullptr) cipher_ = std::make_unique<TlsCipher>(*settings_.tls);
}

void HttpConnection::start() {
  wait_for(Wait::first_byte);
  read_more();
}

void HttpConnection::close() {
  if (std::exchange(is_closed_, true)) return;
  AsioError ignored;
  deadline_.cancel();
  socket_.close(ignored);
  release_content();
  release_response();
  taken_ = nullptr;
  if (const auto not_sent = std::exchange(not_sent_, nullptr)) not_sent();
  owner_.closed(*this);
}

// --- Deadlines ---

void HttpConnection::wait_for(Wait wait) {
  const HttpTimes& times = settings_.times;
  const std::chrono::milliseconds longest[] = {times.first_byte, times.head, times.body,   times.idle,
                                               times.work,       times.send, times.linger, times.send};
  wait_ = wait;
  deadline_.expires_after(longest[static_cast<std::size_t>(wait)]);
  deadline_.async_wait([self = shared_from_this()](const AsioError& error) {
    // A deadline that was moved has already been reported if it passed in the same moment.
    if (!error && self->deadline_.expiry() <= HttpLoop::Clock::now()) self->on_deadline();
  });
}

void HttpConnection::on_deadline() {
  if (is_closed_) return;
  switch (wait_) {
    case Wait::first_byte:
    case Wait::idle:
    case Wait::send:
    case Wait::stream:
    case Wait::linger: return close();
    case Wait::head:
    case Wait::body: return refuse(problem(408, ErrorCode::timeout, "the request did not arrive in time"));
    case Wait::work:
      keeps_alive_ = false;
      return respond(requests_, problem(Error{ErrorCode::timeout, "the broker did not answer in time"}));
  }
}

// --- Input ---

void HttpConnection::read_more() {
  if (is_closed_ || std::exchange(is_reading_, true)) return;
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](const AsioError& error) { self->on_readable(error); });
}

void HttpConnection::on_readable(const AsioError& error) {
  is_reading_ = false;
  if (is_closed_) return;
  if (error) return close();
  if (wait_ == Wait::work) return look_for_end();
  if (wait_ == Wait::stream) return drop_input();
  if (wait_ == Wait::send) return;  // reads on after the response
  AsioError failed;
  std::vector<std::byte>& scratch = owner_.scratch();
  const std::size_t count = socket_.read_some(boost::asio::buffer(scratch), failed);
  if (failed == boost::asio::error::would_block) return read_more();
  if (failed) return close();
  if (wait_ == Wait::linger) return read_more();
  if (!take_bytes(count)) return close();
  write_pending();
  if (input_.empty()) return read_more();
  parse();
}

/// Takes bytes from the scratch memory, and decrypts them. Returns false if the connection has to end.
bool HttpConnection::take_bytes(std::size_t count) {
  const std::span<std::byte> received(owner_.scratch().data(), count);
  if (cipher_ == nullptr) {
    input_.append(reinterpret_cast<const char*>(received.data()), received.size());
    return true;
  }
  wire_input_.insert(wire_input_.end(), received.begin(), received.end());
  std::vector<std::byte> plain;
  const std::size_t taken = cipher_->open(wire_input_, plain, output_);
  wire_input_.erase(wire_input_.begin(), wire_input_.begin() + static_cast<std::ptrdiff_t>(taken));
  if (wire_input_.empty()) wire_input_.shrink_to_fit();
  input_.append(reinterpret_cast<const char*>(plain.data()), plain.size());
  return cipher_->failure().empty();
}

void HttpConnection::parse() {
  if (wait_ == Wait::first_byte || wait_ == Wait::idle) {
    wait_for(Wait::head);
    owner_.idle_changed(*this, false);
  }
  if (parser_ == nullptr) parser_ = std::make_unique<RequestParser>();
  input_.erase(0, parser_->feed(input_));
  if (!keep_content()) {
    owner_.content_refused();
    return refuse(problem(429, ErrorCode::busy, "the broker has too much content of requests under way"));
  }
  switch (parser_->state()) {
    case RequestParser::State::request: return handle();
    case RequestParser::State::refused: return refuse(parser_->refusal());
    case RequestParser::State::more: break;
  }
  if (parser_->has_head() && wait_ == Wait::head) wait_for(Wait::body);
  if (parser_->take_wants_continue()) write("HTTP/1.1 100 Continue\r\n\r\n");
  read_more();
}

void HttpConnection::handle() {
  HttpRequest request = parser_->take_request();
  parser_.reset();
  ++requests_;
  is_under_way_ = true;
  keeps_alive_ = request.keep_alive;
  is_head_ = request.is_head();
  wait_for(Wait::work);
  owner_.requested(*this, std::move(request));
}

bool HttpConnection::keep_content() {
  const std::size_t bytes = parser_->content_bytes();
  if (bytes <= counted_.content) return true;
  if (!owner_.keep_content(source_.key, bytes - counted_.content)) return false;
  counted_.content = bytes;
  return true;
}

void HttpConnection::release_content() {
  if (counted_.content > 0) owner_.release_content(source_.key, std::exchange(counted_.content, 0));
}

void HttpConnection::watch_end(std::uint64_t request) {
  if (is_under_way_ && request == requests_) read_more();
}

/// Called when bytes or the end arrive while a request is handled. Bytes are those of the next request, which
/// stays in the socket.
void HttpConnection::look_for_end() {
  AsioError failed;
  std::byte first{};
  const std::size_t count =
      socket_.receive(boost::asio::buffer(&first, 1), boost::asio::ip::tcp::socket::message_peek, failed);
  if (failed == boost::asio::error::would_block) return read_more();
  if (failed || count == 0) close();
}

/// Reads on during a stream, to see its end. Its client has nothing more to say.
void HttpConnection::drop_input() {
  AsioError failed;
  const std::size_t count = socket_.read_some(boost::asio::buffer(owner_.scratch()), failed);
  if (failed == boost::asio::error::would_block) return read_more();
  if (failed || (cipher_ != nullptr && !take_bytes(count))) return close();
  input_.clear();
  write_pending();
  read_more();
}

/// Answers a request that is not handled, and ends the connection: it is not known where the next one begins.
void HttpConnection::refuse(HttpResponse response) {
  owner_.refused(response);
  parser_.reset();
  keeps_alive_ = is_head_ = false;
  send(std::move(response));
}

// --- Output ---

void HttpConnection::respond(std::uint64_t request, HttpResponse response) {
  if (is_closed_ || !is_under_way_ || request != requests_) {
    if (response.not_sent) response.not_sent();
    return;
  }
  is_under_way_ = false;
  send(std::move(response));
}

/// Counts a long response until it is sent. If there is no space for it, refuses the request instead.
void HttpConnection::keep_response(HttpResponse& response) {
  const std::size_t bytes = response.body.size();
  if (is_head_ || bytes < limits::http_response_bytes_free) return;
  if (owner_.keep_response(source_.key, bytes)) {
    counted_.response = bytes;
    return;
  }
  const auto not_sent = std::move(response.not_sent);
  response = problem({ErrorCode::busy, "too many long responses are not read yet; try again"});
  if (not_sent) not_sent();
}

void HttpConnection::release_response() {
  if (counted_.response > 0) owner_.release_response(source_.key, std::exchange(counted_.response, 0));
}

void HttpConnection::send(HttpResponse response) {
  release_content();
  keep_response(response);
  wait_for(response.is_stream ? Wait::stream : Wait::send);
  is_responding_ = !response.is_stream;
  keeps_alive_ = keeps_alive_ && !response.is_stream;
  not_sent_ = std::move(response.not_sent);
  taken_ = std::move(response.taken);
  std::string text = head_of(response, keeps_alive_);
  if (!is_head_) text += response.body;
  write(text);
  if (cipher_ != nullptr && !cipher_->failure().empty()) return close();
  if (response.is_stream) read_more();
}

void HttpConnection::send_more(std::uint64_t request, std::string_view part, bool is_last) {
  if (is_closed_ || wait_ != Wait::stream || request != requests_) return;
  if (is_last) wait_for(Wait::send);
  is_responding_ = is_last;
  write(part);
  if (cipher_ != nullptr && !cipher_->failure().empty()) close();
}

/// Encrypts the text if there is a cipher, and writes it behind all earlier output.
void HttpConnection::write(std::string_view plain) {
  ByteView left = as_byte_view(plain);
  if (cipher_ == nullptr) output_.insert(output_.end(), left.begin(), left.end());
  while (cipher_ != nullptr && !left.empty()) {
    const std::size_t sealed = cipher_->seal(left, output_);
    if (sealed == 0) break;
    left = left.subspan(sealed);
  }
  write_pending();
}

void HttpConnection::write_pending() {
  if (is_closed_ || is_writing_) return;
  if (sending_.empty()) {
    sending_.swap(output_);
    written_ = 0;
  }
  if (sending_.empty()) {
    if (std::exchange(is_responding_, false)) return after_response();
    if (wait_ == Wait::stream) deadline_.cancel();
    return;
  }
  if (wait_ == Wait::stream) wait_for(Wait::stream);
  is_writing_ = true;
  socket_.async_write_some(boost::asio::buffer(sending_.data() + written_, sending_.size() - written_),
                           [self = shared_from_this()](const AsioError& error, std::size_t bytes) {
                             self->on_written(error, bytes);
                           });
}

void HttpConnection::on_written(const AsioError& error, std::size_t bytes) {
  is_writing_ = false;
  if (is_closed_) return;
  if (error) return close();
  written_ += bytes;
  if (written_ == sending_.size()) std::vector<std::byte>().swap(sending_);
  write_pending();
  // `taken_` may send more, or end the stream.
  const auto taken = taken_;
  if (taken != nullptr && wait_ == Wait::stream && !is_writing_ && !is_closed_) taken();
}

void HttpConnection::after_response() {
  release_response();
  not_sent_ = taken_ = nullptr;
  if (!keeps_alive_) return linger();
  wait_for(Wait::idle);
  owner_.idle_changed(*this, true);
  if (!input_.empty()) return parse();
  input_.shrink_to_fit();
  read_more();
}

/// Lets the client receive the response before the connection ends: bytes that arrive at a closed socket
/// would make the system discard it.
void HttpConnection::linger() {
  AsioError ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  wait_for(Wait::linger);
  read_more();
}

}  // namespace lightq::broker
