/// Layer: control.
#include "broker/control/tls_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include <lightq/base/private_file.hpp>

#include "broker/control/private_file.hpp"
#include "broker/control/secret.hpp"

namespace lightq::broker {

namespace {

constexpr mode_t own_mode = 0600;

enum class Kind { certificate, key };

Error unreadable(const std::filesystem::path& file, int number) {
  return {ErrorCode::io_error, "cannot read " + file.string(), number};
}

/// Reads an open file to its end; closes it.
Result<Secret> read_all(int descriptor, const std::filesystem::path& file, Kind kind) {
  struct stat facts{};
  std::string text(limits::tls_file_bytes_max + 1, '\0');
  std::size_t bytes = 0;
  int number = fstat(descriptor, &facts) == 0 ? 0 : errno;
  while (number == 0 && bytes < text.size()) {
    const auto got = read(descriptor, text.data() + bytes, text.size() - bytes);
    if (got == 0) break;
    if (got > 0) bytes += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) number = errno;
  }
  close(descriptor);
  Secret read(std::string_view(text).substr(0, bytes));
  wipe_text(text);
  if (number != 0) return unreadable(file, number);
  if (kind == Kind::key) {
    if (auto fault = private_file_fault(facts, file.string(), "the broker's private key"))
      return *std::move(fault);
  }
  if (bytes > limits::tls_file_bytes_max) {
    return Error{ErrorCode::corrupt, file.string() + " has more than " +
                                         std::to_string(limits::tls_file_bytes_max) +
                                         " bytes, which no certificate or key has"};
  }
  return read;
}

/// Authorities' files are often links to the newest.
Result<Secret> read_file(const std::filesystem::path& file, Kind kind, int more_flags = 0) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | more_flags);
  if (descriptor < 0) return unreadable(file, errno);
  return read_all(descriptor, file, kind);
}

Result<std::unique_ptr<TlsContext>> make_context(const TlsFiles& files, const Result<Secret>& certificate,
                                                 const Result<Secret>& key, Timestamp now) {
  if (!certificate) return certificate.error();
  if (!key) return key.error();
  const std::string certificate_name = files.certificate.string();
  const std::string key_name = files.key.string();
  return TlsContext::make({certificate->expose(), key->expose(), certificate_name, key_name}, now);
}

/// Whether there is no such file; a link that leads nowhere is one.
bool is_missing(const std::filesystem::path& file) {
  struct stat facts{};
  return lstat(file.c_str(), &facts) != 0 && errno == ENOENT;
}

Result<void> make_key(const std::filesystem::path& file) {
  auto made = make_tls_key();
  if (!made) return made.error();
  auto written = write_file_atomically(file, *made, own_mode);
  wipe_text(*made);
  return written;
}

}  // namespace

Result<std::unique_ptr<TlsContext>> open_tls_context(const TlsFiles& files, Timestamp now) {
  const auto certificate = read_file(files.certificate, Kind::certificate);
  return make_context(files, certificate, read_file(files.key, Kind::key), now);
}

Result<std::unique_ptr<TlsContext>> open_own_tls_context(const TlsFiles& files, Timestamp now) {
  const bool new_key = is_missing(files.key);
  if (new_key) {
    if (auto made = make_key(files.key); !made) return made.error();
  }
  const auto key = read_file(files.key, Kind::key, O_NOFOLLOW);
  if (!key) return key.error();
  // A certificate is of no use without its key, and nobody knows it but by a join.
  if (new_key || is_missing(files.certificate)) {
    const auto made = make_tls_certificate(key->expose(), files.key.string());
    if (!made) return made.error();
    if (auto written = write_file_atomically(files.certificate, *made, own_mode); !written)
      return written.error();
  }
  return make_context(files, read_file(files.certificate, Kind::certificate, O_NOFOLLOW), key, now);
}

}  // namespace lightq::broker
