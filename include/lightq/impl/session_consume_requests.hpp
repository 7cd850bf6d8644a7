/// The requests of a consumer that the broker has not answered yet. Layer: client.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// At most one request to seek and one to close the channel. Request numbers are those on the wire; 0 is
/// never one. Owned by a SessionConsumeLink. For one thread.
class SessionConsumeRequests {
 public:
  /// Records that a seek was sent with the request number `number`. Drops the answer to an earlier seek.
  void seek(std::uint32_t number) {
    seeking_ = number;
    sought_.reset();
  }
  /// Records that the request to close the channel was sent.
  void close(std::uint32_t number) { closing_ = number; }

  /// Returns true until the answer to the seek has arrived, or the connection has ended.
  [[nodiscard]] bool is_seeking() const { return seeking_ != 0; }
  /// Returns true until the answer to the close has arrived, or the connection has ended.
  [[nodiscard]] bool is_closing() const { return closing_ != 0; }
  [[nodiscard]] bool any() const { return is_seeking() || is_closing(); }
  /// Returns the broker's answer to the seek, or nothing if the connection ended instead.
  std::optional<Result<Offset>> take_sought() { return std::exchange(sought_, std::nullopt); }

  /// Returns true if `number` is that of the unanswered seek.
  [[nodiscard]] bool is_seek(std::uint32_t number) const { return number != 0 && number == seeking_; }
  /// Takes the answer to the seek. Requires: is_seek.
  void sought(Result<Offset> answer) {
    seeking_ = 0;
    sought_ = std::move(answer);
  }
  /// If `number` is that of the unanswered close, takes this answer and returns true. An error closes the
  /// channel too, so it needs no distinction.
  bool closed(std::uint32_t number) {
    if (number == 0 || number != closing_) return false;
    closing_ = 0;
    return true;
  }
  /// Forgets the requests because the connection has ended: no answer comes.
  void forget() { seeking_ = closing_ = 0; }

 private:
  std::uint32_t seeking_ = 0;  // the number of the request; 0: none
  std::uint32_t closing_ = 0;
  std::optional<Result<Offset>> sought_;
};

}  // namespace lightq::inline v1
