/// A new log for the catalogue, in place of one that is mostly history. Layer: control.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <lightq/base/result.hpp>

#include "broker/control/catalogue_record.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Appends the changes in batches, none of which is durable yet. Errors: no_space, io_error; interrupted by
/// `stop`: shutting_down.
Result<void> append_changes(log::Log& log, std::span<const CatalogueChange> changes, Timestamp now,
                            const std::stop_token& stop = {});

/// Writes what the catalogue knew when it began (Catalogue::begin_compaction), while that goes on. `run`
/// once, on any thread; all else on the catalogue's.
class CatalogueCompaction {
 public:
  using OpenLog = std::function<Result<std::unique_ptr<log::Log>>(const std::filesystem::path&)>;

  /// `directory`: of the new log, under a name by which nobody takes it for one.
  CatalogueCompaction(std::filesystem::path directory, std::vector<CatalogueChange> state, OpenLog open_log,
                      Timestamp now);

  /// The new log has the state, and is synced; what lay in its place before is gone.
  void run(const std::stop_token& stop);
  /// Changes that have been made since it began, behind the state; synced, and the log is closed. Errors
  /// also: what was in the way of `run`.
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
