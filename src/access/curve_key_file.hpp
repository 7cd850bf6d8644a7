/// The broker's CURVE key, which survives restarts, and the keys of clients that it admits. Layer: access.
#pragma once

#include <filesystem>
#include <memory>
#include <set>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>

#include "crypto/curve_box.hpp"

namespace lightq::broker {

/// Returns the key pair of the secret key in `file` (DATA_DIR/curve.key: 32 bytes, mode 0600). Creates the
/// file if it does not exist. Errors: as of open_ticket_key.
Result<std::unique_ptr<CurveKeyPair>> open_curve_key(const std::filesystem::path& file);

/// Reads public keys in Z85, one per line. Ignores empty lines and text after a #. Errors, which name the
/// setting: those of read_public_file; invalid_argument with the number of a faulty line, or if the file has
/// no key, because then no client could connect; limit_reached.
Result<std::set<CurvePublicKey>> read_allowed_keys(const std::filesystem::path& file,
                                                   const PipeWait& wait = {});

}  // namespace lightq::broker
