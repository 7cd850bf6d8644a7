/// A text that wipes itself: passwords on their way through the broker. Layer: control.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace lightq::broker {

/// Overwrites a text's bytes, in a way that a compiler must not leave out, and empties it.
inline void wipe(std::string& text) {
  text.resize(text.capacity());  // what lay beyond the end too
  explicit_bzero(text.data(), text.size());
  text.clear();
}

/// Owns a secret; move-only, wiped at the end of its life. Has no conversion to text on purpose: what reads
/// it says `expose()`.
class Secret {
 public:
  Secret() = default;
  /// Copies; the caller wipes what it has.
  explicit Secret(std::string_view text) : text_(text) {}
  Secret(Secret&& other) noexcept { take(other); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      wipe(text_);
      take(other);
    }
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe(text_); }

  [[nodiscard]] const std::string& expose() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

 private:
  void take(Secret& other) {
    text_ = other.text_;  // a move would leave a short text behind
    wipe(other.text_);
  }

  std::string text_;
};

}  // namespace lightq::broker
