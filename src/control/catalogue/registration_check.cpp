/// Ends client keys if the administrator's password or the ticket key differs from the catalogue's record.
/// Layer: control.
#include "control/catalogue/registration_check.hpp"

#include <cstring>
#include <string>

#include "access/password_hash.hpp"

namespace lightq::broker {

namespace {

/// Returns a random generation. Generations are random, not sequential: after losing the catalogue a counter
/// would reissue old values.
std::uint32_t drawn_generation(std::uint32_t other_than) {
  std::uint32_t drawn = 0;
  while (drawn == 0 || drawn == other_than) {
    const TicketKey::Bytes bytes = TicketKey::random_bytes();
    std::memcpy(&drawn, bytes.data(), sizeof drawn);
  }
  return drawn;
}

/// Returns `known` if it is a record of this password, otherwise a new record.
Result<AdministratorRecord> record_of(const AdministratorRecord& known, const Secret& password) {
  if (known.generation != 0 && verify_password(known.argon2, password.expose())) return known;
  const auto argon2 = hash_password(password.expose());
  if (!argon2) return argon2.error();
  return AdministratorRecord{drawn_generation(known.generation), *argon2};
}

void tell(LogSink& sink, std::size_t keys, const std::string& why) {
  if (keys > 0) sink.info("dropped " + std::to_string(keys) + " registered client keys: " + why);
}

}  // namespace

Result<std::uint32_t> check_registrations(Catalogue& catalogue, const TicketKey& tickets,
                                          const Secret& admin_password, LogSink& sink) {
  const CatalogueState& state = catalogue.state();
  if (const std::string id = tickets.id(); state.ticket_key_id() != id) {
    const auto ended = catalogue.name_ticket_key(id);
    if (!ended) return ended.error();
    tell(sink, *ended, "the ticket key has changed since");
  }
  const auto administrator = record_of(state.administrator(), admin_password);
  if (!administrator) return administrator.error();
  if (*administrator != state.administrator()) {
    const auto ended = catalogue.put_administrator(*administrator);
    if (!ended) return ended.error();
    tell(sink, *ended, "the administrator's password has changed since");
  }
  if (catalogue.unflushed()) {
    if (auto flushed = catalogue.flush(); !flushed) return flushed.error();
  }
  return state.administrator().generation;
}

}  // namespace lightq::broker
