/// A client's own CURVE key pair, kept in a file, by which a broker with a list of keys knows it. Layer:
/// client.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/disk_full.hpp>
#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/wipe.hpp>
#include <lightq/base/z85.hpp>

namespace lightq::inline v1 {

/// A key pair of CURVE as text, Z85. Move-only; the secret half is wiped at the end. One thread.
struct CurveKeyTexts {
  CurveKeyTexts() = default;
  CurveKeyTexts(CurveKeyTexts&& other) noexcept
      : public_key(std::move(other.public_key)), secret_key(other.secret_key) {
    wipe_text(other.secret_key);
  }
  CurveKeyTexts(const CurveKeyTexts&) = delete;
  CurveKeyTexts& operator=(const CurveKeyTexts&) = delete;
  CurveKeyTexts& operator=(CurveKeyTexts&&) = delete;
  ~CurveKeyTexts() { wipe_text(secret_key); }

  std::string public_key;
  std::string secret_key;
};

/// A new pair. Errors: not_supported (this libzmq cannot encrypt).
inline Result<CurveKeyTexts> make_curve_keys() {
  std::array<char, curve_key_characters + 1> public_key{};
  std::array<char, curve_key_characters + 1> secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    return Error{ErrorCode::not_supported, "this libzmq was built without CURVE, and cannot encrypt"};
  CurveKeyTexts made;
  made.public_key = public_key.data();
  made.secret_key = secret_key.data();
  explicit_bzero(secret_key.data(), secret_key.size());
  return made;
}

/// The pair whose secret half is the file's first line, as `lightq key new` writes it. Errors: io_error;
/// invalid_argument (it holds no key, or other users may read it: see private_file_fault); timeout (a pipe
/// that says nothing); not_supported.
inline Result<CurveKeyTexts> read_client_key(const std::string& path) {
  constexpr std::size_t line_bytes_max = 256;
  CurveKeyTexts keys;
  Result<std::string> line = read_private_line(path, "a client's secret key", line_bytes_max);
  if (!line && curve_key_of_z85(path))  // a secret in the place of its file's name is not repeated
    return Error{ErrorCode::invalid_argument,
                 "a client's key is read from a file, and what was given as its name looks like the key"};
  if (!line) return line.error();
  keys.secret_key = *line;
  wipe_text(*line);
  auto bytes = curve_key_of_z85(keys.secret_key);
  const bool is_key = bytes.has_value();
  if (bytes) explicit_bzero(bytes->data(), bytes->size());
  if (!is_key)
    return Error{ErrorCode::invalid_argument,
                 path +
                     " holds no secret key: its first line has to be 40 characters of Z85, as  lightq key "
                     "new  writes them"};
  std::array<char, curve_key_characters + 1> public_key{};
  if (zmq_curve_public(public_key.data(), keys.secret_key.c_str()) != 0)
    return Error{ErrorCode::not_supported, "this libzmq was built without CURVE, and cannot encrypt"};
  keys.public_key = public_key.data();
  return keys;
}

namespace detail {

/// Writes and syncs; answers errno, 0 if all went well.
inline int write_new_file(int descriptor, std::string_view text) {
  if (fchmod(descriptor, 0600) != 0) return errno;
  while (!text.empty()) {
    const ssize_t bytes = ::write(descriptor, text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return fsync(descriptor) == 0 ? 0 : errno;
}

}  // namespace detail

/// Makes a pair, writes its secret half into a file that is not there yet (mode 0600), and answers the public
/// half. Errors: io_error (also where there is such a file, which stays as it is); no_space; not_supported.
inline Result<std::string> make_client_key(const std::string& path) {
  auto keys = make_curve_keys();
  if (!keys) return keys.error();
  const detail::ScopedDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0 && errno == EEXIST)
    return Error{ErrorCode::io_error, path + " is there already, and nothing is written over it"};
  if (file.get() < 0) return Error{ErrorCode::io_error, "cannot make " + path, errno};
  std::string text = keys->secret_key + '\n';
  const int number = detail::write_new_file(file.get(), text);
  wipe_text(text);
  if (number == 0) return std::move(keys->public_key);
  unlink(path.c_str());
  return Error{write_error_code(number), "cannot write " + path, number};
}

}  // namespace lightq::inline v1
