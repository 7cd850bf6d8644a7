/// Reads the configured TLS certificate and key, or the broker's own, which it creates if they are missing.
/// Layer: access.
#include "access/tls_files.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <string_view>

#include <lightq/base/private_file.hpp>
#include <lightq/base/secret.hpp>

#include "access/private_file.hpp"
#include "base/setting_error.hpp"

namespace lightq::broker {

namespace {

constexpr mode_t own_mode = 0600;

constexpr std::string_view key_holds = "the broker's private key";
constexpr std::string_view certificate_holds = "the broker's certificate";

Result<Secret> read_key(const std::filesystem::path& file, LinkRule links, const PipeWait& wait) {
  return read_private_file(file.string(), key_holds, limits::tls_file_bytes_max, links, wait);
}

Result<std::string> read_certificate(const std::filesystem::path& file, LinkRule links,
                                     const PipeWait& wait) {
  return read_public_file(file.string(), certificate_holds, limits::tls_file_bytes_max, links, wait);
}

/// Returns true if the file does not exist. A symbolic link without a target does exist.
bool is_missing(const std::filesystem::path& file) {
  struct stat facts{};
  return lstat(file.c_str(), &facts) != 0 && errno == ENOENT;
}

Result<void> make_key(const std::filesystem::path& file) {
  const auto made = make_tls_key();
  if (!made) return made.error();
  return write_file_atomically(file, made->expose(), own_mode);
}

}  // namespace

/// Errors name both the setting and the file.
Result<std::unique_ptr<TlsContext>> open_tls_context(const TlsFiles& files, Timestamp now,
                                                     const PipeWait& wait) {
  constexpr std::string_view of_certificate = "tls_certificate";
  constexpr std::string_view of_key = "tls_key";
  const auto certificate = read_certificate(files.certificate, LinkRule::followed, wait);
  if (!certificate) return error_of_setting(of_certificate, certificate.error());
  const auto key = read_key(files.key, LinkRule::followed, wait);
  if (!key) return error_of_setting(of_key, key.error());
  return TlsContext::make(
      {*certificate, key->expose(), std::string(of_certificate) + ": " + files.certificate.string(),
       std::string(of_key) + ": " + files.key.string()},
      now);
}

Result<std::unique_ptr<TlsContext>> open_own_tls_context(const TlsFiles& files, Timestamp now) {
  const bool new_key = is_missing(files.key);
  if (new_key) {
    if (auto made = make_key(files.key); !made) return made.error();
  }
  const auto key = read_key(files.key, LinkRule::refused, {});
  if (!key) return key.error();
  // Without its key a certificate is useless. Clients learn it only by a join, so it may be replaced.
  if (new_key || is_missing(files.certificate)) {
    const auto made = make_tls_certificate(key->expose(), files.key.string());
    if (!made) return made.error();
    if (auto written = write_file_atomically(files.certificate, *made, own_mode); !written)
      return written.error();
  }
  const auto certificate = read_certificate(files.certificate, LinkRule::refused, {});
  if (!certificate) return certificate.error();
  return TlsContext::make({*certificate, key->expose(), files.certificate.string(), files.key.string()}, now);
}

}  // namespace lightq::broker
