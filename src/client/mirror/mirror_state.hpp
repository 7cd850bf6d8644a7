/// How far a mirror has come, in a file that survives its end. Layer: cli. docs/adr/0079.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/session_producing.hpp>

namespace lightq::cli {

/// Says which message of the source each sequence number of the mirror's producer is. The target counts the
/// numbers that it has stored, so the count says where to continue. Example: the points (0, 100) and (5, 108)
/// say that the source had no messages 105, 106 and 107, and that number 6 is message 109.
class MirrorPlaces {
 public:
  static constexpr std::size_t points_max = 1000;

  struct Point {
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };

  MirrorPlaces() = default;
  explicit MirrorPlaces(std::vector<Point> points) : points_(std::move(points)) {}

  /// Returns the offset that belongs to a number; nothing if the number is before the first point.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t sequence) const;
  /// Notes that the message of a number has this offset. Returns true if that is a new point, which must be
  /// saved before the message is sent. Requires: both are behind those of the last point.
  bool note(std::uint64_t sequence, std::uint64_t offset);
  /// Forgets what is known about the numbers from `sequence` on: their messages were never stored.
  void cut_from(std::uint64_t sequence);
  /// Forgets the points that are not needed for the numbers from `sequence` on.
  void forget_before(std::uint64_t sequence);
  [[nodiscard]] bool is_full() const { return points_.size() >= points_max; }
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;  // ascending in both members
};

struct MirrorState {
  static constexpr std::size_t bytes_max = limits::MiB;

  session::ProducerIdentity producer;
  std::optional<session::ProducerSecret> secret = {};
  std::uint64_t incarnation = 0;  ///< of the source's log, to which the offsets belong
  MirrorPlaces places = {};
};

std::string mirror_state_text(const MirrorState& state);
/// Errors: request_too_large, invalid_json, invalid_request (naming the member).
Result<MirrorState> parse_mirror_state(std::string_view text);

/// Reads a file; nothing if it does not exist. Errors: invalid_argument (it is no state of a mirror),
/// io_error.
Result<std::optional<MirrorState>> load_mirror_state(const std::string& file);
/// Replaces the file, and makes that survive a power cut. Errors: io_error, no_space; the old file stays
/// then.
Result<void> save_mirror_state(const std::string& file, const MirrorState& state);

}  // namespace lightq::cli
