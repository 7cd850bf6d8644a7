/// Where the broker's certificate for TLS lies. Layer: control.
#pragma once

#include <filesystem>
#include <memory>

#include <lightq/base/result.hpp>

#include "broker/endpoint/tls_context.hpp"

namespace lightq::broker {

/// PEM files.
struct TlsFiles {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

/// The certificate and key that somebody has given. Errors: those of TlsContext::make; io_error;
/// invalid_argument if others than its owner may read or write the key.
Result<std::unique_ptr<TlsContext>> open_tls_context(const TlsFiles& files, Timestamp now);
/// The broker's own (DATA_DIR/tls.crt and tls.key, mode 0600), made where there is no file: both, or the
/// certificate alone. Errors: likewise; no_space, internal.
Result<std::unique_ptr<TlsContext>> open_own_tls_context(const TlsFiles& files, Timestamp now);

}  // namespace lightq::broker
