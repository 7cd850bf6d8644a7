/// A TCP connection to a server on 127.0.0.1 for protocols of lines and counted bytes. Layer: bench peers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <lightq/base/types.hpp>

#include "support/posix.hpp"

namespace lightq::bench {

/// Buffers output until `write_out`. Each call that reads or writes throws std::runtime_error if the server
/// closes the connection, exceeds a limit, or is silent for longer than `peer_patience`. One thread.
class TextSocket {
 public:
  explicit TextSocket(std::uint16_t port);

  void put(std::string_view text) { out_.append(text); }
  void put(ByteView bytes) { out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }
  /// Writes all buffered output.
  void write_out();

  /// Returns true if input is there, or arrives within `wait`.
  [[nodiscard]] bool has_input(std::chrono::milliseconds wait);
  /// Returns the next line, without its end CR LF. Lines have at most 4,096 bytes. Valid until the next call.
  [[nodiscard]] std::string_view line();
  /// Returns the next `count` bytes, at most 1 MiB. Valid until the next call.
  [[nodiscard]] ByteView bytes(std::size_t count);

 private:
  void fill();
  Descriptor socket_;
  std::string out_;
  std::string in_;
  std::size_t at_ = 0;  // the part of in_ before it has been consumed
};

/// Returns the number that `text` consists of. Throws std::runtime_error if it is not one.
std::uint64_t number_in(std::string_view text);

}  // namespace lightq::bench
