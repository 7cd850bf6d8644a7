/// Reads or creates the broker's TLS certificate. Layer: access.
#pragma once

#include <filesystem>
#include <memory>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>

#include "crypto/tls_context.hpp"

namespace lightq::broker {

/// Paths of PEM files.
struct TlsFiles {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

/// Opens the certificate and key that the settings name. Errors, which name the setting: those of
/// TlsContext::make; those of read_private_file for the key and of read_public_file for the certificate.
Result<std::unique_ptr<TlsContext>> open_tls_context(const TlsFiles& files, Timestamp now,
                                                     const PipeWait& wait = {});
/// Opens the broker's own certificate (DATA_DIR/tls.crt and tls.key, mode 0600). Creates both files, or the
/// certificate alone, if they do not exist. Errors: as open_tls_context, and no_space, internal.
Result<std::unique_ptr<TlsContext>> open_own_tls_context(const TlsFiles& files, Timestamp now);

}  // namespace lightq::broker
