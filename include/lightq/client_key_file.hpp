/// A client's own CURVE key pair, stored in a file. A broker with a list of keys identifies the client by it.
/// Layer: client.
#pragma once

#include <string>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>
#include <lightq/base/separate.hpp>

namespace lightq::inline v1 {

/// A CURVE key pair as text, Z85. One thread.
struct CurveKeyTexts {
  std::string public_key;
  Secret secret_key;
};

/// Makes a new key pair. Errors: not_supported (this libzmq cannot encrypt).
LIGHTQ_INLINE Result<CurveKeyTexts> make_curve_keys();

/// Reads the key pair from a file. The secret key is the file's first line, as `lightq key new` writes it.
/// Errors: io_error; invalid_argument (the file contains no key, or other users may read it: see
/// private_file_fault); timeout (a pipe that delivers nothing); not_supported.
LIGHTQ_INLINE Result<CurveKeyTexts> read_client_key(const std::string& path);

namespace detail {

/// Writes `text` to the new file and syncs it. Returns 0, or errno after an error.
LIGHTQ_INLINE int write_new_file(int descriptor, std::string_view text);

}  // namespace detail

/// Makes a key pair, writes its secret key to a new file (mode 0600), and returns the public key. Errors:
/// io_error (also if the file exists already, which then stays unchanged); no_space; not_supported.
LIGHTQ_INLINE Result<std::string> make_client_key(const std::string& path);

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/client_key_file.hpp>  // IWYU pragma: export
#endif
