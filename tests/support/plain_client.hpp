/// The commands that a client sends in ZMTP's PLAIN handshake, for tests of the broker's side.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/protocol/zmtp.hpp>

namespace lightq::test {

/// Appends a HELLO command frame with at most the first 255 bytes of each text.
inline void append_plain_hello(std::vector<std::byte>& to, std::string_view username,
                               std::string_view password) {
  std::vector<std::byte> data;
  for (std::string_view text : {username, password}) {
    text = text.substr(0, zmtp::short_body_bytes_max);
    data.push_back(static_cast<std::byte>(text.size()));
    const ByteView bytes = as_byte_view(text);
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  zmtp::append_command(to, "HELLO", data);
}

/// Appends an INITIATE command frame.
inline void append_plain_initiate(std::vector<std::byte>& to, std::string_view socket_type) {
  zmtp::append_command(to, "INITIATE", zmtp::metadata_of(socket_type));
}

}  // namespace lightq::test
