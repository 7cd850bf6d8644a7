/// A topic's known producers, on disk. Layer: delivery. Byte by byte, and when it may be written:
/// docs/log_format.md, "Producer file".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <lightq/base/limits.hpp>

#include "broker/delivery/producer_table.hpp"
#include "log/slot_file.hpp"

namespace lightq::broker {

/// No file has more.
inline constexpr std::size_t producer_file_entries_max = limits::producers_max;

/// The producers as they were when the log ended at `as_of`.
struct ProducerSnapshot {
  Offset as_of;
  std::vector<KnownProducer> producers;  ///< the one that was idle longest first
  friend bool operator==(const ProducerSnapshot&, const ProducerSnapshot&) = default;
};

/// A snapshot ready to be written, made on one thread for another.
struct EncodedProducers {
  log::SlotBytes slot;
};

/// Two files, `producers.0` and `producers.1`, written in turn. Not for two threads at once; `encode` may be
/// called while another thread is in `write`.
class ProducerFile {
 public:
  /// Nothing is touched before load or write. The storage must outlive it.
  ProducerFile(log::Storage& storage, std::string directory);

  /// The newest snapshot that is sound; nothing if neither file exists. Errors: corrupt or foreign_format if
  /// there are files and none is sound, each with file and position; io_error.
  Result<std::optional<ProducerSnapshot>> load();
  /// The file passed over by the last load, and why. Nothing if all was well.
  [[nodiscard]] const std::optional<Error>& passed_over() const { return slots_.passed_over(); }

  /// Requires at most producer_file_entries_max producers, with ids that are not 0.
  static EncodedProducers encode(const ProducerSnapshot& snapshot);
  /// Writes and syncs; when it returns without error, the snapshot survives a power cut. Loads first if
  /// nobody did. Errors: io_error, no_space; the snapshot written before is still there then.
  Result<void> write(EncodedProducers snapshot);
  /// Neither file is there afterwards, nor after a power cut.
  Result<void> remove() { return slots_.remove(); }

 private:
  log::SlotFile slots_;
};

}  // namespace lightq::broker
