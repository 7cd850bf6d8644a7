/// `lightq restore`: makes a data directory from a backup. Layer: cli.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <lightq/discovery.hpp>

#include "client/backup/backup_source.hpp"
#include "client/backup/manifest.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"
#include "log/format/restored_mark.hpp"
#include "log/storage/posix_storage.hpp"

namespace lightq::cli {
namespace {

/// Returns the directory to restore to: the one that was chosen, or that a broker would use.
Result<std::filesystem::path> restore_place(const std::string& chosen) {
  namespace fs = std::filesystem;
  const auto usual = data_directories(chosen);
  if (usual.empty()) return unusable_backup("name the data directory with --data-dir");
  const fs::path place = fs::absolute(usual.front()).lexically_normal();
  std::error_code fault;
  const auto kind = fs::symlink_status(place, fault).type();
  if (kind == fs::file_type::not_found) return place;
  if (kind == fs::file_type::directory && fs::is_empty(place, fault) && !fault) return place;
  return unusable_backup(
      place.string() +
      " exists already, and is not an empty directory: move it away, or name another one with "
      "--data-dir");
}

/// One restore, under a temporary name until it is complete.
class RestoreRun {
 public:
  /// `to`: empty: only checks the backup.
  RestoreRun(const Common& common, std::filesystem::path from, std::filesystem::path to)
      : from_(std::move(from)), to_(std::move(to)), progress_(common.quiet) {
    while (!to_.empty() && !to_.has_filename()) to_ = to_.parent_path();
    if (!to_.empty()) path_ = to_.string() + ".unfinished-" + std::to_string(storage_.random());
  }
  RestoreRun(const RestoreRun&) = delete;
  RestoreRun& operator=(const RestoreRun&) = delete;
  ~RestoreRun() {
    if (!path_.empty() && !is_finished_) log::remove_files(path_.string(), storage_);
  }

  Result<void> go() {
    if (auto read = read_manifest(); !read) return read;
    for (const BackupFile& file : manifest_.files) {
      if (interrupted()) return Error{ErrorCode::closed, "interrupted: nothing was restored", 0};
      if (auto taken = take(file); !taken) return taken;
      bytes_ += file.bytes;
      if (progress_.due()) progress_.show(format_size(bytes_));
    }
    progress_.clear();
    if (auto ended = source_->end(); !ended) return ended;
    return path_.empty() ? Result<void>() : finish();
  }
  [[nodiscard]] const BackupManifest& manifest() const { return manifest_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  Result<void> read_manifest() {
    auto opened = open_backup(from_, storage_);
    if (!opened) return opened.error();
    source_ = std::move(*opened);
    const std::string name = from_.string() + ": " + BackupManifest::file_name;
    const auto text = source_->manifest();
    if (!text) return text.error();
    auto parsed = parse_manifest(*text);
    if (!parsed) return unusable_backup(name + ": " + parsed.error().text());
    manifest_ = *std::move(parsed);
    const bool has_catalogue = std::ranges::any_of(manifest_.files, [](const BackupFile& each) {
      return each.path.starts_with("catalogue/") && each.path.ends_with(".seg");
    });
    if (!has_catalogue) return unusable_backup(name + " lists no catalogue");
    return {};
  }

  /// Checks a file, and copies it. A copy that is not what the backup had when it was made is an error.
  Result<void> take(const BackupFile& file) {
    const std::string from = (from_ / file.path).string();
    std::unique_ptr<log::File> target;
    if (!path_.empty()) {
      const std::string to = (path_ / file.path).string();
      const std::string directory = log::parent_of(to);
      if (directories_.insert(directory).second) {
        if (auto made = storage_.make_directory(directory); !made) return made;
      }
      auto opened = storage_.open(to, log::OpenMode::create);
      if (!opened) return opened.error();
      target = std::move(*opened);
    }
    auto read = source_->read(file, target.get());
    if (!read) return read.error();
    read->path = file.path;
    if (*read == file) return {};
    return Error{
        ErrorCode::corrupt,
        from + (read->bytes == file.bytes
                    ? " is damaged: its checksum is another one than when the backup was made"
                    : " has " + format_count(read->bytes) + " bytes instead of " + format_count(file.bytes)),
        0};
  }

  /// Makes the new directory the data directory. The mark makes the broker end all tickets.
  Result<void> finish() {
    if (auto marked = log::mark_restored(path_.string(), storage_); !marked) return marked;
    for (const std::string& directory : directories_) {
      if (auto synced = storage_.sync_directory(directory); !synced) return synced;
      const std::string above = log::parent_of(directory);
      if (above.size() < path_.string().size()) continue;
      if (auto synced = storage_.sync_directory(above); !synced) return synced;
    }
    constexpr mode_t readable = 0755;  // clients of other users find the broker there
    if (::chmod(path_.c_str(), readable) != 0)
      return Error{ErrorCode::io_error, "cannot open " + path_.string(), errno};
    if (auto made = storage_.make_directory(log::parent_of(to_.string())); !made) return made;
    if (auto renamed = storage_.rename(path_.string(), to_.string()); !renamed) return renamed;
    is_finished_ = true;
    return storage_.sync_directory(log::parent_of(to_.string()));
  }

  const std::filesystem::path from_;
  std::filesystem::path to_;
  std::filesystem::path path_;  // empty: only checks
  Progress progress_;
  log::PosixStorage storage_;
  std::unique_ptr<BackupSource> source_;
  BackupManifest manifest_;
  std::set<std::string> directories_;
  std::uint64_t bytes_ = 0;
  bool is_finished_ = false;
};

}  // namespace

int run_restore(const Common& common, const std::string& backup, bool only_check) {
  const Result<Common> used = with_context(common);
  const auto place = !used        ? Result<std::filesystem::path>(used.error())
                     : only_check ? Result<std::filesystem::path>(std::filesystem::path())
                                  : restore_place(used->data_dir);
  if (!place) {
    say_error("invalid_argument", place.error().text());
    return exit_usage;
  }
  constexpr mode_t others = 077;
  umask(others);
  RestoreRun run(common, backup, *place);
  if (auto done = run.go(); !done) {
    say_error(to_word(done.error().code), done.error().text());
    return done.error().code == ErrorCode::invalid_argument ? exit_usage : exit_failure;
  }
  Output out;
  if (common.json) {
    JsonObject reply;
    reply.add("cmd", "restore").add("status", "ok").add_bytes("backup", backup);
    if (only_check) reply.add("preview", true);
    if (!only_check) reply.add_bytes("directory", place->string());
    reply.add("files", run.manifest().files.size()).add("bytes", run.bytes());
    reply.add("version", run.manifest().version).add("time_ms", run.manifest().time_ms);
    out.write(reply.text() + "\n");
  } else {
    out.write((only_check ? backup + ": " : place->string() + ": ") +
              format_count(run.manifest().files.size()) + " files with " + format_size(run.bytes()) +
              ", all checksums right\n");
  }
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
