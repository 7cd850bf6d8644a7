/// Default implementations and helpers for the file system interface. Layer: log.
#include "log/storage/storage.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace lightq::log {

Result<void> Storage::link(const std::string& from, const std::string& to) {
  return Error{ErrorCode::io_error, "cannot link " + from + " as " + to, EPERM};
}

namespace {

class NamedDirectory final : public Directory {
 public:
  NamedDirectory(Storage& storage, std::string path) : storage_(storage), path_(std::move(path)) {}
  Result<void> sync() override { return storage_.sync_directory(path_); }

 private:
  Storage& storage_;
  const std::string path_;
};

}  // namespace

Result<std::unique_ptr<Directory>> Storage::open_directory(const std::string& path) {
  return std::unique_ptr<Directory>(std::make_unique<NamedDirectory>(*this, path));
}

bool is_missing(const Error& error) {
  return error.system_error == ENOENT;
}

bool is_unavailable(const Error& error) {
  if (error.code == ErrorCode::no_space) return true;
  switch (error.system_error) {
    case 0:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EINVAL: return false;
    default: return true;
  }
}

bool is_shortage(const Error& error) {
  return is_unavailable(error) && error.system_error != EIO;
}

bool may_exist(const std::string& path, Storage& storage) {
  const auto file = storage.open(path, OpenMode::read_only);
  return file.ok() || !is_missing(file.error());
}

Result<std::vector<std::string>> list_if_there(const std::string& path, Storage& storage) {
  auto names = storage.list(path);
  if (!names && is_missing(names.error())) return std::vector<std::string>{};
  return names;
}

std::string parent_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');  // the parent of `a/b/` is `a`, too
  const std::size_t slash = end == std::string::npos ? 0 : path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void remove_files(const std::string& directory, Storage& storage) {
  const auto names = storage.list(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    if (!storage.unlink(path)) remove_files(path, storage);
  }
  static_cast<void>(storage.remove_directory(directory));
}

Result<void> File::write_synced(ByteView bytes, std::uint64_t position) {
  if (auto written = write_all(*this, bytes, position); !written) return written;
  return sync();
}

Result<void> write_all(File& file, ByteView bytes, std::uint64_t position) {
  while (!bytes.empty()) {
    const auto written = file.write_some(bytes, position);
    if (!written) return written.error();
    if (*written == 0) return Error{ErrorCode::io_error, "a write wrote no bytes", EIO};
    bytes = bytes.subspan(*written);
    position += *written;
  }
  return {};
}

Result<std::size_t> read_all(File& file, std::span<std::byte> to, std::uint64_t position) {
  std::size_t done = 0;
  while (done < to.size()) {
    const auto came = file.read_some(to.subspan(done), position + done);
    if (!came) return came.error();
    if (*came == 0) break;
    done += *came;
  }
  return done;
}

}  // namespace lightq::log
