/// The definitions of <lightq/client_key_file.hpp>. Layer: client.
#pragma once

#include <lightq/client_key_file.hpp>

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

LIGHTQ_INLINE Result<CurveKeyTexts> make_curve_keys() {
  std::array<char, curve_key_characters + 1> public_key{};
  std::string secret_key(curve_key_characters, '\0');  // libzmq writes a NUL behind it
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    return Error{ErrorCode::not_supported, "this libzmq was built without CURVE, so it cannot encrypt"};
  return CurveKeyTexts{public_key.data(), std::move(secret_key)};
}

LIGHTQ_INLINE Result<CurveKeyTexts> read_client_key(const std::string& path) {
  constexpr std::size_t line_bytes_max = 256;
  Result<Secret> line = read_private_line(path, "a client's secret key", line_bytes_max);
  if (!line && curve_key_of_z85(path))  // a key given in place of a file name is not repeated in the error
    return Error{
        ErrorCode::invalid_argument,
        "the name of a file with a client's key is needed, but the given name looks like the key itself"};
  if (!line) return line.error();
  auto bytes = curve_key_of_z85(line->expose());
  const bool is_key = bytes.has_value();
  if (bytes) wipe_bytes(*bytes);
  if (!is_key)
    return Error{ErrorCode::invalid_argument, path +
                                                  " contains no secret key: its first line must be 40 "
                                                  "characters of Z85, as  lightq key new  writes them"};
  std::array<char, curve_key_characters + 1> public_key{};
  if (zmq_curve_public(public_key.data(), line->expose().c_str()) != 0)
    return Error{ErrorCode::not_supported, "this libzmq was built without CURVE, so it cannot encrypt"};
  return CurveKeyTexts{public_key.data(), std::move(*line)};
}

}  // namespace lightq::inline v1

namespace lightq::inline v1::detail {

LIGHTQ_INLINE int write_new_file(int descriptor, std::string_view text) {
  if (fchmod(descriptor, 0600) != 0) return errno;
  while (!text.empty()) {
    const ssize_t bytes = ::write(descriptor, text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return fsync(descriptor) == 0 ? 0 : errno;
}

}  // namespace lightq::inline v1::detail

namespace lightq::inline v1 {

LIGHTQ_INLINE Result<std::string> make_client_key(const std::string& path) {
  auto keys = make_curve_keys();
  if (!keys) return keys.error();
  const detail::ScopedDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0 && errno == EEXIST)
    return Error{ErrorCode::io_error, path + " exists already and is not overwritten"};
  if (file.get() < 0) return Error{ErrorCode::io_error, "cannot create " + path, errno};
  const Secret text = keys->secret_key.expose() + '\n';
  const int number = detail::write_new_file(file.get(), text.expose());
  if (number == 0) return std::move(keys->public_key);
  unlink(path.c_str());
  return Error{write_error_code(number), "cannot write " + path, number};
}

}  // namespace lightq::inline v1
