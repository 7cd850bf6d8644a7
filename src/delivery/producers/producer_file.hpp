/// A topic's known producers on disk. Layer: delivery. docs/log_format.md, "Producer file", specifies the
/// bytes and when the file may be written.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "delivery/producers/producer_table.hpp"
#include "log/saved_state/slot_file.hpp"

namespace lightq::broker {

/// The most producers that a file has.
inline constexpr std::size_t producer_file_entries_max = limits::producers_max;

/// The producers as of the time when the log ended at `as_of`.
struct ProducerSnapshot {
  Offset as_of;
  std::vector<KnownProducer> producers;  ///< the longest idle producer first
  friend bool operator==(const ProducerSnapshot&, const ProducerSnapshot&) = default;
};

/// An encoded snapshot. One thread encodes it, and another may write it.
struct EncodedProducers {
  log::SlotBytes slot;
};

/// Reads and writes two files in turn, `producers.0` and `producers.1`.
/// Thread: one at a time, but `encode` may run on one thread while another is in `write`.
class ProducerFile {
 public:
  /// Touches no file before `load` or `write`. Lifetime: the storage outlives this object.
  ProducerFile(log::Storage& storage, std::string directory);

  /// Returns the newest sound snapshot, or nothing if neither file exists. Errors: corrupt or foreign_format
  /// if files exist and none is sound, each with file and position; io_error.
  Result<std::optional<ProducerSnapshot>> load();
  /// Returns the error of the file that the last load skipped. Returns nothing if all was well.
  [[nodiscard]] const std::optional<Error>& passed_over() const { return slots_.passed_over(); }

  /// Encodes a snapshot. Requires: at most producer_file_entries_max producers, and no id is 0.
  static EncodedProducers encode(const ProducerSnapshot& snapshot);
  /// Writes and syncs the snapshot. If it returns without error, the snapshot survives a power cut. Loads
  /// first if `load` was not called. Errors: io_error, no_space; the previous snapshot is still there then.
  Result<void> write(EncodedProducers snapshot);
  /// Removes both files, so that they stay removed after a power cut.
  Result<void> remove() { return slots_.remove(); }
  /// Returns the files themselves, to which encoded snapshots are written later.
  [[nodiscard]] log::SlotFile take_slots() && { return std::move(slots_); }

 private:
  log::SlotFile slots_;
};

}  // namespace lightq::broker
