/// The number of streams that are open. Layer: http.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace lightq::broker {

/// Limits the streams of all clients together, and of each source or user. Thread: any.
class StreamPlaces {
 public:
  StreamPlaces(std::size_t all_max, std::size_t per_source_max);

  /// Returns a place for a stream of this source or user, which is free again when the last copy is
  /// destroyed. Null if there is none.
  [[nodiscard]] std::shared_ptr<const void> take(const std::string& source);

 private:
  class Table;
  const std::shared_ptr<Table> table_;
};

/// Returns a place that holds two others. Null if one of them is.
[[nodiscard]] std::shared_ptr<const void> both(std::shared_ptr<const void> one,
                                               std::shared_ptr<const void> other);

}  // namespace lightq::broker
