/// Files that hold secrets: who else may read one keeps it from being used. Layer: base.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/wipe.hpp>

namespace lightq::inline v1 {

/// Why a file that was opened, with these `facts`, must not be trusted with what it `holds` ("a password",
/// for the sentence): its mode lets others in, or it belongs to somebody else; root may read everybody's.
/// Nothing: it may. A pipe, a process substitution's too, has a mode as a file has; a terminal or another
/// device has no content of its own and is not judged. Any thread.
inline std::optional<Error> private_file_fault(const struct stat& facts, const std::string& path,
                                               std::string_view holds) {
  constexpr mode_t open_to_others = 077;
  constexpr mode_t permissions = 07777;
  const bool has_content = S_ISREG(facts.st_mode) || S_ISFIFO(facts.st_mode);
  if (!has_content) return std::nullopt;
  const std::string subject = path + " holds " + std::string(holds);
  if ((facts.st_mode & open_to_others) != 0) {
    std::string mode;
    for (mode_t bits = facts.st_mode & permissions; bits != 0; bits >>= 3U)
      mode.insert(mode.begin(), static_cast<char>('0' + (bits & 7U)));
    return Error{ErrorCode::invalid_argument,
                 subject + " and is open to other users: its mode is 0" + mode + "; chmod 600 it"};
  }
  const uid_t user = geteuid();
  if (!S_ISREG(facts.st_mode) || user == 0 || facts.st_uid == user || facts.st_uid == 0) return std::nullopt;
  return Error{ErrorCode::invalid_argument,
               subject + " and belongs to another user, of uid " + std::to_string(facts.st_uid)};
}

/// What becomes of a name that is a link.
enum class LinkRule { followed, refused };

namespace detail {

/// An open descriptor that is closed at the end.
class ScopedDescriptor {
 public:
  explicit ScopedDescriptor(int descriptor) : descriptor_(descriptor) {}
  ScopedDescriptor(const ScopedDescriptor&) = delete;
  ScopedDescriptor& operator=(const ScopedDescriptor&) = delete;
  ~ScopedDescriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Reads until `bytes_max` bytes are there, the end, or, with `line`, the first line's end, which is left
/// out. A line is read byte by byte: what follows it in a pipe is for somebody else. Answers errno; 0: it
/// went well.
inline int read_bounded(int descriptor, std::size_t bytes_max, bool line, std::string& to) {
  to.reserve(bytes_max);  // not to leave copies behind where it grows
  std::array<char, 512> part;
  int number = 0;
  while (to.size() < bytes_max) {
    const std::size_t wanted = line ? 1 : std::min(part.size(), bytes_max - to.size());
    const ssize_t got = read(descriptor, part.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) number = errno;
    if (got <= 0 || (line && part[0] == '\n')) break;
    to.append(part.data(), static_cast<std::size_t>(got));
  }
  explicit_bzero(part.data(), part.size());
  return number;
}

inline Result<std::string> read_private(const std::string& path, std::string_view holds,
                                        std::size_t bytes_max, bool line, LinkRule links) {
  const int more = links == LinkRule::refused ? O_NOFOLLOW : 0;
  const ScopedDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | more));
  struct stat facts{};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0)
    return Error{ErrorCode::io_error, "cannot read " + path, errno};
  if (auto fault = private_file_fault(facts, path, holds)) return *std::move(fault);
  std::string text;
  const int number = read_bounded(file.get(), bytes_max + 1, line, text);
  if (number == 0 && text.size() <= bytes_max) return text;
  wipe_text(text);
  if (number != 0) return Error{ErrorCode::io_error, "cannot read " + path, number};
  return Error{ErrorCode::invalid_argument, path + ": more than " + std::to_string(bytes_max) + " bytes" +
                                                (line ? " in its first line" : "")};
}

}  // namespace detail

/// What a file holds that is for its owner alone. Errors: io_error (a link that is refused, too);
/// invalid_argument (see private_file_fault, or more than `bytes_max`). The caller wipes the text. Any
/// thread.
inline Result<std::string> read_private_file(const std::string& path, std::string_view holds,
                                             std::size_t bytes_max, LinkRule links = LinkRule::followed) {
  return detail::read_private(path, holds, bytes_max, false, links);
}

/// Its first line, without what ends it; what follows is not read, from a pipe neither. As read_private_file.
inline Result<std::string> read_private_line(const std::string& path, std::string_view holds,
                                             std::size_t bytes_max) {
  Result<std::string> line = detail::read_private(path, holds, bytes_max + 1, true, LinkRule::followed);
  if (line && line->ends_with('\r')) line->pop_back();
  return line;
}

}  // namespace lightq::inline v1
