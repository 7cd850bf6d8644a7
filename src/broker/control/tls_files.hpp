/// Where the broker's certificate for TLS lies. Layer: control.
#pragma once

#include <filesystem>
#include <memory>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>

#include "broker/endpoint/tls_context.hpp"

namespace lightq::broker {

/// PEM files.
struct TlsFiles {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

/// The certificate and key that somebody has given. Errors, which name the setting: those of
/// TlsContext::make; as read_private_file of the key, and read_public_file of the certificate.
Result<std::unique_ptr<TlsContext>> open_tls_context(const TlsFiles& files, Timestamp now,
                                                     const PipeWait& wait = {});
/// The broker's own (DATA_DIR/tls.crt and tls.key, mode 0600), made where there is no file: both, or the
/// certificate alone. Errors: likewise; no_space, internal.
Result<std::unique_ptr<TlsContext>> open_own_tls_context(const TlsFiles& files, Timestamp now);

}  // namespace lightq::broker
