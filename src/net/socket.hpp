/// Sockets of the operating system: owned descriptors, listening, accepting, reading. Layer: net.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Owns a descriptor and closes it.
class UniqueFd {
 public:
  UniqueFd() = default;
  /// `may_bring_descriptors`: the descriptor is a Unix socket, and the system cannot forbid its peer to pass
  /// descriptors over it. Reading or closing such a socket may wait: see `receive` and close_apart.
  explicit UniqueFd(int descriptor, bool may_bring_descriptors = false)
      : descriptor_(descriptor), may_bring_descriptors_(may_bring_descriptors) {}
  UniqueFd(UniqueFd&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        may_bring_descriptors_(other.may_bring_descriptors_) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = std::exchange(other.descriptor_, -1);
      may_bring_descriptors_ = other.may_bring_descriptors_;
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool valid() const { return descriptor_ >= 0; }
  [[nodiscard]] bool may_bring_descriptors() const { return may_bring_descriptors_; }
  /// Returns the descriptor, which the caller closes from now on.
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }
  void reset();

 private:
  int descriptor_ = -1;
  bool may_bring_descriptors_ = false;
};

/// The file of a Unix-domain socket, identified by device and inode.
struct SocketFile {
  std::string path;  ///< empty: there is no file
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  /// Removes the file, unless another file has its name by now.
  void remove() const;
};

/// A listening, non-blocking socket. TCP connections that it accepts have TCP_NODELAY and keep-alive.
struct ListeningSocket {
  UniqueFd descriptor;
  std::uint16_t port = 0;  ///< tcp: the bound port
  bool loopback = false;   ///< only processes of this machine can connect
  SocketFile file = {};    ///< of a Unix-domain socket; remove it before the socket is closed
};

/// Returns `host` in the form of a URI: an IPv6 address in brackets, anything else unchanged.
std::string uri_host(const std::string& host);

/// Returns the first numeric address of `host`, a name or an address. Prefers IPv4 addresses. `localhost` is
/// 127.0.0.1 even on a machine that cannot resolve it. May wait for a name server, so it is for the start and
/// not for threads that serve clients. Error: invalid_argument (`host` does not resolve).
Result<std::string> resolve_host(const std::string& host);

/// Listens on `address` (numeric, IPv4 or IPv6 without brackets) and `port`; 0 lets the system choose one.
/// Errors: invalid_argument (`address` is a name), address_in_use, limit_reached (descriptors), io_error.
Result<ListeningSocket> listen_tcp(const std::string& address, std::uint16_t port);

/// The users that a Unix-domain socket's file mode allows to connect.
enum class SocketMode { everybody, owner };

/// Listens on a Unix-domain socket at `path`. Replaces a socket there on which no process listens. With
/// SocketMode::owner no other user can connect at any moment. Errors: invalid_argument (`path` is longer than
/// the system's 107 bytes), address_in_use (a process listens there, or `path` is no socket, which stays),
/// limit_reached, io_error.
Result<ListeningSocket> listen_unix(const std::string& path, SocketMode mode = SocketMode::everybody);

/// The outcome of accept_connection. `none`: no connection could be accepted. `out_of_descriptors`: the
/// system lacks descriptors or memory.
enum class AcceptOutcome { accepted, none, out_of_descriptors };
struct Accepted {
  AcceptOutcome outcome = AcceptOutcome::none;
  UniqueFd descriptor;  ///< non-blocking
};
/// Accepts the next waiting connection. Closes it, with the outcome out_of_descriptors, if fewer than
/// `reserved` of the process's descriptors would stay free.
Accepted accept_connection(const ListeningSocket& listener, std::size_t reserved);

/// Reads the bytes that have arrived on a connection. Never waits. Returns the result of ::recv. Fails with
/// EPROTO, and reads nothing, if the peer has passed descriptors. The kernel would close them in the call
/// that reads them, and such a close may wait.
ssize_t receive(const UniqueFd& connection, std::span<std::byte> to);

/// Reads the wakes that have arrived on the session's own socket, as take_wakes does. Returns false if the
/// peer has ended the connection or passed descriptors.
bool receive_wakes(const UniqueFd& connection);

/// Makes the descriptor readable only when `bytes` bytes or the end have arrived. A Unix socket stays
/// readable from the first byte on.
void set_low_water(int descriptor, std::size_t bytes);

/// Returns true if the peer's system has not answered four attempts in a row: retransmissions, or probes of a
/// full receive window. A peer process that does not read is no reason, because its system answers.
bool answers_nothing(int descriptor);

/// Shrinks the socket's receive buffer to the minimum.
void keep_little(int descriptor);

/// Raises this process's soft limit of descriptors to the hard limit. Returns the limit in force.
std::uint64_t raise_descriptor_limit();

}  // namespace lightq::broker
