/// A secret text, such as a password, a ticket or a private key. Layer: base.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/wipe.hpp>

namespace lightq::inline v1 {

/// Owns a secret text. Overwrites its bytes when it is destroyed, assigned to, or moved from. A text becomes
/// a Secret implicitly; a Secret never becomes a text: reading it takes a call of `expose()`. So it cannot be
/// printed or logged by accident. Each copy wipes itself. One thread.
///
///     Secret password = "only for this process";
///     Secret moved = std::move(password);   // `password` is empty, and its bytes are overwritten
///     connect(moved.expose());
class Secret {
 public:
  Secret() = default;
  /// Copies `text`, which the caller keeps.
  template <std::convertible_to<std::string_view> Text>
  Secret(const Text& text) : text_(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  /// Takes over `text`, and leaves it empty and overwritten.
  Secret(std::string&& text) noexcept {  // NOLINT(google-explicit-constructor)
    take(text);
  }
  Secret(const Secret& other) = default;
  Secret(Secret&& other) noexcept { take(other.text_); }
  Secret& operator=(const Secret& other) {
    if (this != &other) *this = Secret(other);
    return *this;
  }
  Secret& operator=(Secret&& other) noexcept {
    if (this == &other) return *this;
    wipe_text(text_);
    take(other.text_);
    return *this;
  }
  ~Secret() { wipe_text(text_); }

  /// Returns the text. Lifetime: until this object changes.
  [[nodiscard]] const std::string& expose() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  /// Returns the length in bytes.
  [[nodiscard]] std::size_t size() const { return text_.size(); }

  /// Compares two texts. The time that it takes depends on where they differ.
  friend bool operator==(const Secret& left, const Secret& right) { return left.text_ == right.text_; }

 private:
  /// Takes the text of `other`. A move would leave the bytes of a short text behind. Requires: text_ is
  /// empty.
  void take(std::string& other) noexcept {
    text_.swap(other);
    wipe_text(other);
  }

  std::string text_;
};

}  // namespace lightq::inline v1
