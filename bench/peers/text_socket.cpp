/// Reads and writes with time limits. Layer: bench peers.
#include "peers/text_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <charconv>
#include <stdexcept>

#include "peers/peer.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t line_bytes_max = 4'096;
constexpr std::size_t content_bytes_max = 1 << 20;
constexpr std::size_t read_bytes = 64 * 1024;

[[noreturn]] void throw_lost(const char* what) {
  throw std::runtime_error(std::string("the connection to the server: ") + what);
}

}  // namespace

TextSocket::TextSocket(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(peer_patience).count();
  const timeval patience{static_cast<time_t>(seconds), 0};
  const int on = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw_lost("cannot connect");
}

void TextSocket::write_out() {
  for (std::size_t written = 0; written < out_.size();) {
    const ssize_t count = ::send(socket_.get(), out_.data() + written, out_.size() - written, MSG_NOSIGNAL);
    if (count <= 0) throw_lost("cannot write");
    written += static_cast<std::size_t>(count);
  }
  out_.clear();
}

bool TextSocket::has_input(std::chrono::milliseconds wait) {
  if (at_ < in_.size()) return true;
  pollfd wanted{socket_.get(), POLLIN, 0};
  return ::poll(&wanted, 1, static_cast<int>(wait.count())) == 1;
}

void TextSocket::fill() {
  in_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = in_.size();
  in_.resize(kept + read_bytes);
  const ssize_t count = ::recv(socket_.get(), in_.data() + kept, read_bytes, 0);
  in_.resize(kept + static_cast<std::size_t>(count > 0 ? count : 0));
  if (count == 0) throw_lost("the server has closed it");
  if (count < 0) throw_lost("no answer in time");
}

std::string_view TextSocket::line() {
  for (;;) {
    const std::size_t end = in_.find("\r\n", at_);
    if (end != std::string::npos && end - at_ <= line_bytes_max) {
      const std::string_view found(in_.data() + at_, end - at_);
      at_ = end + 2;
      return found;
    }
    if (in_.size() - at_ > line_bytes_max) throw_lost("an endless line came");
    fill();
  }
}

ByteView TextSocket::bytes(std::size_t count) {
  if (count > content_bytes_max) throw_lost("the server announces too much");
  while (in_.size() - at_ < count) fill();
  const ByteView found(reinterpret_cast<const std::byte*>(in_.data() + at_), count);
  at_ += count;
  return found;
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || last != end)
    throw std::runtime_error("the server sent \"" + std::string(text) + "\" instead of a number");
  return number;
}

}  // namespace lightq::bench
