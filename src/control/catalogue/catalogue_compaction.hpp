/// Writes a new log for the catalogue, which replaces one that is mostly history. Layer: control.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <lightq/base/result.hpp>

#include "control/catalogue/catalogue_record.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Appends the changes in batches. Does not sync them. Errors: no_space, io_error; shutting_down if `stop` is
/// requested.
Result<void> append_changes(log::Log& log, std::span<const CatalogueChange> changes, Timestamp now,
                            const std::stop_token& stop = {});

/// Writes the catalogue's state as it was when the compaction began (Catalogue::begin_compaction). The
/// catalogue stays in use meanwhile. Thread: `run` may be called once, on any thread; everything else on the
/// catalogue's thread.
class CatalogueCompaction {
 public:
  using OpenLog = std::function<Result<std::unique_ptr<log::Log>>(const std::filesystem::path&)>;

  /// `directory`: the directory of the new log, under a name that is not taken for a complete log.
  CatalogueCompaction(std::filesystem::path directory, std::vector<CatalogueChange> state, OpenLog open_log,
                      Timestamp now);

  /// Writes the state into the new log and syncs it. Removes files that an earlier attempt left in its
  /// directory.
  void run(const std::stop_token& stop);
  /// Appends the changes made since the compaction began, syncs and closes the log. Errors: also any error of
  /// `run`.
  Result<void> add(std::span<const CatalogueChange> since);
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  Result<void> write(const std::stop_token& stop);

  const std::filesystem::path directory_;
  const std::vector<CatalogueChange> state_;
  const OpenLog open_log_;
  const Timestamp now_;
  Result<void> outcome_;
  std::unique_ptr<log::Log> log_;
};

}  // namespace lightq::broker
