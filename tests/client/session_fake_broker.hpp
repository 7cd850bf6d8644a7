/// The broker's end of sessions for the client's tests: a listening socket, and connections with frames that
/// the test itself reads and writes. No call waits. Thread: one.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/protocol/session_producing.hpp>

#include "support/temp_dir.hpp"

namespace lightq::test {

/// A frame that the fake broker has received.
struct TakenFrame {
  session::FrameHeader header;
  std::vector<std::byte> body;

  template <typename Body>
  [[nodiscard]] Body as() const {
    EXPECT_EQ(header.op, Body::op);
    Result<Body> decoded = Body::decode(body, header.flags);
    EXPECT_TRUE(decoded.ok());
    return decoded.ok() ? *decoded : Body{};
  }
};

/// A produced batch, verified with its checksum.
struct TakenBatch {
  session::ProducerIdentity producer;
  std::uint64_t sequence = 0;
  std::vector<std::string> payloads;
  std::vector<std::byte> bytes;
  bool sound = false;

  [[nodiscard]] std::uint64_t end() const { return sequence + payloads.size(); }

  static TakenBatch of(const TakenFrame& frame) {
    namespace at = batch_layout;
    TakenBatch batch;
    batch.bytes = frame.body;
    std::vector<std::byte> stamped = frame.body;
    for (const std::size_t stamp : {at::base_offset, at::append_time_us})
      EXPECT_EQ(load_little_endian<std::uint64_t>(stamped.data() + stamp), 0U);
    stamp_batch(stamped, Offset{0}, Timestamp{0}, 0);
    batch.sound = BatchView::check(stamped) == std::nullopt &&
                  BatchView::trusted(stamped.data()).total_bytes() == stamped.size();
    if (!batch.sound) return batch;
    batch.producer.id = load_little_endian<std::uint64_t>(stamped.data() + at::producer_id);
    batch.producer.epoch = load_little_endian<std::uint16_t>(stamped.data() + at::producer_epoch);
    batch.sequence = load_little_endian<std::uint64_t>(stamped.data() + at::first_sequence);
    for (auto record = BatchView::trusted(stamped.data()).records(); !record.done(); record.next())
      batch.payloads.emplace_back(as_text(record.payload()));
    return batch;
  }
};

/// An accepted connection.
class FakeSession {
 public:
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  FakeSession() = default;
  explicit FakeSession(int fd) : fd_(fd) {}
  FakeSession(FakeSession&& other) noexcept { *this = std::move(other); }
  FakeSession& operator=(FakeSession&& other) noexcept {
    close();
    fd_ = std::exchange(other.fd_, -1);
    in_ = std::move(other.in_);
    out_ = std::move(other.out_);
    ended_ = other.ended_;
    return *this;
  }
  ~FakeSession() { close(); }

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] bool ended() const { return ended_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    in_.clear();
    out_.clear();
    ended_ = false;
  }

  /// Reads up to `most` of the available bytes.
  void read(std::size_t most = all) {
    while (most > 0 && fd_ >= 0) {
      std::array<std::byte, 65536> room{};
      const ssize_t got = ::recv(fd_, room.data(), std::min(most, room.size()), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) ended_ = true;
      if (got <= 0) return;
      in_.insert(in_.end(), room.begin(), room.begin() + got);
      most -= static_cast<std::size_t>(got);
    }
  }
  /// Returns the next whole frame of the bytes that were read. Its header and checksum have been verified.
  std::optional<TakenFrame> next() {
    using namespace session;
    if (in_.size() < frame_layout::header_bytes) return std::nullopt;
    const auto [fault, header] = decode_frame_header(in_, 1U << 30U);
    if (fault) {
      ADD_FAILURE() << "the client sent a broken frame: " << to_word(*fault);
      return std::nullopt;
    }
    const std::size_t whole = frame_layout::header_bytes + header.body_bytes;
    if (in_.size() < whole) return std::nullopt;
    EXPECT_TRUE(frame_crc_fits(in_, header));
    const auto begin = in_.begin() + frame_layout::header_bytes;
    const auto end = in_.begin() + static_cast<std::ptrdiff_t>(whole);
    TakenFrame frame{header, {begin, end}};
    in_.erase(in_.begin(), end);
    return frame;
  }

  template <typename Body>
  void put(const Body& body, std::uint32_t channel, std::uint32_t request) {
    put_bytes(session::encode_frame(body, channel, request));
  }
  void put_bytes(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  /// Sends up to `most` of the queued bytes.
  void write(std::size_t most = all) {
    const std::size_t wanted = std::min(most, out_.size());
    if (wanted == 0 || fd_ < 0) return;
    const ssize_t sent = ::send(fd_, out_.data(), wanted, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) out_.erase(out_.begin(), out_.begin() + sent);
  }
  template <typename Body>
  void say(const Body& body, std::uint32_t channel, std::uint32_t request) {
    put(body, channel, request);
    write();
  }

 private:
  int fd_ = -1;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  bool ended_ = false;
};

/// A listening Unix socket, or a TCP socket on 127.0.0.1.
class FakeSessionListener {
 public:
  enum class Kind { unix_socket, tcp };
  explicit FakeSessionListener(Kind kind = Kind::unix_socket) : kind_(kind) { open(); }
  FakeSessionListener(const FakeSessionListener&) = delete;
  FakeSessionListener& operator=(const FakeSessionListener&) = delete;
  ~FakeSessionListener() { close(); }

  [[nodiscard]] const std::string& uri() const { return uri_; }
  /// Refuses connections from now on.
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  /// Opens another listener at another address.
  void reopen() {
    close();
    open();
  }
  /// Returns a waiting connection, or a session that is not open if there is none.
  [[nodiscard]] int fd() const { return fd_; }
  FakeSession accept() const { return FakeSession(::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK)); }

 private:
  void open() {
    if (kind_ == Kind::tcp) return open_tcp();
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string path = directory_ / ("s" + std::to_string(++opened_));
    std::memcpy(name.sun_path, path.data(), path.size());
    listen_at(reinterpret_cast<const sockaddr*>(&name), sizeof name);
    uri_ = "ipc://" + path;
  }
  void open_tcp() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen_at(reinterpret_cast<const sockaddr*>(&name), sizeof name);
    socklen_t bytes = sizeof name;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &bytes);
    uri_ = "tcp://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  void listen_at(const sockaddr* name, socklen_t bytes) {
    fd_ = ::socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (::bind(fd_, name, bytes) != 0 || ::listen(fd_, 16) != 0) ADD_FAILURE() << "cannot listen: " << errno;
  }

  Kind kind_;
  TempDir directory_;
  int fd_ = -1;
  int opened_ = 0;
  std::string uri_;
};

}  // namespace lightq::test
