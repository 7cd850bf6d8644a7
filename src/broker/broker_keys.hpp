/// The keys with which a broker proves itself and checks its clients. Layer: broker.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <lightq/base/private_file.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/z85.hpp>

#include "access/connection_authorizer.hpp"
#include "access/ticket_key.hpp"
#include "base/log_sink.hpp"
#include "broker/config.hpp"
#include "broker/data_directory.hpp"
#include "crypto/curve_keys.hpp"
#include "crypto/tls_context.hpp"

namespace lightq::broker {

/// Owns the key of the tickets and, with `encrypt`, the broker's CURVE key, its TLS certificate and the list
/// of clients' keys. Thread: opened on the composition root's thread. Afterwards only `renew` changes keys.
/// Lifetime: outlives the reactors and the control server, which refer to the keys.
class BrokerKeys {
 public:
  /// Opens or creates the key of the tickets. Errors: those of open_ticket_key.
  Result<void> open_tickets(const Config& config, const DataDirectory& directory);
  /// With `encrypt`: opens or creates the broker's CURVE key, and reads the keys of the clients that may
  /// connect. Errors: those of open_curve_key and read_allowed_keys.
  Result<void> open_curve(const Config& config, const DataDirectory& directory, const PipeWait& wait);
  /// With `encrypt`: opens the certificate for sessions over TCP, and writes its fingerprint to `sink`.
  /// Errors: those of open_tls_context and open_own_tls_context.
  Result<void> open_tls(const Config& config, const DataDirectory& directory, const PipeWait& wait,
                        LogSink& sink);

  /// Keys that were read again, and are not in force yet.
  struct Renewal {
    std::unique_ptr<TlsContext> tls;                  ///< null: no encryption
    std::optional<CurveKeys::Held> curve;             ///< nothing: no encryption, or the file is gone
    std::optional<std::set<CurvePublicKey>> allowed;  ///< nothing: clients with any key may connect
  };
  /// With `encrypt`: reads the certificate, its key, the CURVE keys and the keys of clients again. Does not
  /// wait for pipes. Errors: those of open_curve and open_tls.
  [[nodiscard]] static Result<Renewal> read_again(const Config& config, const DataDirectory& directory);
  /// With `encrypt`: returns true if the file of the CURVE key was removed. The next start makes a new key;
  /// until then this one stays in force.
  [[nodiscard]] bool is_curve_key_gone(const DataDirectory& directory) const;
  /// Brings keys into force that were read again. New connections use them. Returns the names of the settings
  /// that name other keys now. Thread: that of the control server.
  std::vector<std::string> renew(Renewal renewal);

  /// Requires: open_tickets has succeeded.
  [[nodiscard]] const TicketKey& tickets() const { return *tickets_; }
  /// Returns the broker's CURVE keys; null: no encryption.
  [[nodiscard]] const CurveKeys* curve() const { return curve_.get(); }
  /// Returns the context for sessions over TCP; null: no encryption.
  [[nodiscard]] const TlsContext* tls() const { return tls_.get(); }
  /// Returns the present public CURVE key as text; empty: no encryption.
  [[nodiscard]] std::string public_text() const;
  /// Returns the authorizer of control connections. Requires: there is a CURVE key. Lifetime: this object
  /// outlives it.
  [[nodiscard]] ConnectionAuthorizer control_authorizer() const;

 private:
  std::unique_ptr<TicketKey> tickets_;
  std::unique_ptr<CurveKeys> curve_;
  std::optional<std::set<CurvePublicKey>> allowed_;  // nothing: clients with any key may connect
  std::unique_ptr<TlsContext> tls_;
};

}  // namespace lightq::broker
