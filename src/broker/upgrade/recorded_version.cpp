/// Reads, compares and writes the version in a data directory. Layer: broker.
#include "broker/upgrade/recorded_version.hpp"

#include <array>
#include <charconv>
#include <cstdint>

#include <lightq/base/private_file.hpp>
#include <lightq/version.hpp>

#include "access/private_file.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t version_bytes_max = 64;
constexpr mode_t version_mode = 0644;

std::optional<std::array<std::uint32_t, 3>> parts_of_version(std::string_view text) {
  std::array<std::uint32_t, 3> parts{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [next, fault] = std::from_chars(at, end, parts.at(i));
    if (fault != std::errc()) return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(parts) : std::nullopt;
}

/// Returns the text of the file without its line end; empty if it cannot be read.
std::string recorded_text(const std::filesystem::path& directory) {
  const PipeWait no_wait{.time_max = std::chrono::milliseconds(0)};
  auto text = read_public_file((directory / "version").string(), "a version", version_bytes_max,
                               LinkRule::refused, no_wait);
  if (!text) return {};
  if (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

}  // namespace

bool is_newer_version(std::string_view version, std::string_view other) {
  const auto parts = parts_of_version(version);
  const auto other_parts = parts_of_version(other);
  return parts && other_parts && *parts > *other_parts;
}

std::optional<std::string> newer_version_in(const std::filesystem::path& directory) {
  std::string recorded = recorded_text(directory);
  if (!is_newer_version(recorded, version_text)) return std::nullopt;
  return recorded;
}

Result<void> record_version(const std::filesystem::path& directory) {
  const std::string recorded = recorded_text(directory);
  if (recorded == version_text || is_newer_version(recorded, version_text)) return {};
  return write_file_atomically(directory / "version", std::string(version_text) + "\n", version_mode);
}

Error with_writer(Error error, const std::optional<std::string>& newer) {
  if (newer && error.code == ErrorCode::foreign_format)
    error.message += "; LightQ " + *newer + " has used this data directory, and this is " +
                     std::string(version_text) + ": start that version, or restore a backup";
  return error;
}

}  // namespace lightq::broker
