/// The directory that contains the logs of the catalogue. Layer: control.
#include "control/catalogue/catalogue_directory.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "log/storage/posix_storage.hpp"

namespace lightq::broker {

namespace {

namespace fs = std::filesystem;

constexpr const char* unfinished_suffix = ".new";
constexpr std::size_t generation_digits = 8;

Error file_error(const std::string& what, const fs::path& path, const std::error_code& code) {
  return {ErrorCode::io_error, "catalogue: cannot " + what + " " + path.string(), code.value()};
}

std::optional<std::uint64_t> generation_of(const std::string& name) {
  if (name.size() != generation_digits || name.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoull(name);
}

/// The logs found in the catalogue's directory.
struct Generations {
  std::set<std::uint64_t> whole;
  std::vector<fs::path> unfinished;
};

Result<Generations> generations_in(const fs::path& directory) {
  Generations found;
  std::error_code code;
  for (fs::directory_iterator at(directory, code), end; !code && at != end; at.increment(code)) {
    const auto generation = generation_of(at->path().filename().string());
    if (generation) found.whole.insert(*generation);
    if (!generation && at->path().extension() == unfinished_suffix) found.unfinished.push_back(at->path());
  }
  if (code && code != std::errc::no_such_file_or_directory) return file_error("read", directory, code);
  return found;
}

}  // namespace

fs::path CatalogueDirectory::log(std::uint64_t generation) const {
  const auto digits = std::to_string(generation);
  return path_ / (std::string(generation_digits - std::min(generation_digits, digits.size()), '0') + digits);
}

fs::path CatalogueDirectory::unfinished_log(std::uint64_t generation) const {
  return log(generation).string() + unfinished_suffix;
}

Result<std::optional<std::uint64_t>> CatalogueDirectory::newest() const {
  const auto found = generations_in(path_);
  if (!found) return found.error();
  return found->whole.empty() ? std::nullopt : std::optional(*found->whole.rbegin());
}

Result<void> CatalogueDirectory::make() const {
  std::error_code code;
  fs::create_directories(path_, code);
  if (code) return file_error("make", path_, code);
  return {};
}

Result<void> CatalogueDirectory::sync() const {
  auto synced = log::PosixStorage().sync_directory(path_.string());
  if (synced) return synced;
  Error error = synced.error();
  error.message = "catalogue: " + error.message;
  return error;
}

Result<void> CatalogueDirectory::complete(std::uint64_t generation) const {
  std::error_code code;
  fs::rename(unfinished_log(generation), log(generation), code);
  if (code) return file_error("rename", unfinished_log(generation), code);
  return {};
}

Result<void> CatalogueDirectory::remove_all_but(std::uint64_t generation) const {
  auto found = generations_in(path_);
  if (!found) return found.error();
  found->whole.erase(generation);
  for (const auto older : found->whole) found->unfinished.push_back(log(older));
  if (found->unfinished.empty()) return {};
  std::error_code ignored;  // the next start removes any that stay
  for (const auto& path : found->unfinished) fs::remove_all(path, ignored);
  return sync();
}

}  // namespace lightq::broker
