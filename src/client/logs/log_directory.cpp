/// Checks and locks the log directory that a command names. Layer: cli.
#include "client/logs/log_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <lightq/base/types.hpp>

#include "client/logs/topic_directory.hpp"
#include "log/format/restored_mark.hpp"
#include "log/format/segment_format.hpp"
#include "log/format/segment_index_file.hpp"
#include "log/saved_state/producer_slots.hpp"
#include "log/segment/failed_sync.hpp"

namespace lightq::cli {
namespace {

namespace fs = std::filesystem;

Error wrong(const std::string& sentence, int number = 0) {
  return {ErrorCode::invalid_argument, sentence, number};
}

bool is_of_a_log(const std::string& name) {
  return log::segment_name_offset(name) || name.starts_with("cursors") ||
         name.starts_with(log::producer_slots_name) || log::segment_index_name_offset(name) ||
         name.starts_with(log::damaged_prefix) || name.ends_with(".prepared") || name == "lock" ||
         name == "pool" || name == log::failed_sync_name || name == log::restored_name;
}

std::string without_slash(const std::string& given) {
  std::string path = fs::path(given).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Error in_use(const fs::path& directory, const std::string& holder) {
  return {ErrorCode::in_use,
          directory.string() + " is in use by " + holder +
              ": stop it first, or repair into a new directory with --output",
          0};
}

/// Returns the descriptor of the locked file, or -1 if there is no such file.
Result<int> lock_file(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR)) return -1;
  if (descriptor < 0) return Error{ErrorCode::io_error, "cannot open " + path.string(), errno};
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const int number = errno;
  std::array<char, 32> holder{};
  const auto bytes = ::pread(descriptor, holder.data(), holder.size() - 1, 0);
  ::close(descriptor);
  if (number != EWOULDBLOCK) return Error{ErrorCode::io_error, "cannot lock " + path.string(), number};
  const std::string pid = bytes > 0 ? std::string(holder.data(), static_cast<std::size_t>(bytes)) : "?";
  return in_use(path.parent_path(), "process " + pid.substr(0, pid.find('\n')));
}

/// Returns the descriptor of the locked directory. A process that works in a directory locks the directory as
/// well as the file, because the file may be removed. -1 if directories cannot be locked.
Result<int> lock_directory(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const int number = errno;
  ::close(descriptor);
  if (number == EWOULDBLOCK) return in_use(path, "another process");
  return -1;
}

/// Returns `given` if it is there or cannot be a topic's name, else the directory of that topic.
Result<std::string> directory_named(const Common& common, const std::string& given) {
  std::error_code fault;
  const bool is_there = fs::symlink_status(given, fault).type() != fs::file_type::not_found;
  if (is_there || !TopicName::parse(given)) return given;
  const Result<Common> used = with_context(common);
  if (!used) return used.error();
  auto found = find_topic_directory(used->data_dir, given);
  if (found) return found;
  return Error{found.error().code, "there is no directory '" + given + "', and " + found.error().text()};
}

}  // namespace

Result<std::string> find_log(const Common& common, const std::string& given) {
  const auto named = directory_named(common, given);
  if (!named) return wrong(named.error().text());
  std::error_code error;
  const std::string path = without_slash(*named);
  const auto kind = fs::status(path, error).type();
  if (kind == fs::file_type::not_found) return wrong("there is no directory '" + given + "'");
  if (error) return wrong("cannot examine '" + given + "'", error.value());
  if (kind != fs::file_type::directory)
    return wrong("'" + given + "' is not a directory; a log is a directory with files such as " +
                 log::segment_name({0}));
  bool strange = false;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (log::segment_name_offset(name)) return path;
    strange = strange || !is_of_a_log(name);
  }
  if (error) return wrong("cannot list '" + given + "'", error.value());
  if (fs::is_directory(path + "/topics", error))
    return wrong("'" + given + "' is a data directory; its logs are " + path + "/topics/ID and " + path +
                 "/catalogue/NUMBER");
  if (strange)
    return wrong("'" + given + "' contains no log: it has no file such as " + log::segment_name({0}));
  return path;
}

Result<std::string> find_new_place(const std::string& given) {
  std::error_code error;
  const std::string path = without_slash(given);
  if (fs::symlink_status(path, error).type() != fs::file_type::not_found)
    return wrong("there is already a file or directory '" + given +
                 "': name a directory that does not exist");
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, error))
    return wrong("there is no directory '" + parent.string() + "' for '" + given + "'");
  return path;
}

Result<LogLock> LogLock::take(const std::string& directory) {
  std::error_code error;
  const fs::path path = fs::canonical(directory, error);
  if (error) return Error{ErrorCode::io_error, "cannot resolve the path " + directory, error.value()};
  LogLock taken;
  std::vector<fs::path> directories = {path};
  const std::string room = path.parent_path().filename().string();
  if (room == "topics" || room == "catalogue") directories.push_back(path.parent_path().parent_path());
  for (const fs::path& each : directories) {
    const auto file = lock_file(each / "lock");
    if (!file) return file.error();
    taken.descriptors_.push_back(*file);
    const auto itself = lock_directory(each);
    if (!itself) return itself.error();
    taken.descriptors_.push_back(*itself);
  }
  return taken;
}

LogLock::LogLock(LogLock&& other) noexcept : descriptors_(std::exchange(other.descriptors_, {})) {}

LogLock::~LogLock() {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

}  // namespace lightq::cli
