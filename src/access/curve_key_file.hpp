/// The broker's CURVE key, which survives restarts, and the keys of clients that it admits. Layer: access.
#pragma once

#include <filesystem>
#include <memory>
#include <set>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>

#include "crypto/curve_box.hpp"
#include "crypto/curve_keys.hpp"

namespace lightq::broker {

/// Returns the key pair of the secret key in `file` (DATA_DIR/curve.key: 32 bytes, mode 0600). Creates the
/// file if it does not exist. Errors: as of open_ticket_key.
Result<std::unique_ptr<CurveKeyPair>> open_curve_key(const std::filesystem::path& file);

/// The files of a server's keys.
struct CurveKeyFiles {
  std::filesystem::path current;  ///< as of open_curve_key
  std::filesystem::path former;   ///< of the same form; it need not exist
};

/// Returns the keys in the files. Creates the present one if it does not exist. Errors: as of open_curve_key.
Result<CurveKeys::Held> open_curve_keys(const CurveKeyFiles& files);

/// Makes a new present key, and keeps the one that was there as the former key. Returns the new key. Both
/// files get the owner and the group of the present key's file. Errors: as of open_curve_key; io_error if
/// this process must not set these; invalid_argument if there is another former key already, which a second
/// renewal would end although clients may still use it.
Result<std::unique_ptr<CurveKeyPair>> renew_curve_key(const CurveKeyFiles& files);

/// Reads public keys in Z85, one per line. Ignores empty lines and text after a #. Errors, which name the
/// setting: those of read_public_file; invalid_argument with the number of a faulty line, or if the file has
/// no key, because then no client could connect; limit_reached.
Result<std::set<CurvePublicKey>> read_allowed_keys(const std::filesystem::path& file,
                                                   const PipeWait& wait = {});

}  // namespace lightq::broker
