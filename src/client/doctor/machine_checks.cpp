/// Checks of this machine for `lightq doctor`. Layer: cli.
#include "client/doctor/machine_checks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include <lightq/base/limits.hpp>

#include "client/units.hpp"

namespace lightq::cli {
namespace {

/// Returns the soft limit of open files in the text of /proc/PID/limits. `unlimited` is the largest number.
std::optional<std::uint64_t> descriptors_in(const std::string& limits_file) {
  std::ifstream file(limits_file);
  constexpr std::string_view name = "Max open files";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream values(line.substr(name.size()));
    std::string soft;
    values >> soft;
    if (soft == "unlimited") return UINT64_MAX;
    return parse_count(soft);
  }
  return std::nullopt;
}

std::string octal(unsigned mode) {
  std::ostringstream text;
  text << std::oct << (mode & 07777U);
  return text.str();
}

}  // namespace

void check_descriptors(Findings& to, const std::string& limits_file) {
  constexpr std::uint64_t few = 4096;
  std::optional<std::uint64_t> most = limits_file.empty() ? std::nullopt : descriptors_in(limits_file);
  const std::string whose = most ? "the broker" : "a broker started here";
  rlimit limit{};
  if (!most && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) most = limit.rlim_cur;
  if (!most) return;
  const std::string text =
      whose + " may open " + (*most == UINT64_MAX ? "any number of" : format_count(*most)) + " files";
  if (*most >= few)
    to.push_back({Severity::ok, "limits", text});
  else
    to.push_back(
        {Severity::warning, "limits", text + "; each connection and each log on disk needs some",
         "ulimit -n 65536 in the shell that starts the broker, or LimitNOFILE=65536 in its systemd unit"});
}

void check_disk(Findings& to, const std::filesystem::path& data_dir) {
  std::filesystem::path place = data_dir;
  std::error_code fault;
  while (!place.empty() && place != place.root_path() && !std::filesystem::exists(place, fault))
    place = place.parent_path();
  struct statvfs disk{};
  if (::statvfs(place.empty() ? "." : place.c_str(), &disk) != 0) {
    to.push_back({Severity::warning, "disk",
                  "cannot ask the disk of " + data_dir.string() + ": " + std::strerror(errno),
                  "give the broker's directory with --data-dir DIR"});
    return;
  }
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  const std::uint64_t all = std::uint64_t{disk.f_blocks} * disk.f_frsize;
  constexpr std::uint64_t share = 50;  // as the default of min_free_bytes: 2 %
  const std::uint64_t needed = std::max<std::uint64_t>(limits::GiB, all / share);
  const std::string text = format_size(free) + " of " + format_size(all) + " are free at " + place.string();
  if (free < needed)
    to.push_back({Severity::fault, "disk",
                  text + "; below " + format_size(needed) + " appends wait, unless min_free_bytes is less",
                  "free space, give topics a --retention, or move the data directory"});
  else
    to.push_back({Severity::ok, "disk", text});
  if (disk.f_files > 0 && disk.f_favail < 1000)
    to.push_back({Severity::fault, "disk",
                  "only " + format_count(disk.f_favail) + " more files fit on that disk",
                  "delete files there, or move the data directory"});
}

void check_clock(Findings& to) {
  const auto now = std::chrono::system_clock::now();
  constexpr std::chrono::sys_days released = std::chrono::year{2026} / 1 / 1;
  if (now < released) {
    to.push_back({Severity::fault, "clock", "the clock is before 2026, so retention and delays go wrong",
                  "set the clock, for example with  timedatectl set-ntp true"});
    return;
  }
  timex state{};
  const bool is_kept = ::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
  if (is_kept)
    to.push_back({Severity::ok, "clock", "something keeps the clock right"});
  else
    to.push_back({Severity::warning, "clock", "the kernel does not know that anything keeps the clock right",
                  "run a time service, for example  timedatectl set-ntp true"});
}

void check_modes(Findings& to, const std::filesystem::path& data_dir) {
  struct stat about{};
  if (::stat(data_dir.c_str(), &about) != 0) {
    to.push_back({Severity::ok, "modes", "there is no data directory " + data_dir.string() + " yet"});
    return;
  }
  bool all_well = true;
  const auto check = [&](const std::filesystem::path& path, unsigned forbidden, const std::string& why,
                         const std::string& mode) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0 || (found.st_mode & forbidden) == 0) return;
    all_well = false;
    to.push_back({Severity::fault, "modes", path.string() + " has mode " + octal(found.st_mode) + ": " + why,
                  "chmod " + mode + " " + path.string()});
  };
  check(data_dir, S_IWGRP | S_IWOTH, "other users may replace the broker's files", "700");
  for (const char* const name : {"admin.json", "curve.key", "curve_former.key", "ticket.key", "tls.key"})
    check(data_dir / name, S_IRWXG | S_IRWXO, "other users may read its secret", "600");
  if (all_well) to.push_back({Severity::ok, "modes", "only its owner can change " + data_dir.string()});
}

void check_former_key(Findings& to, const std::filesystem::path& data_dir) {
  const std::filesystem::path former = data_dir / "curve_former.key";
  struct stat found{};
  if (::lstat(former.c_str(), &found) != 0) return;
  to.push_back({Severity::warning, "keys", "clients may still use the former CURVE key in " + former.string(),
                "when all have the present one:  rm " + former.string() + " && lightq reload"});
}

void check_port(Findings& to, std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return;
  const int on = 1;
  (void)::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string name = "port " + std::to_string(port) + " of the control socket";
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the system's own interface
  if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    to.push_back({Severity::ok, "ports", name + " is free"});
  else
    to.push_back({Severity::warning, "ports", name + " cannot be used: " + std::strerror(errno),
                  "find its user with  ss -ltnp 'sport = :" + std::to_string(port) +
                      "', or run the broker with --control tcp://127.0.0.1:0"});
  ::close(descriptor);
}

}  // namespace lightq::cli
