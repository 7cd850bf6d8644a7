/// A cipher for tests that hides nothing. A unit is one byte of mark, three bytes of length, and the plain
/// bytes inverted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "net/wire_cipher.hpp"

namespace lightq::test {

/// Opens with its own handshake: the peer sends "knock", this side replies "enter".
class ToyCipher final : public broker::WireCipher {
 public:
  static constexpr std::size_t header_bytes = 4;
  static constexpr std::byte mark{0x5A};

  /// `unit_bytes_max` limits the bytes that seal() takes at once, and the unit that open() accepts. `knocks`:
  /// there is a handshake. `any_bytes`: it declares that it seals any bytes, which it always does.
  explicit ToyCipher(std::size_t unit_bytes_max, bool knocks = false, bool any_bytes = false)
      : unit_bytes_max_(unit_bytes_max), ready_(!knocks), any_bytes_(any_bytes) {}

  static void seal_to(ByteView plain, std::vector<std::byte>& wire) {
    wire.push_back(mark);
    for (int shift = 0; shift < 24; shift += 8)
      wire.push_back(static_cast<std::byte>((plain.size() >> static_cast<unsigned>(shift)) & 255U));
    append_inverted(plain, wire);
  }

  std::size_t open(std::span<std::byte> wire, std::vector<std::byte>& plain,
                   std::vector<std::byte>& answer) override {
    std::size_t at = 0;
    if (!ready_) {
      constexpr std::string_view knock = "knock";
      const auto come = as_text(wire).substr(0, knock.size());
      if (come != knock.substr(0, come.size())) failure_ = "it does not knock";
      if (!failure_.empty() || come.size() < knock.size()) return 0;
      at = knock.size();
      ready_ = true;
      for (const char letter : std::string_view("enter")) answer.push_back(static_cast<std::byte>(letter));
    }
    while (failure_.empty() && wire.size() - at >= header_bytes) {
      if (wire[at] != mark) {
        failure_ = "no unit";
        break;
      }
      const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(wire[at + i]); };
      const std::size_t bytes = byte(1) | byte(2) << 8U | byte(3) << 16U;
      if (bytes > unit_bytes_max_) failure_ = "a unit too long";
      if (!failure_.empty() || wire.size() - at < header_bytes + bytes) break;
      append_inverted(wire.subspan(at + header_bytes, bytes), plain);
      at += header_bytes + bytes;
    }
    return at;
  }
  [[nodiscard]] bool ready() const override { return ready_; }
  std::size_t seal(ByteView plain, std::vector<std::byte>& wire) override {
    const std::size_t bytes = std::min(plain.size(), unit_bytes_max_);
    if (bytes > 0) seal_to(plain.first(bytes), wire);
    return bytes;
  }
  [[nodiscard]] bool seals_any_bytes() const override { return any_bytes_; }
  [[nodiscard]] const std::string& failure() const override { return failure_; }

 private:
  // Inverts eight bytes at a time, because tests are compiled without optimisation.
  static void append_inverted(ByteView from, std::vector<std::byte>& to) {
    const std::size_t begin = to.size();
    to.resize(begin + from.size());
    std::size_t at = 0;
    for (std::uint64_t word = 0; from.size() - at >= sizeof word; at += sizeof word) {
      std::memcpy(&word, from.data() + at, sizeof word);
      word = ~word;
      std::memcpy(to.data() + begin + at, &word, sizeof word);
    }
    for (; at < from.size(); ++at) to[begin + at] = ~from[at];
  }

  const std::size_t unit_bytes_max_;
  bool ready_;
  const bool any_bytes_;
  std::string failure_;
};

}  // namespace lightq::test
