/// The definitions of <lightq/base/private_file.hpp>. Layer: base.
#pragma once

#include <lightq/base/private_file.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>
#include <lightq/base/shown_path.hpp>
#include <lightq/base/wipe.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE std::optional<Error> private_file_fault(const struct stat& facts, const std::string& path,
                                                      std::string_view holds, OthersMay others) {
  const mode_t forbidden = others == OthersMay::nothing ? 077 : 022;
  constexpr mode_t permissions = 07777;
  const bool has_content = S_ISREG(facts.st_mode) || S_ISFIFO(facts.st_mode);
  if (!has_content) return std::nullopt;
  const std::string subject = path + " contains " + std::string(holds);
  if ((facts.st_mode & forbidden) != 0) {
    std::string mode;
    for (mode_t bits = facts.st_mode & permissions; bits != 0; bits >>= 3U)
      mode.insert(mode.begin(), static_cast<char>('0' + (bits & 7U)));
    const bool secret = others == OthersMay::nothing;
    return Error{ErrorCode::invalid_argument,
                 subject + (secret ? " and is open to" : " and can be written by") +
                     " other users: its mode is 0" + mode + "; chmod " + (secret ? "600" : "go-w") + " it"};
  }
  const uid_t user = geteuid();
  if (!S_ISREG(facts.st_mode) || user == 0 || facts.st_uid == user || facts.st_uid == 0) return std::nullopt;
  return Error{ErrorCode::invalid_argument,
               subject + " and belongs to another user: uid " + std::to_string(facts.st_uid)};
}

}  // namespace lightq::inline v1

namespace lightq::inline v1::detail {

LIGHTQ_INLINE ScopedDescriptor::~ScopedDescriptor() {
  if (descriptor_ >= 0) close(descriptor_);
}

LIGHTQ_INLINE ssize_t PipeReader::read(char* to, std::size_t bytes) {
  for (;;) {
    if (!patient_ && !wait()) return -1;
    const ssize_t got = ::read(descriptor_, to, bytes);
    const bool again = got < 0 && (errno == EINTR || (errno == EAGAIN && !patient_));
    if (!again) return got;
  }
}

LIGHTQ_INLINE bool PipeReader::wait() {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now()).count();
    std::array<pollfd, 2> ready{pollfd{descriptor_, POLLIN, 0}, pollfd{stop_descriptor_, POLLIN, 0}};
    const int number = poll(ready.data(), ready.size(), static_cast<int>(std::max<long>(left, 0)));
    if (number < 0 && errno != EINTR) return false;
    if (number > 0 && ready[1].revents != 0) errno = ECANCELED;
    if (number > 0) return ready[1].revents == 0;
    if (left > 0) continue;
    errno = ETIMEDOUT;
    return false;
  }
}

LIGHTQ_INLINE int read_bounded(PipeReader reader, std::size_t bytes_max, bool line, std::string& to) {
  to.reserve(bytes_max);  // so that growing leaves no copies behind
  std::array<char, 512> part;
  int number = 0;
  while (to.size() < bytes_max) {
    const std::size_t wanted = line ? 1 : std::min(part.size(), bytes_max - to.size());
    const ssize_t got = reader.read(part.data(), wanted);
    if (got < 0) number = errno;
    if (got <= 0 || (line && part[0] == '\n')) break;
    to.append(part.data(), static_cast<std::size_t>(got));
  }
  wipe_bytes(std::as_writable_bytes(std::span(part)));
  return number;
}

LIGHTQ_INLINE Error unread_private(const std::string& path, int number, const PipeWait& wait) {
  if (number == ETIMEDOUT)
    return {ErrorCode::timeout,
            path + ": no content was received within " + std::to_string(wait.time_max.count()) + " ms"};
  if (number == ECANCELED)
    return {ErrorCode::shutting_down, path + ": the program was stopped while it waited for the content"};
  return {ErrorCode::io_error, "cannot read " + path, number};
}

LIGHTQ_INLINE Result<std::string> read_file(const std::string& path, const FileWish& wish,
                                            const PipeWait& wait) {
  // O_NONBLOCK: opening a named pipe does not wait for a writer. Reading waits, up to the PipeWait.
  const int more = wish.links == LinkRule::refused ? O_NOFOLLOW : 0;
  const ScopedDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more));
  struct stat facts{};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0)
    return Error{ErrorCode::io_error,
                 "cannot read " + (wish.others == OthersMay::nothing ? shown_path(path) : path), errno};
  if (wish.links == LinkRule::refused && !S_ISREG(facts.st_mode))
    return Error{ErrorCode::invalid_argument,
                 path + " is not a regular file, which a file with " + std::string(wish.holds) + " must be"};
  // A pipe that was read before is at its end, which looks like an empty file; a terminal may never answer.
  const bool is_gone_once_read =
      S_ISFIFO(facts.st_mode) || S_ISSOCK(facts.st_mode) || isatty(file.get()) != 0;
  if (wait.time_max.count() == 0 && is_gone_once_read)
    return Error{ErrorCode::invalid_argument,
                 path + " is a pipe or a terminal, which cannot be read again; a restart reads it"};
  if (auto fault = private_file_fault(facts, path, wish.holds, wish.others)) return *std::move(fault);
  const bool patient = S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode) || isatty(file.get()) != 0;
  if (patient && fcntl(file.get(), F_SETFL, O_RDONLY) != 0)
    return Error{ErrorCode::io_error, "cannot read " + path, errno};
  std::string text;
  const int number = read_bounded({file.get(), patient, wait}, wish.bytes_max + 1, wish.line, text);
  if (number == 0 && text.size() <= wish.bytes_max) return text;
  wipe_text(text);
  if (number != 0) return unread_private(path, number, wait);
  return Error{ErrorCode::invalid_argument, path + ": more than " + std::to_string(wish.bytes_max) +
                                                " bytes" + (wish.line ? " in its first line" : "")};
}

}  // namespace lightq::inline v1::detail

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<Secret> read_private_file(const std::string& path, std::string_view holds,
                                               std::size_t bytes_max, LinkRule links, const PipeWait& wait) {
  auto text = detail::read_file(path, {.holds = holds, .bytes_max = bytes_max, .links = links}, wait);
  if (!text) return text.error();
  return Secret(std::move(*text));
}

LIGHTQ_INLINE Result<std::string> read_public_file(const std::string& path, std::string_view holds,
                                                   std::size_t bytes_max, LinkRule links,
                                                   const PipeWait& wait) {
  return detail::read_file(
      path, {.holds = holds, .bytes_max = bytes_max, .others = OthersMay::read, .links = links}, wait);
}

LIGHTQ_INLINE Result<Secret> read_private_line(const std::string& path, std::string_view holds,
                                               std::size_t bytes_max, const PipeWait& wait) {
  auto line = detail::read_file(path, {.holds = holds, .bytes_max = bytes_max + 1, .line = true}, wait);
  if (!line) return line.error();
  if (line->ends_with('\r')) line->pop_back();
  return Secret(std::move(*line));
}

LIGHTQ_INLINE std::optional<Error> foreign_file_fault(const struct stat& facts, const struct stat& directory,
                                                      uid_t user, const std::string& path) {
  const uid_t owner = facts.st_uid;
  if (owner == 0 || owner == user || owner == directory.st_uid) return std::nullopt;
  return Error{ErrorCode::invalid_argument,
               path + " contains the address of a broker, but belongs to another user (uid " +
                   std::to_string(owner) + "), so it is not used"};
}

}  // namespace lightq::inline v1
