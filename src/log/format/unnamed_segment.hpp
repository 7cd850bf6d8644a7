/// A segment that was begun before its file was renamed. The rename would cost the writer more than all other
/// work of beginning a segment, so a disk thread does it a moment later. Layer: log. docs/log_format.md, "A
/// log's directory".
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/storage/storage.hpp"

namespace lightq::log {

/// Suffix of files in a log's directory that are prepared to become segments.
inline constexpr const char* prepared_suffix = ".prepared";
/// The file that will be the next segment, or that already is one but is not renamed yet.
inline constexpr const char* next_prepared_name = "next.prepared";

/// The pending rename of a segment. Thread: any.
class PendingName {
 public:
  PendingName(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  /// Renames the file, unless that was done before. Errors: io_error; it can be tried again then.
  Result<void> give(Storage& storage);
  [[nodiscard]] bool is_given() const { return given_.load(std::memory_order_acquire); }

 private:
  const std::string from_;
  const std::string to_;
  std::mutex mutex_;
  std::atomic<bool> given_{false};
};

/// Returns the first offset of the segment in `next.prepared`, if it contains messages and follows all in
/// `names`, the first offsets of the named segments. A process that has ended had begun it. Changes nothing.
/// Errors: io_error if the file exists and cannot be opened or read; foreign_format if a newer version wrote
/// it.
Result<std::optional<Offset>> unnamed_segment(const std::string& directory, const std::vector<Offset>& names,
                                              Storage& storage);

/// Renames the segment that unnamed_segment finds; does nothing if there is none. Requires: no process writes
/// in the directory. Errors: as for unnamed_segment, and io_error if the rename fails.
Result<void> name_unnamed_segment(const std::string& directory, const std::vector<Offset>& names,
                                  Storage& storage);

}  // namespace lightq::log
