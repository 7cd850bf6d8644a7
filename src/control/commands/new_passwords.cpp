/// Prepares new passwords to be stored. Layer: control.
#include "control/commands/new_passwords.hpp"

#include <utility>

namespace lightq::broker {

void NewPasswords::hash(Secret password, const Asker& asker, Done<std::string> done) {
  authenticator_.hash(std::move(password), std::move(done), asker.source, asker.turn_key());
}

void NewPasswords::enrol(const protocol::Credentials& given, const Asker& asker, Done<Enrolment> done) {
  using EnrolTiming = Authenticator::EnrolTiming;
  // The credential may be of a deleted user, or one that the catalogue dropped because no topic refers to it.
  const auto known = authenticator_.remembered(given);
  if (known != 0 && catalogue_.state().credential(known) == nullptr) authenticator_.forget(known);
  authenticator_.enrol(given, std::move(done), asker.source,
                       rights_.is_admin(asker) ? EnrolTiming::at_once : EnrolTiming::constant_time,
                       asker.turn_key());
}

}  // namespace lightq::broker
