/// The broker's CURVE key between two starts, and the keys of clients that it lets in. Layer: control.
#pragma once

#include <filesystem>
#include <memory>
#include <set>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>

#include "broker/endpoint/curve_box.hpp"

namespace lightq::broker {

/// The key pair whose secret key is in `file` (DATA_DIR/curve.key: 32 bytes, mode 0600), made where there is
/// no file. Errors: as of open_ticket_key.
Result<std::unique_ptr<CurveKeyPair>> open_curve_key(const std::filesystem::path& file);

/// Public keys, Z85, one a line; empty lines and what follows a # are passed over. Errors, which name the
/// setting: as read_public_file; invalid_argument, naming the line, or where there is no key, as then nobody
/// could connect; limit_reached.
Result<std::set<CurvePublicKey>> read_allowed_keys(const std::filesystem::path& file,
                                                   const PipeWait& wait = {});

}  // namespace lightq::broker
