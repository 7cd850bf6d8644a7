/// Opens the keys of a broker. Layer: broker.
#include "broker/broker_keys.hpp"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "access/curve_key_file.hpp"
#include "access/ticket_key_file.hpp"
#include "access/tls_files.hpp"
#include "broker/wall_clock.hpp"

namespace lightq::broker {

namespace {

Result<std::unique_ptr<TlsContext>> tls_context_of(const Config& config, const DataDirectory& directory,
                                                   const PipeWait& wait) {
  const bool given = !config.tls_certificate.empty();
  return given ? open_tls_context({config.tls_certificate, config.tls_key}, wall_clock_now(), wait)
               : open_own_tls_context({directory.tls_certificate_file(), directory.tls_key_file()},
                                      wall_clock_now());
}

bool is_same(const std::shared_ptr<const CurveKeyPair>& one,
             const std::shared_ptr<const CurveKeyPair>& other) {
  if (one == nullptr || other == nullptr) return one == other;
  return one->public_key() == other->public_key();
}

}  // namespace

Result<void> BrokerKeys::open_tickets(const Config& config, const DataDirectory& directory) {
  auto key = open_ticket_key(directory.ticket_key_file(), config.ticket_lifetime);
  if (!key) return key.error();
  tickets_ = std::move(*key);
  return {};
}

Result<void> BrokerKeys::open_curve(const Config& config, const DataDirectory& directory,
                                    const PipeWait& wait) {
  if (!config.encrypt) return {};
  auto keys = open_curve_keys(directory.curve_key_files());
  if (!keys) return keys.error();
  curve_ = std::make_unique<CurveKeys>(std::move(*keys));
  if (config.allowed_client_keys.empty()) return {};
  auto allowed = read_allowed_keys(config.allowed_client_keys, wait);
  if (!allowed) return allowed.error();
  allowed_ = std::move(*allowed);
  return {};
}

Result<void> BrokerKeys::open_tls(const Config& config, const DataDirectory& directory, const PipeWait& wait,
                                  LogSink& sink) {
  if (!config.encrypt) return {};
  auto opened = tls_context_of(config, directory, wait);
  if (!opened) return opened.error();
  tls_ = std::move(*opened);
  sink.info("sessions over TCP are encrypted; the certificate's SHA-256 is " + tls_->fingerprint());
  return {};
}

Result<BrokerKeys::Renewal> BrokerKeys::read_again(const Config& config, const DataDirectory& directory) {
  if (!config.encrypt) return Renewal{};
  const PipeWait no_wait{.time_max = std::chrono::milliseconds(0)};
  Renewal renewal;
  auto tls = tls_context_of(config, directory, no_wait);
  if (!tls) return tls.error();
  renewal.tls = std::move(*tls);
  std::error_code code;
  if (std::filesystem::exists(directory.curve_key_files().current, code)) {
    auto curve = open_curve_keys(directory.curve_key_files());
    if (!curve) return curve.error();
    renewal.curve = std::move(*curve);
  }
  if (config.allowed_client_keys.empty()) return renewal;
  auto allowed = read_allowed_keys(config.allowed_client_keys, no_wait);
  if (!allowed) return allowed.error();
  renewal.allowed = std::move(*allowed);
  return renewal;
}

bool BrokerKeys::is_curve_key_gone(const DataDirectory& directory) const {
  std::error_code code;
  return curve_ != nullptr && !std::filesystem::exists(directory.curve_key_files().current, code);
}

std::vector<std::string> BrokerKeys::renew(Renewal renewal) {
  std::vector<std::string> names;
  if (tls_ != nullptr && renewal.tls != nullptr && renewal.tls->fingerprint() != tls_->fingerprint()) {
    names.emplace_back("tls_certificate");
    tls_->renew(*renewal.tls);
  }
  if (curve_ != nullptr && renewal.curve) {
    const CurveKeys::Held old = curve_->held();
    if (!is_same(old.current, renewal.curve->current)) names.emplace_back("curve.key");
    if (!is_same(old.former, renewal.curve->former)) names.emplace_back("curve_former.key");
    curve_->renew(std::move(*renewal.curve));
  }
  if (renewal.allowed != allowed_) {
    names.emplace_back("allowed_client_keys");
    allowed_ = std::move(renewal.allowed);
  }
  return names;
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
