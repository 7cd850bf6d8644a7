/// The open file of a segment and its mappings. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "log/format/segment_node.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// Opens and maps a segment's file when that is needed, and writes into it.
///
/// Owns the descriptor, the mapping for reading, and the mapping for writing. Called by SegmentFile, by its
/// parts, and through them by all parts of a log. Thread: one at a time, except that another thread may sync
/// the file.
///
/// Invariant: with a mapping there is also a descriptor, unless the mapping for writing has outlived it
/// (release_descriptor).
class SegmentBytes {
 public:
  /// `file`: the open file, or null. `usable_bytes`: how much is mapped.
  SegmentBytes(std::string path, std::uint64_t usable_bytes, std::shared_ptr<File> file)
      : path_(std::move(path)), usable_bytes_(usable_bytes), file_(std::move(file)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the position that no batch may cross.
  [[nodiscard]] std::uint64_t usable_bytes() const { return usable_bytes_; }
  /// Returns the open file, or null.
  [[nodiscard]] const std::shared_ptr<File>& file() const { return file_; }
  /// Opens the file unless it is open. Errors: io_error.
  Result<void> open(Storage& storage, OpenMode mode);

  /// Maps the file for reading unless it is mapped. Errors: io_error; then a file that was opened for it is
  /// closed again.
  Result<void> map_for_reading(Storage& storage, OpenMode mode);
  [[nodiscard]] bool is_readable() const { return mapping_ != nullptr; }
  /// Returns the bytes of the file. Requires: is_readable().
  [[nodiscard]] const std::byte* data() const { return mapping_->data(); }
  void unmap_for_reading() { mapping_.reset(); }

  /// Maps the open file for writing. `views` counts the mapping, if it is not null. Errors: io_error.
  Result<void> map_for_writing(SegmentViews* views);
  /// Sets the mapping through which the file is written.
  void write_through(std::shared_ptr<WritableMapping> mapping) { writable_ = std::move(mapping); }
  /// Ends writing through the mapping and returns it. The caller destroys it where that may take a while.
  std::shared_ptr<WritableMapping> stop_writing() { return std::move(writable_); }
  /// Returns the mapping through which the file is written, or null.
  [[nodiscard]] const std::shared_ptr<WritableMapping>& writable() const { return writable_; }
  /// Writes at a position: through the mapping if there is one, because a system call costs the writer a
  /// hundred times as much as the stores; else into the file. Errors: io_error, no_space.
  Result<void> write(ByteView bytes, std::uint64_t position) {
    if (writable_ == nullptr) return write_all(*file_, bytes, position);
    std::memcpy(writable_->data() + position, bytes.data(), bytes.size());
    return {};
  }

  /// Closes the descriptor, see File::release_descriptor. Requires: the file is open.
  bool release_descriptor() { return file_->release_descriptor(path_); }
  /// Closes the file and ends writing.
  void close() {
    writable_.reset();
    file_.reset();
  }

 private:
  std::string path_;
  std::uint64_t usable_bytes_;
  std::shared_ptr<File> file_;
  std::unique_ptr<Mapping> mapping_;
  std::shared_ptr<WritableMapping> writable_;
};

}  // namespace lightq::log
