/// A FUSE file system that loses unsynced data. Usage: cut_mount MOUNT_POINT DISK_DIRECTORY [SHORT]
///
/// Begins with the content of DISK_DIRECTORY, keeps everything in memory (cut_disk.hpp), and prints `ready`
/// when it is mounted. One line on standard input cuts the power: `cut all`, or `cut SEED` to keep a random
/// part of the unsynced data. The file system then stores the surviving content in DISK_DIRECTORY and prints
/// how much that was. Every call on the mount that is under way, or follows, fails. The end of the input also
/// ends the file system, and leaves DISK_DIRECTORY unchanged. Pages are cached as for any file system. Stores
/// to a writable mapping arrive when the system writes them back. With SHORT other than 0, every SHORT-th
/// large write is shortened to half.
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <poll.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "powercut/cut_disk.hpp"

namespace {

using lightq::test::CutDisk;

constexpr double cached_seconds = 3600;  // only the kernel changes files

struct Server {
  CutDisk disk;
  std::uint64_t short_every = 0;  // 0: no write is short
  std::uint64_t writes = 0;
};

Server& server_of(fuse_req_t request) {
  return *static_cast<Server*>(fuse_req_userdata(request));
}

CutDisk& disk_of(fuse_req_t request) {
  return server_of(request).disk;
}

struct stat status_of(CutDisk& disk, CutDisk::Id id) {
  const CutDisk::Inode& inode = disk.at(id);
  struct stat status = {};
  status.st_ino = id;
  // Only the broker's user may access it, as the broker requires.
  status.st_mode = inode.is_directory ? S_IFDIR | 0700 : S_IFREG | 0600;
  status.st_nlink = inode.is_directory ? 2 : inode.links;
  status.st_size = static_cast<off_t>(inode.bytes.size());
  status.st_blocks = (status.st_size + 511) / 512;
  status.st_blksize = 4096;
  status.st_uid = getuid();
  status.st_gid = getgid();
  return status;
}

fuse_entry_param entry_of(CutDisk& disk, CutDisk::Id id) {
  fuse_entry_param entry = {};
  entry.ino = id;
  entry.attr = status_of(disk, id);
  entry.attr_timeout = cached_seconds;
  entry.entry_timeout = cached_seconds;
  return entry;
}

void reply_entry(fuse_req_t request, CutDisk::Id id) {
  const fuse_entry_param entry = entry_of(disk_of(request), id);
  fuse_reply_entry(request, &entry);
}

void reply_status(fuse_req_t request, CutDisk::Id id) {
  const struct stat status = status_of(disk_of(request), id);
  fuse_reply_attr(request, &status, cached_seconds);
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const CutDisk::Id id = disk_of(request).find(parent, name);
  if (id == 0) {
    fuse_reply_err(request, ENOENT);
  } else {
    reply_entry(request, id);
  }
}

void get_status(fuse_req_t request, fuse_ino_t id, fuse_file_info* /*file*/) {
  reply_status(request, id);
}

void set_status(fuse_req_t request, fuse_ino_t id, struct stat* wanted, int which, fuse_file_info* /*file*/) {
  if ((which & FUSE_SET_ATTR_SIZE) != 0) {
    disk_of(request).resize(id, static_cast<std::uint64_t>(wanted->st_size));
  }
  reply_status(request, id);
}

void make_directory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t /*mode*/) {
  reply_entry(request, disk_of(request).make(parent, name, true));
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t /*mode*/, fuse_file_info* file) {
  const fuse_entry_param entry = entry_of(disk_of(request), disk_of(request).make(parent, name, false));
  file->keep_cache = 1;
  fuse_reply_create(request, &entry, file);
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  disk_of(request).unlink(parent, name);
  fuse_reply_err(request, 0);
}

void remove_directory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  CutDisk& disk = disk_of(request);
  if (!disk.at(disk.find(parent, name)).names.empty()) {
    fuse_reply_err(request, ENOTEMPTY);
    return;
  }
  unlink(request, parent, name);
}

void rename(fuse_req_t request, fuse_ino_t from, const char* name, fuse_ino_t to, const char* new_name,
            unsigned flags) {
  if (flags != 0) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  disk_of(request).rename(from, name, to, new_name);
  fuse_reply_err(request, 0);
}

void link(fuse_req_t request, fuse_ino_t id, fuse_ino_t parent, const char* name) {
  disk_of(request).link(id, parent, name);
  reply_entry(request, id);
}

void open(fuse_req_t request, fuse_ino_t /*id*/, fuse_file_info* file) {
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

void read(fuse_req_t request, fuse_ino_t id, size_t size, off_t position, fuse_file_info* /*file*/) {
  const auto& bytes = disk_of(request).at(id).bytes;
  const std::size_t begin = std::min(static_cast<std::size_t>(position), bytes.size());
  const std::size_t count = std::min(size, bytes.size() - begin);
  fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()) + begin, count);
}

void write(fuse_req_t request, fuse_ino_t id, const char* from, size_t size, off_t position,
           fuse_file_info* /*file*/) {
  Server& server = server_of(request);
  const bool may_be_short = size > CutDisk::sector_bytes && server.short_every != 0 &&
                            fuse_req_ctx(request)->pid != 0;  // pid 0: the system writes pages back
  if (may_be_short && ++server.writes % server.short_every == 0) size /= 2;
  disk_of(request).write(id, std::as_bytes(std::span(from, size)), static_cast<std::uint64_t>(position));
  fuse_reply_write(request, size);
}

void allocate(fuse_req_t request, fuse_ino_t id, int mode, off_t position, off_t size,
              fuse_file_info* /*file*/) {
  CutDisk& disk = disk_of(request);
  if (mode != 0) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  const auto end = static_cast<std::uint64_t>(position + size);
  if (end > disk.at(id).bytes.size()) disk.resize(id, end);
  fuse_reply_err(request, 0);
}

void sync(fuse_req_t request, fuse_ino_t id, int /*data_only*/, fuse_file_info* /*file*/) {
  disk_of(request).sync(id);
  fuse_reply_err(request, 0);
}

void sync_directory(fuse_req_t request, fuse_ino_t id, int /*data_only*/, fuse_file_info* /*file*/) {
  disk_of(request).sync_names(id);
  fuse_reply_err(request, 0);
}

void nothing_to_do(fuse_req_t request, fuse_ino_t /*id*/, fuse_file_info* /*file*/) {
  fuse_reply_err(request, 0);
}

// A position is an index into the listing. Names that are added or removed meanwhile may be missed or listed
// twice.
void list(fuse_req_t request, fuse_ino_t id, size_t size, off_t position, fuse_file_info* /*file*/) {
  CutDisk& disk = disk_of(request);
  std::vector<char> listing(size);
  std::size_t used = 0;
  off_t at = 0;
  for (const auto& [name, entry] : disk.at(id).names) {
    if (++at <= position) continue;
    const struct stat status = status_of(disk, entry);
    const std::size_t bytes =
        fuse_add_direntry(request, listing.data() + used, size - used, name.c_str(), &status, at);
    if (bytes > size - used) break;
    used += bytes;
  }
  fuse_reply_buf(request, listing.data(), used);
}

void tell_space(fuse_req_t request, fuse_ino_t /*id*/) {
  struct statvfs status = {};
  status.f_bsize = status.f_frsize = 4096;
  status.f_blocks = status.f_bfree = status.f_bavail = std::uint64_t{64} << 20;
  status.f_namemax = 255;
  fuse_reply_statfs(request, &status);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops made = {};
  made.lookup = lookup;
  made.getattr = get_status;
  made.setattr = set_status;
  made.mkdir = make_directory;
  made.create = create;
  made.unlink = unlink;
  made.rmdir = remove_directory;
  made.rename = rename;
  made.link = link;
  made.open = open;
  made.read = read;
  made.write = write;
  made.fallocate = allocate;
  made.fsync = sync;
  made.fsyncdir = sync_directory;
  made.flush = nothing_to_do;
  made.release = nothing_to_do;
  made.readdir = list;
  made.statfs = tell_space;
  return made;
}

// Answers calls until standard input has a line, and returns it. Returns an empty string at the end of the
// input or of the mount.
std::string serve(fuse_session* session) {
  fuse_buf buffer = {};
  std::string line;
  while (fuse_session_exited(session) == 0) {
    std::array<pollfd, 2> waiting{{{fuse_session_fd(session), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
    if (waiting[1].revents != 0) {
      char byte = 0;
      if (::read(STDIN_FILENO, &byte, 1) != 1) break;
      if (byte == '\n') return line;
      line += byte;
    }
    if (waiting[0].revents == 0) continue;
    const int came = fuse_session_receive_buf(session, &buffer);
    if (came == -EINTR || came == -EAGAIN) continue;
    if (came <= 0) break;
    fuse_session_process_buf(session, &buffer);
  }
  std::free(buffer.mem);
  return {};
}

void cut_power(CutDisk& disk, const std::string& command, const std::string& directory) {
  const std::string how = command.substr(std::strlen("cut "));
  const CutDisk::Cut cut =
      how == "all" ? disk.cut_all() : disk.cut_some(std::strtoull(how.c_str(), nullptr, 10));
  disk.store(directory);
  std::printf("%zu %zu %zu %zu\n", cut.sectors, cut.sectors_kept, cut.names, cut.names_kept);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 && count != 4) {
    std::fprintf(stderr, "usage: %s MOUNT_POINT DISK_DIRECTORY [SHORT]\n", arguments[0]);
    return 2;
  }
  Server server;
  if (count == 4) server.short_every = std::strtoull(arguments[3], nullptr, 10);
  server.disk.load(arguments[2]);
  std::array<char*, 1> names{arguments[0]};
  fuse_args options = FUSE_ARGS_INIT(1, names.data());
  const fuse_lowlevel_ops calls = operations();
  fuse_session* session = fuse_session_new(&options, &calls, sizeof calls, &server);
  if (session == nullptr || fuse_session_mount(session, arguments[1]) != 0) return 1;
  std::puts("ready");
  std::fflush(stdout);
  const std::string command = serve(session);
  if (command.rfind("cut ", 0) == 0) cut_power(server.disk, command, arguments[2]);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  return 0;
}
