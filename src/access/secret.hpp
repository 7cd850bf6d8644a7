/// A text that wipes itself: passwords on their way through the broker. Layer: access.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/wipe.hpp>

namespace lightq::broker {

/// Owns a secret. Move-only; wiped on destruction. It does not convert to text implicitly: a reader must call
/// `expose()`.
class Secret {
 public:
  Secret() = default;
  /// Copies `text`. The caller wipes its own copy.
  explicit Secret(std::string_view text) : text_(text) {}
  Secret(Secret&& other) noexcept { take(other); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      wipe_text(text_);
      take(other);
    }
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe_text(text_); }

  [[nodiscard]] const std::string& expose() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

 private:
  void take(Secret& other) {
    text_ = other.text_;  // a move would leave the bytes of a short text behind
    wipe_text(other.text_);
  }

  std::string text_;
};

}  // namespace lightq::broker
