/// Opens the keys of a broker. Layer: broker.
#include "broker/broker_keys.hpp"

#include <utility>

#include "access/curve_key_file.hpp"
#include "access/ticket_key_file.hpp"
#include "access/tls_files.hpp"
#include "broker/wall_clock.hpp"

namespace lightq::broker {

Result<void> BrokerKeys::open_tickets(const Config& config, const DataDirectory& directory) {
  auto key = open_ticket_key(directory.ticket_key_file(), config.ticket_lifetime);
  if (!key) return key.error();
  tickets_ = std::move(*key);
  return {};
}

Result<void> BrokerKeys::open_curve(const Config& config, const DataDirectory& directory,
                                    const PipeWait& wait) {
  if (!config.encrypt) return {};
  auto key = open_curve_key(directory.curve_key_file());
  if (!key) return key.error();
  curve_ = std::move(*key);
  if (config.allowed_client_keys.empty()) return {};
  auto allowed = read_allowed_keys(config.allowed_client_keys, wait);
  if (!allowed) return allowed.error();
  allowed_ = std::move(*allowed);
  return {};
}

Result<void> BrokerKeys::open_tls(const Config& config, const DataDirectory& directory, const PipeWait& wait,
                                  LogSink& sink) {
  if (!config.encrypt) return {};
  const bool given = !config.tls_certificate.empty();
  auto opened = given ? open_tls_context({config.tls_certificate, config.tls_key}, wall_clock_now(), wait)
                      : open_own_tls_context({directory.tls_certificate_file(), directory.tls_key_file()},
                                             wall_clock_now());
  if (!opened) return opened.error();
  tls_ = std::move(*opened);
  sink.info("sessions over TCP are encrypted; the certificate's SHA-256 is " + tls_->fingerprint());
  return {};
}

std::string BrokerKeys::public_text() const {
  return curve_ == nullptr ? std::string() : to_z85(curve_->public_key());
}

ConnectionAuthorizer BrokerKeys::control_authorizer() const {
  ConnectionAuthorizer authorizer;
  authorizer.encrypt(*curve_, nullptr);
  if (allowed_) authorizer.allow_only(*allowed_);
  return authorizer;
}

}  // namespace lightq::broker
