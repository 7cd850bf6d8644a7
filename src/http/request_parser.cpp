/// Parses requests over HTTP/1.1 from bytes. The only source that includes Beast. Layer: http.
#include "http/request_parser.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/ascii_case.hpp"
#include "http/problem.hpp"

namespace lightq::broker {

namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::string_body>;
using Message = http::request<http::string_body>;

HttpResponse refused(unsigned status, std::string_view detail) {
  return problem(status,
                 status == 413 || status == 414 || status == 431 ? ErrorCode::request_too_large
                                                                 : ErrorCode::invalid_request,
                 detail);
}

HttpResponse refused(const boost::system::error_code& error) {
  if (error == http::error::header_limit) return refused(431, "the head of the request is too large");
  if (error == http::error::body_limit) return refused(413, "the body of the request is too large");
  if (error == http::error::bad_version) return refused(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  return refused(400, "this is no HTTP request: " + error.message());
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

/// Returns the only value of a header; empty if there is none. Nothing if there are several.
std::optional<std::string_view> only_value(const Message& message, http::field name) {
  const auto [first, end] = message.equal_range(name);
  if (first == end) return std::string_view();
  return std::next(first) == end ? std::optional(view(first->value())) : std::nullopt;
}

/// Joins the values of a header that may be given several times.
std::string all_values(const Message& message, http::field name) {
  std::string joined;
  const auto [first, end] = message.equal_range(name);
  for (auto each = first; each != end; ++each) {
    if (!joined.empty()) joined += ", ";
    joined += view(each->value());
  }
  return joined;
}

/// Returns true if a line continues the header before it: some programs read it as a header of its own.
/// `taken`: whole lines of a head, perhaps with its end and a body.
bool has_folded_line(std::string_view taken) {
  if (taken.starts_with("\r\n")) return false;
  const std::string_view head = taken.substr(0, taken.find("\r\n\r\n"));
  return head.find("\r\n ") != std::string_view::npos || head.find("\r\n\t") != std::string_view::npos;
}

/// Returns a media type without its parameters.
std::string media_type_of(std::string_view value) {
  const std::string_view type = value.substr(0, value.find(';'));
  return in_lower_case(type.substr(0, type.find_last_not_of(" \t") + 1));
}

/// Splits a request target in the forms `/path?query` and `http://host/path?query`. The host of the latter
/// replaces that of the header. Returns nothing for other forms.
std::optional<std::pair<std::string_view, std::string_view>> split_target(std::string_view target,
                                                                          std::string& host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    host = target.substr(0, end);
    target.remove_prefix(end);
    if (target.empty()) target = "/";
  }
  if (!target.starts_with('/') || target.find('#') != std::string_view::npos) return std::nullopt;
  const std::size_t mark = std::min(target.find('?'), target.size());
  return std::pair(target.substr(0, mark), target.substr(std::min(mark + 1, target.size())));
}

}  // namespace

class RequestParser::Impl {
 public:
  explicit Impl(const RequestLimits& request_limits) : limits_(request_limits) { begin(); }

  void begin() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<std::uint32_t>(limits_.head_bytes_max));
    parser_->body_limit(limits_.body_bytes_max);
    state_ = State::more;
    is_checked_ = wants_continue_ = false;
  }

  std::size_t feed(std::string_view bytes) {
    std::size_t taken = 0;
    while (state_ == State::more && taken < bytes.size()) {
      boost::system::error_code error;
      const std::size_t put =
          parser_->put(boost::asio::buffer(bytes.data() + taken, bytes.size() - taken), error);
      if (error && error != http::error::need_more) {
        refuse(refused(error));
        break;
      }
      if (!is_checked_ && has_folded_line(bytes.substr(taken, put))) {
        refuse(refused(400, "a header is continued on the next line"));
        break;
      }
      taken += put;
      if (parser_->is_header_done() && !std::exchange(is_checked_, true)) check_head();
      if (state_ == State::more && parser_->is_done()) finish();
      if (put == 0 || error == http::error::need_more) break;
    }
    // The head has its own limit. Other lines, such as those between chunks, have none in Beast.
    if (state_ == State::more && bytes.size() - taken > limits_.head_bytes_max)
      refuse(refused(400, "a line of the body is too long"));
    return taken;
  }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool has_head() const { return is_checked_; }
  [[nodiscard]] std::size_t content_bytes() const {
    return state_ == State::request ? request_.body.size() : parser_->get().body().size();
  }
  [[nodiscard]] bool take_wants_continue() { return std::exchange(wants_continue_, false); }
  [[nodiscard]] const HttpResponse& refusal() const { return refusal_; }
  [[nodiscard]] HttpRequest take_request() {
    HttpRequest request = std::move(request_);
    request_ = {};
    begin();
    return request;
  }

 private:
  void refuse(HttpResponse response) {
    refusal_ = std::move(response);
    state_ = State::refused;
  }

  void check_head() {
    const Message& head = parser_->get();
    if (std::distance(head.begin(), head.end()) > static_cast<std::ptrdiff_t>(limits::http_headers_max))
      return refuse(refused(431, "the request has too many headers"));
    if (head.version() != 10 && head.version() != 11)
      return refuse(refused(505, "only HTTP/1.0 and HTTP/1.1 are spoken here"));
    if (head.target().size() > limits::http_target_bytes_max)
      return refuse(refused(414, "the URL is too long"));
    if (const char* const doubt = doubt_about_length(head)) return refuse(refused(400, doubt));
    const auto host = only_value(head, http::field::host);
    const auto origin = only_value(head, http::field::origin);
    const auto authorization = only_value(head, http::field::authorization);
    const auto content_type = only_value(head, http::field::content_type);
    if (!host || !origin || !authorization || !content_type)
      return refuse(refused(400, "Host, Origin, Authorization or Content-Type is given more than once"));
    if (head.count("Last-Event-ID") > 1) return refuse(refused(400, "Last-Event-ID is given more than once"));
    if (head.count(http::field::host) == 0) return refuse(refused(400, "the request has no Host"));
    request_.host = *host;
    request_.origin = *origin;
    request_.authorization = Secret(*authorization);
    request_.content_type = media_type_of(*content_type);
    request_.fetch_site = view(head["Sec-Fetch-Site"]);
    request_.last_event_id = view(head["Last-Event-ID"]);
    take_fields(head);
    take_target(head);
    const bool has_body = parser_->chunked() || parser_->content_length_remaining().value_or(0) > 0;
    wants_continue_ = state_ == State::more && has_body && head.version() == 11 &&
                      boost::beast::iequals(head[http::field::expect], "100-continue");
  }

  /// Returns why it is not certain where the body ends, or null.
  static const char* doubt_about_length(const Message& head) {
    const bool has_encoding = head.count(http::field::transfer_encoding) > 0;
    const bool is_list = head[http::field::content_length].find(',') != boost::beast::string_view::npos;
    if (head.count(http::field::content_length) > 1 || is_list)
      return "Content-Length is given more than once";
    if (!has_encoding) return nullptr;
    if (head.count(http::field::content_length) > 0)
      return "Content-Length and Transfer-Encoding are given together";
    if (head.version() == 10) return "HTTP/1.0 has no Transfer-Encoding";
    const bool only_chunked = head.count(http::field::transfer_encoding) == 1 &&
                              boost::beast::iequals(head[http::field::transfer_encoding], "chunked");
    return only_chunked ? nullptr : "the only Transfer-Encoding that is read here is chunked";
  }

  void take_fields(const Message& head) {
    constexpr std::string_view prefix = "lightq-";
    for (const auto& header : head) {
      const std::string name = in_lower_case(view(header.name_string()));
      if (name.starts_with(prefix))
        request_.fields.emplace_back(name.substr(prefix.size()), view(header.value()));
    }
  }

  void take_target(const Message& head) {
    const auto parts = split_target(view(head.target()), request_.host);
    if (!parts) return refuse(refused(400, "the URL does not begin with a slash, or has a #"));
    auto path = percent_decoded(parts->first, false);
    auto query = Query::parse(parts->second);
    if (!path)
      return refuse(refused(400, "the path has a % without two hexadecimal digits, a byte 0, or no UTF-8"));
    if (!query) return refuse(refused(400, query.error().text()));
    request_.path = std::move(*path);
    take_segments(parts->first);
    request_.query = std::move(*query);
  }

  /// Requires: the path can be decoded.
  void take_segments(std::string_view path) {
    request_.segments.clear();
    path.remove_prefix(1);
    while (true) {
      const std::size_t slash = std::min(path.find('/'), path.size());
      request_.segments.push_back(percent_decoded(path.substr(0, slash), false).value_or(std::string()));
      if (slash == path.size()) return;
      path.remove_prefix(slash + 1);
    }
  }

  void finish() {
    Message& message = parser_->get();
    request_.method = view(message.method_string());
    request_.accept = all_values(message, http::field::accept);
    request_.keep_alive = message.keep_alive();
    request_.body = std::move(message.body());
    state_ = State::request;
  }

  const RequestLimits limits_;
  std::optional<Parser> parser_;
  HttpRequest request_;
  HttpResponse refusal_;
  State state_ = State::more;
  bool is_checked_ = false;  // the head
  bool wants_continue_ = false;
};

RequestParser::RequestParser(const RequestLimits& request_limits)
    : impl_(std::make_unique<Impl>(request_limits)) {}

RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) {
  return impl_->feed(bytes);
}

RequestParser::State RequestParser::state() const {
  return impl_->state();
}

bool RequestParser::has_head() const {
  return impl_->has_head();
}

std::size_t RequestParser::content_bytes() const {
  return impl_->content_bytes();
}

bool RequestParser::take_wants_continue() {
  return impl_->take_wants_continue();
}

HttpRequest RequestParser::take_request() {
  return impl_->take_request();
}

const HttpResponse& RequestParser::refusal() const {
  return impl_->refusal();
}

}  // namespace lightq::broker
