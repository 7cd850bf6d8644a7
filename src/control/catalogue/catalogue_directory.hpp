/// The directory that contains the logs of the catalogue. Layer: control.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Names the logs of the catalogue: DIRECTORY/NNNNNNNN for each generation, and DIRECTORY/NNNNNNNN.new while
/// one is being written. Keeps no state about the files. Errors: io_error. One thread.
class CatalogueDirectory {
 public:
  explicit CatalogueDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path log(std::uint64_t generation) const;
  [[nodiscard]] std::filesystem::path unfinished_log(std::uint64_t generation) const;

  /// Returns the generation of the newest complete log; nothing if there is none, or no directory.
  [[nodiscard]] Result<std::optional<std::uint64_t>> newest() const;
  /// Creates the directory if it does not exist.
  [[nodiscard]] Result<void> make() const;
  /// Syncs the directory. A rename or removal in it survives a power cut only after that.
  [[nodiscard]] Result<void> sync() const;
  /// Names the unfinished log of this generation as a complete one. Does not sync.
  [[nodiscard]] Result<void> complete(std::uint64_t generation) const;
  /// Removes older logs and any unfinished one that a crash left, and syncs.
  [[nodiscard]] Result<void> remove_all_but(std::uint64_t generation) const;

 private:
  const std::filesystem::path path_;
};

}  // namespace lightq::broker
