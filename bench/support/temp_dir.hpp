/// A directory that is removed with its owner. Layer: bench support.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace lightq::bench {

/// Creates a directory below $TMPDIR (or the system's temporary directory). The destructor removes it with
/// its contents. Throws std::filesystem::filesystem_error if it cannot be created.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lightq-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::filesystem::filesystem_error("cannot make a directory", pattern,
                                              std::error_code(errno, std::generic_category()));
    }
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lightq::bench
