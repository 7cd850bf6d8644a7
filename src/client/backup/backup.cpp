/// `lightq backup`: copies a broker's data while it runs. Layer: cli.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/discovery.hpp>
#include <lightq/version.hpp>

#include "client/backup/backup_source.hpp"
#include "client/backup/manifest.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/logs/log_directory.hpp"
#include "client/logs/topic_directory.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/storage/posix_storage.hpp"
#include "log/tools/snapshot.hpp"

namespace lightq::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int catalogue_tries_max = 5;  // a broker may replace the catalogue's log meanwhile
constexpr std::chrono::seconds disk_wait_max = 10s;
constexpr std::chrono::milliseconds disk_look_interval = 20ms;
// The cursors of letters that were given back: docs/log_format.md, "Cursor file".
constexpr std::string_view letters_cursor_prefix = "letters:";

bool is_log_number(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns true for files of a data directory that a backup has, beside the logs. Others are made anew.
bool belongs_to_backup(const std::string& name) {
  return name.ends_with(".key") || name.ends_with(".crt") || name == "admin.json" || name == "version";
}

/// A topic, between the copy of its state and that of its log.
struct TopicInBackup {
  std::string directory;
  std::unique_ptr<log::TopicCopy> copy;
  bool has_letters = false;  ///< letters were given back from it
};

struct BackupTotals {
  std::uint64_t topics = 0;
  std::uint64_t messages = 0;
  std::uint64_t linked = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t damages = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Waits until the running broker has written all messages that are in its durable topics now. Says so if it
/// cannot. Without a broker there is nothing to wait for.
void await_written(const Common& common, const fs::path& data_dir) {
  const auto running = detail::read_running_broker(data_dir);
  if (!running || !*running) return;
  const auto unknown = [&](const Error& error) {
    say("messages of the last moments may be missing, because the broker was not asked to store them: " +
        error.text());
  };
  Common own;  // the broker of this directory, also if a context names another one
  own.data_dir = data_dir.string();
  own.secrets = common.secrets;
  Result<Client> client = open_client(own);
  if (!client) return unknown(client.error());
  std::map<std::string, std::uint64_t> ends;
  const auto until = std::chrono::steady_clock::now() + disk_wait_max;
  for (bool is_first = true;; is_first = false) {
    const auto stats = client->stats_of_all();
    if (!stats) return unknown(stats.error());
    for (const TopicStats& topic : *stats) {
      const bool is_durable =
          topic.topic_type == BrokerType::file || topic.topic_type == BrokerType::queue_file;
      if (is_first && is_durable) ends[topic.topic] = topic.next_offset;
      const auto end = ends.find(topic.topic);
      if (end != ends.end() && end->second <= topic.durable_offset) ends.erase(end);
    }
    if (ends.empty() || interrupted()) return;
    if (std::chrono::steady_clock::now() > until)
      return unknown({ErrorCode::timeout, format_count(ends.size()) + " topics are not written yet"});
    (void)pause_for(disk_look_interval);
  }
}

/// One backup, under a temporary name until it is complete.
class BackupRun {
 public:
  BackupRun(fs::path data_dir, fs::path to) : data_dir_(std::move(data_dir)), to_(std::move(to)) {
    path_ = to_.string() + ".unfinished-" + std::to_string(storage_.random());
  }
  BackupRun(const BackupRun&) = delete;
  BackupRun& operator=(const BackupRun&) = delete;
  ~BackupRun() {
    topics_.clear();
    if (!is_finished_) log::remove_files(path_.string(), storage_);
  }

  Result<void> take() {
    for (const char* const name : {"topics", "catalogue"}) {
      if (auto made = storage_.make_directory((path_ / name).string()); !made) return made;
    }
    Result<void> done = find_topics();
    if (done) done = take_states();
    if (done) done = take_logs();
    if (done) done = take_catalogue();
    if (done) done = take_files();
    if (done) done = list_files();
    return done ? finish() : done;
  }
  [[nodiscard]] const BackupTotals& totals() const { return totals_; }

 private:
  /// Finds the topics. Those from which letters were given back come first: a group's state must not be older
  /// than the statement that a letter is back in the group.
  Result<void> find_topics() {
    const auto names = log::list_if_there((data_dir_ / "topics").string(), storage_);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      if (!is_log_number(name)) continue;
      TopicInBackup& topic = topics_.emplace_back();
      topic.directory = (data_dir_ / "topics" / name).string();
      topic.copy =
          std::make_unique<log::TopicCopy>(topic.directory, (path_ / "topics" / name).string(), storage_);
      const auto cursors = log::CursorFile(storage_, topic.directory).load();
      topic.has_letters = cursors && std::ranges::any_of(*cursors, [](const log::NamedCursor& cursor) {
                            return cursor.name.starts_with(letters_cursor_prefix);
                          });
    }
    std::ranges::partition(topics_, &TopicInBackup::has_letters);
    return {};
  }

  /// Returns true if the topic was deleted since it was found.
  [[nodiscard]] static bool is_deleted(const TopicInBackup& topic) {
    std::error_code fault;
    return !fs::is_directory(topic.directory, fault) && !fault;
  }

  Result<void> take_states() {
    for (TopicInBackup& topic : topics_) {
      if (interrupted()) return stopped();
      const auto taken = topic.copy->take_state();
      if (taken) continue;
      if (!is_deleted(topic)) return taken.error();
      topic.copy.reset();
    }
    return {};
  }

  Result<void> take_logs() {
    for (TopicInBackup& topic : topics_) {
      if (interrupted()) return stopped();
      if (!topic.copy) continue;
      const auto taken = topic.copy->take_log(log::TopicCopy::Extent::topic_with_producers);
      if (!taken && !is_deleted(topic)) return taken.error();
      if (!taken) continue;
      ++totals_.topics;
      totals_.messages += distance(taken->first_offset, taken->next_offset);
      count(*taken);
    }
    return storage_.sync_directory((path_ / "topics").string());
  }

  void count(const log::SnapshotReport& taken) {
    totals_.linked += taken.linked;
    totals_.copied_bytes += taken.copied_bytes;
    totals_.damages += taken.damages;
  }

  /// The catalogue comes last: it knows each topic that has files in the backup.
  Result<void> take_catalogue() {
    for (int attempt = 1;; ++attempt) {
      const auto from = newest_catalogue(data_dir_);
      if (!from) return Error{ErrorCode::io_error, "the catalogue in " + data_dir_.string() + " is gone", 0};
      const std::string to = (path_ / "catalogue" / from->filename()).string();
      const auto taken = log::snapshot_log(from->string(), to, storage_);
      if (newest_catalogue(data_dir_) != from && attempt < catalogue_tries_max) {
        log::remove_files(to, storage_);
        continue;
      }
      if (!taken) return taken.error();
      count(*taken);
      return storage_.sync_directory((path_ / "catalogue").string());
    }
  }

  Result<void> take_files() {
    const auto names = storage_.list(data_dir_.string());
    if (!names) return names.error();
    for (const std::string& name : *names) {
      if (!belongs_to_backup(name)) continue;
      const auto from = storage_.open((data_dir_ / name).string(), log::OpenMode::read_only);
      if (!from) return from.error();
      const auto to = storage_.open((path_ / name).string(), log::OpenMode::create);
      if (!to) return to.error();
      const auto copied = read_backup_file(**from, to->get());
      if (!copied) return copied.error();
      totals_.copied_bytes += copied->bytes;
    }
    return {};
  }

  /// Reads every file of the copy, and writes the manifest.
  Result<void> list_files() {
    manifest_.version = version_text;
    manifest_.time_ms = static_cast<std::uint64_t>(
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
    std::error_code fault;
    for (fs::recursive_directory_iterator at(path_, fault), end; !fault && at != end; at.increment(fault)) {
      if (interrupted()) return stopped();
      if (!at->is_regular_file()) continue;
      const auto file = storage_.open(at->path().string(), log::OpenMode::read_only);
      if (!file) return file.error();
      auto read = read_backup_file(**file, nullptr);
      if (!read) return read.error();
      read->path = at->path().lexically_relative(path_).string();
      totals_.bytes += read->bytes;
      manifest_.files.push_back(*std::move(read));
    }
    if (fault) return Error{ErrorCode::io_error, "cannot list " + path_.string(), fault.value()};
    std::ranges::sort(manifest_.files, {}, &BackupFile::path);
    totals_.files = manifest_.files.size();
    const auto to = storage_.open((path_ / BackupManifest::file_name).string(), log::OpenMode::create);
    if (!to) return to.error();
    const std::string text = manifest_text(manifest_);
    if (auto written = log::write_all(**to, std::as_bytes(std::span(text)), 0); !written) return written;
    return (*to)->sync();
  }

  Result<void> finish() { return is_backup_file_name(to_.string()) ? finish_file() : finish_directory(); }

  /// Makes one file of the copy, which is removed afterwards.
  Result<void> finish_file() {
    const std::string unfinished = path_.string() + ".tar";
    Result<void> done = write_backup_file(path_, manifest_, unfinished, storage_);
    if (done) done = rename_to_new(unfinished);
    if (!done) (void)storage_.unlink(unfinished);
    return done ? storage_.sync_directory(log::parent_of(to_.string())) : done;
  }

  /// Gives the file its name, unless another file has taken the name meanwhile.
  Result<void> rename_to_new(const std::string& unfinished) {
    const int failed = ::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, to_.c_str(), RENAME_NOREPLACE);
    if (failed == 0) return {};
    if (errno == EEXIST) return Error{ErrorCode::in_use, to_.string() + " exists by now: name another file"};
    if (errno != EINVAL && errno != ENOSYS)
      return Error{ErrorCode::io_error, "cannot rename " + unfinished, errno};
    return storage_.rename(unfinished, to_.string());  // a file system that cannot promise it
  }

  Result<void> finish_directory() {
    if (auto synced = storage_.sync_directory(path_.string()); !synced) return synced;
    if (auto renamed = storage_.rename(path_.string(), to_.string()); !renamed) return renamed;
    path_ = to_;
    const auto synced = storage_.sync_directory(log::parent_of(to_.string()));
    is_finished_ = synced.ok();
    return synced;
  }

  static Error stopped() { return {ErrorCode::closed, "interrupted: there is no backup", 0}; }

  const fs::path data_dir_;
  const fs::path to_;
  fs::path path_;
  log::PosixStorage storage_;
  std::vector<TopicInBackup> topics_;
  BackupManifest manifest_;
  BackupTotals totals_;
  bool is_finished_ = false;
};

bool print_backup(const Common& common, const std::string& place, const BackupTotals& totals) {
  Output out;
  if (common.json) {
    out.write(JsonObject()
                  .add("cmd", "backup")
                  .add("status", "ok")
                  .add_bytes(is_backup_file_name(place) ? "file" : "directory", place)
                  .add("topics", totals.topics)
                  .add("messages", totals.messages)
                  .add("files", totals.files)
                  .add("bytes", totals.bytes)
                  .add("linked", totals.linked)
                  .add("copied_bytes", totals.copied_bytes)
                  .add("damages", totals.damages)
                  .text() +
              "\n");
    return out.end();
  }
  out.write(place + ": " + format_count(totals.topics) + " topics, " + format_messages(totals.messages) +
            "; " + format_count(totals.files) + " files with " + format_size(totals.bytes) +
            (is_backup_file_name(place) ? "\n" : ", " + format_count(totals.linked) + " of them linked\n"));
  return out.end();
}

}  // namespace

int run_backup(const Common& common, const std::string& output) {
  const Result<Common> used = with_context(common);
  const auto data_dir = used ? find_data_directory(used->data_dir) : Result<fs::path>(used.error());
  const auto place = find_new_place(output);
  if (!data_dir || !place) {
    say_error("invalid_argument", data_dir ? place.error().text() : data_dir.error().text());
    return exit_usage;
  }
  constexpr mode_t others = 077;  // a backup has keys, and messages in clear
  umask(others);
  await_written(*used, *data_dir);
  BackupRun run(*data_dir, *place);
  if (auto taken = run.take(); !taken) {
    say_error(to_word(taken.error().code), taken.error().text());
    return exit_failure;
  }
  const BackupTotals& totals = run.totals();
  const bool is_printed = print_backup(common, *place, totals);
  if (totals.linked != 0 && !common.quiet && !is_backup_file_name(*place))
    say("linked files are lost with this disk: copy the backup to another one");
  if (totals.damages != 0) say("some logs are damaged, and so is the backup: see  lightq log verify");
  return is_printed && totals.damages == 0 ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
