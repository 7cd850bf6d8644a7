/// A client of a broker's HTTP. Layer: bench support.
#include "support/load/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

#include <lightq/base/base64.hpp>

namespace lightq::bench {
namespace {

constexpr int receive_seconds_max = 30;
constexpr std::size_t response_bytes_max = 64 << 20;
constexpr std::string_view scheme = "http://";
constexpr std::string_view length_field = "\r\nContent-Length: ";
constexpr std::string_view end_of_head = "\r\n\r\n";

/// Returns the length of the content that the head announces; nothing more than 0 if it announces none.
std::size_t announced_length(std::string_view head) {
  const std::size_t at = head.find(length_field);
  if (at == std::string_view::npos) return 0;
  std::size_t length = 0;
  const char* const digits = head.data() + at + length_field.size();
  std::from_chars(digits, head.data() + head.size(), length);
  return length;
}

}  // namespace

Result<HttpClient> HttpClient::connect(const std::string& uri, std::string user, std::string password) {
  const std::size_t colon = uri.rfind(':');
  if (!uri.starts_with(scheme) || colon <= scheme.size()) return failure("no HTTP address: " + uri);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(uri.substr(colon + 1))));
  const std::string host = uri.substr(scheme.size(), colon - scheme.size());
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return failure("no address: " + host);
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error("cannot connect to " + uri);
  const timeval longest{receive_seconds_max, 0};
  const int on = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return HttpClient(std::move(socket), "Basic " + to_base64(user + ":" + password));
}

Result<std::string> HttpClient::get(const std::string& path) {
  const auto sent =
      send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + login_ + "\r\n\r\n");
  if (!sent) return sent.error();
  return receive();
}

Result<void> HttpClient::post(const std::string& path, const std::string& content_type,
                              const std::string& content) {
  return send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + login_ +
              "\r\nContent-Type: " + content_type + "\r\nContent-Length: " + std::to_string(content.size()) +
              "\r\n\r\n" + content);
}

Result<void> HttpClient::send(const std::string& request) {
  for (std::size_t at = 0; at < request.size();) {
    const ssize_t count = ::send(socket_.get(), request.data() + at, request.size() - at, MSG_NOSIGNAL);
    if (count <= 0) return system_error("cannot send a request");
    at += static_cast<std::size_t>(count);
  }
  return {};
}

Result<std::string> HttpClient::receive() {
  std::string response;
  std::array<char, 65536> bytes{};
  std::size_t body = std::string::npos;
  while (body == std::string::npos || response.size() < body + announced_length(response.substr(0, body))) {
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return system_error("no whole response");
    response.append(bytes.data(), static_cast<std::size_t>(count));
    if (response.size() > response_bytes_max) return failure("the response is longer than 64 MiB");
    if (body != std::string::npos) continue;
    body = response.find(end_of_head);
    if (body != std::string::npos) body += end_of_head.size();
  }
  if (!response.starts_with("HTTP/1.1 200 ")) return failure(response.substr(0, 400));
  return response.substr(body);
}

}  // namespace lightq::bench
