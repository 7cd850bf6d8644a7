/// Sockets of the operating system: owned descriptors, listening, accepting. Layer: endpoint.
#pragma once

#include <sys/types.h>
#include <cstddef>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Owns a descriptor; closes it.
class UniqueFd {
 public:
  UniqueFd() = default;
  /// `may_bring_descriptors`: it is a Unix socket, and the system cannot keep its peers from passing
  /// descriptors over it. To read or to close such a one may wait: see `receive` and close_apart.
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
  void reset();

 private:
  int descriptor_ = -1;
  bool may_bring_descriptors_ = false;
};

/// A Unix-domain socket's file.
struct SocketFile {
  std::string path;  ///< empty: there is none
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  /// Removes the file, but no other one that has its name by now.
  void remove() const;
};

/// A listening socket; non-blocking. TCP: whom it accepts has no delay, and keep-alive.
struct ListeningSocket {
  UniqueFd descriptor;
  std::uint16_t port = 0;  ///< tcp: the bound port
  bool loopback = false;   ///< nobody comes to it but from this machine
  SocketFile file = {};    ///< of a Unix-domain socket: who closes the socket removes it first
};

/// `host` as a URI wants it: an IPv6 address in brackets, anything else as it is.
std::string uri_host(const std::string& host);

/// The first numeric address of `host`, a name or an address; an IPv4 one if there is any; `localhost`
/// is 127.0.0.1 also on a machine that has no name for itself. May wait for a name server: for the start, not
/// for a thread that others wait for. Error: invalid_argument (it does not resolve).
Result<std::string> resolve_host(const std::string& host);

/// Listens on `address` (numeric, IPv4 or IPv6 without brackets) and `port`, 0 for any. Errors:
/// invalid_argument (a name), address_in_use, limit_reached (descriptors), io_error.
Result<ListeningSocket> listen_tcp(const std::string& address, std::uint16_t port);

/// Who may connect to a Unix-domain socket, as far as its file's mode says.
enum class SocketMode { everybody, owner };

/// Listens on a Unix-domain socket at `path`, in the place of a socket at which nobody listens any more.
/// Nobody else ever may connect to one for its owner. Errors: invalid_argument (path too long for the system,
/// 107 bytes), address_in_use (a process listens there, or what is there is no socket and stays),
/// limit_reached, io_error.
Result<ListeningSocket> listen_unix(const std::string& path, SocketMode mode = SocketMode::everybody);

enum class AcceptOutcome { accepted, none, out_of_descriptors };
struct Accepted {
  AcceptOutcome outcome = AcceptOutcome::none;
  UniqueFd descriptor;  ///< non-blocking
};
/// The next waiting connection. Keeps so many of the process's descriptors free for everything else.
Accepted accept_connection(const ListeningSocket& listener, std::size_t reserved);

/// Reads from a connection what has come. Never waits. Returns what ::recv does; EPROTO: its peer has passed
/// descriptors over it, and nothing is read. The kernel closes them in the call that reads, which may wait.
ssize_t receive(const UniqueFd& connection, std::span<std::byte> to);

/// As take_wakes, of the session's own socket. Returns false also where descriptors were passed.
bool receive_wakes(const UniqueFd& connection);

/// From now on the descriptor counts as readable when so many bytes have come, or the end; on a Unix socket
/// any byte will do.
void set_low_water(int descriptor, std::size_t bytes);

/// Returns true if what was sent over a TCP connection, or asked of a peer that has no room for more, has got
/// no answer from the peer's system several times. A process that does not read is no reason.
bool answers_nothing(int descriptor);

/// What still comes, and is not read, costs as little memory as the system lets it.
void keep_little(int descriptor);

/// Raises this process's soft limit of descriptors to the hard one. Answers the limit in force.
std::uint64_t raise_descriptor_limit();

}  // namespace lightq::broker
