/// Reads whole files up to a size. Refuses a file with a secret that other users may read. Layer: base.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>
#include <lightq/base/separate.hpp>

namespace lightq::inline v1 {

/// The most that users other than the owner may do with a file.
enum class OthersMay { nothing, read };

/// Returns the reason why an open file with these `facts` must not be trusted with its content. Its mode
/// permits others more than they may do, or it is a regular file of another user. Returns nothing if the file
/// may be trusted. root may read every user's files, and files of root are trusted. `holds` names the
/// content, for the error's text ("a password"). The modes of pipes are checked too, also in process
/// substitutions. A terminal or another device has no content of its own and is not checked. Thread: any.
LIGHTQ_INLINE std::optional<Error> private_file_fault(const struct stat& facts, const std::string& path,
                                                      std::string_view holds,
                                                      OthersMay others = OthersMay::nothing);

/// Whether a symbolic link is followed or refused. `refused` also refuses everything that is not a regular
/// file.
enum class LinkRule { followed, refused };

/// How long to wait for the content of a pipe, or of a device that is not a terminal.
struct PipeWait {
  std::chrono::milliseconds time_max{limits::secret_wait_ms_max};  ///< 0: pipes, terminals are refused
  int stop_descriptor = -1;  ///< the wait ends when this descriptor is readable; -1: none
};

namespace detail {

/// Owns a descriptor, and closes it when destroyed.
class ScopedDescriptor {
 public:
  explicit ScopedDescriptor(int descriptor) : descriptor_(descriptor) {}
  ScopedDescriptor(const ScopedDescriptor&) = delete;
  ScopedDescriptor& operator=(const ScopedDescriptor&) = delete;
  ~ScopedDescriptor();
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Reads from a non-blocking descriptor, and waits while there is nothing to read.
class PipeReader {
 public:
  /// `patient`: waits without limit, for a file or for a person who types at a terminal.
  PipeReader(int descriptor, bool patient, const PipeWait& wait)
      : descriptor_(descriptor),
        patient_(patient),
        stop_descriptor_(wait.stop_descriptor),
        end_(std::chrono::steady_clock::now() + wait.time_max) {}
  /// Reads as ::read does. Errors: ETIMEDOUT, ECANCELED (the stop descriptor became readable), and those of
  /// ::read and ::poll.
  ssize_t read(char* to, std::size_t bytes);

 private:
  bool wait();

  const int descriptor_;
  const bool patient_;
  const int stop_descriptor_;
  const std::chrono::steady_clock::time_point end_;
};

/// Reads until `bytes_max` bytes or the end. With `line`, reads the first line without its end. Reads a line
/// byte by byte, because the bytes after it in a pipe are for another reader. Returns errno, or 0 for
/// success.
LIGHTQ_INLINE int read_bounded(PipeReader reader, std::size_t bytes_max, bool line, std::string& to);

LIGHTQ_INLINE Error unread_private(const std::string& path, int number, const PipeWait& wait);

/// The part of a file to read, and the conditions on the file.
struct FileWish {
  std::string_view holds;  ///< names the content in errors, for example "a password"
  std::size_t bytes_max = 0;
  OthersMay others = OthersMay::nothing;  ///< see private_file_fault
  bool line = false;                      ///< true: only the first line
  LinkRule links = LinkRule::followed;
};

LIGHTQ_INLINE Result<std::string> read_file(const std::string& path, const FileWish& wish,
                                            const PipeWait& wait);

}  // namespace detail

/// Returns the content of a file that only its owner may read. Waits for a pipe, also for one that no writer
/// has opened yet. Errors: io_error (also a refused link); invalid_argument (see private_file_fault, or more
/// than `bytes_max`); timeout; shutting_down (see PipeWait). Thread: any.
LIGHTQ_INLINE Result<Secret> read_private_file(const std::string& path, std::string_view holds,
                                               std::size_t bytes_max, LinkRule links = LinkRule::followed,
                                               const PipeWait& wait = {});

/// Returns the content of a file that every user may read, such as a certificate. Otherwise as
/// read_private_file.
LIGHTQ_INLINE Result<std::string> read_public_file(const std::string& path, std::string_view holds,
                                                   std::size_t bytes_max, LinkRule links = LinkRule::followed,
                                                   const PipeWait& wait = {});

/// Returns the first line of a file that only its owner may read, without the line's end. Reads no further,
/// also from a pipe. Otherwise as read_private_file.
LIGHTQ_INLINE Result<Secret> read_private_line(const std::string& path, std::string_view holds,
                                               std::size_t bytes_max, const PipeWait& wait = {});

/// Returns the reason why a file that a broker left at `path` for programs of its machine must not be
/// trusted: its owner is not `user` (the reader), not root, and not the owner of its directory (for example a
/// service's own user). Returns nothing if the file may be trusted.
LIGHTQ_INLINE std::optional<Error> foreign_file_fault(const struct stat& facts, const struct stat& directory,
                                                      uid_t user, const std::string& path);

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/base/private_file.hpp>  // IWYU pragma: export
#endif
