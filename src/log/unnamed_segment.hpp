/// A segment that was begun before it had its name: a rename costs the writer more than all the rest of
/// beginning one, so a disk thread does it a moment later. Layer: log. docs/log_format.md, "A log's
/// directory".
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/storage.hpp"

namespace lightq::log {

/// What the names of files end in that a log's directory has before they become segments.
inline constexpr const char* prepared_suffix = ".prepared";
/// The file that is to become the next segment, or that already is it.
inline constexpr const char* next_prepared_name = "next.prepared";

/// The name that a segment is still to get. Any thread.
class PendingName {
 public:
  PendingName(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  /// Gives it, if that was not done before. Errors: io_error; it can be tried again then.
  Result<void> give(Storage& storage);
  [[nodiscard]] bool is_given() const { return given_.load(std::memory_order_acquire); }

 private:
  const std::string from_;
  const std::string to_;
  std::mutex mutex_;
  std::atomic<bool> given_{false};
};

/// The first offset of the segment in `next.prepared` that a process which was ended had begun, if it holds
/// something and belongs behind those of `names`, the first offsets of the segments that have a name. Nothing
/// is changed. Errors: io_error if there is a file that cannot be opened.
Result<std::optional<Offset>> unnamed_segment(const std::string& directory, const std::vector<Offset>& names,
                                              Storage& storage);

/// Gives it its name, in a directory that nobody writes to meanwhile; `names` as above. Nothing happens if
/// there is none. Errors: io_error.
Result<void> name_unnamed_segment(const std::string& directory, const std::vector<Offset>& names,
                                  Storage& storage);

}  // namespace lightq::log
