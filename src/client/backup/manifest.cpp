/// The list of a backup's files, with their checksums. Layer: cli.
#include "client/backup/manifest.hpp"

#include <algorithm>
#include <set>
#include <span>

#include <lightq/base/crc32c.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::cli {
namespace {

using protocol::detail::FieldReader;
using protocol::detail::OrderedJson;

constexpr std::size_t path_bytes_max = 255;
constexpr std::size_t version_bytes_max = 64;

/// Returns true for a name that a broker gives to its files: no hidden file, and no way up.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

bool is_path_below(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (!is_plain_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

BackupFile read_entry(FieldReader& fields) {
  BackupFile file;
  file.path = fields.text("path", 1, path_bytes_max);
  if (!fields.error() && !is_path_below(file.path))
    fields.fail("path", "must be a relative path of letters, digits, '.', '-' and '_'");
  file.bytes = fields.number("bytes", 0, protocol::detail::number_max, 0);
  file.checksum = static_cast<std::uint32_t>(fields.number("crc32c", 0, 0xFFFF'FFFF, 0));
  for (const char* const name : {"bytes", "crc32c"})
    if (!fields.has(name)) fields.fail(name, "missing");
  return file;
}

}  // namespace

std::string manifest_text(const BackupManifest& manifest) {
  OrderedJson document{{"cmd", "backup"},
                       {"status", "ok"},
                       {"format", 1},
                       {"version", manifest.version},
                       {"time_ms", manifest.time_ms}};
  OrderedJson& files = document["files"] = OrderedJson::array();
  for (const BackupFile& file : manifest.files)
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"crc32c", file.checksum}});
  return protocol::detail::dump(document) + "\n";
}

Result<BackupManifest> parse_manifest(std::string_view text) {
  const auto object = protocol::detail::parse_object(text, BackupManifest::bytes_max);
  if (!object && object.error().code == ErrorCode::invalid_cmd)
    return Error{ErrorCode::invalid_json, "not a JSON object"};
  if (!object) return object.error();
  FieldReader fields(*object);
  BackupManifest manifest;
  if (!fields.has("format")) fields.fail("format", "missing; this is no backup of lightq");
  if (fields.number("format", 1, protocol::detail::number_max, 1) != 1)
    fields.fail("format", "is of a newer version of lightq");
  manifest.version = fields.text("version", 1, version_bytes_max);
  manifest.time_ms = fields.number("time_ms", 0, protocol::detail::number_max, 0);
  std::set<std::string> paths;
  fields.objects("files", BackupManifest::files_max, [&](FieldReader& entry) {
    manifest.files.push_back(read_entry(entry));
    if (!entry.error() && !paths.insert(manifest.files.back().path).second)
      entry.fail("path", "given more than once");
  });
  if (!fields.error() && manifest.files.empty()) fields.fail("files", "missing, or empty");
  if (fields.error()) return *fields.error();
  return manifest;
}

Result<BackupFile> read_backup_file(log::File& from, log::File* to) {
  return read_backup_bytes(from, {.bytes = protocol::detail::number_max}, to);
}

Result<BackupFile> read_backup_bytes(log::File& from, FilePart part, log::File* to) {
  std::vector<std::byte> buffer(limits::MiB);
  BackupFile file;
  while (true) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), part.bytes - file.bytes);
    const auto got = log::read_all(from, std::span(buffer).first(wanted), part.begin + file.bytes);
    if (!got) return got.error();
    if (*got == 0) break;
    const ByteView bytes(buffer.data(), *got);
    file.checksum = crc32c(bytes, file.checksum);
    if (to != nullptr) {
      if (auto written = log::write_all(*to, bytes, file.bytes); !written) return written.error();
    }
    file.bytes += *got;
  }
  if (to == nullptr) return file;
  if (auto synced = to->sync(); !synced) return synced.error();
  return file;
}

}  // namespace lightq::cli
