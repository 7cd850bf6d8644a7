/// Prepares new passwords to be stored. Layer: control.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/secret.hpp>
#include <lightq/protocol/control.hpp>

#include "access/authenticator.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/commands/done.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// Hashes the passwords that operations store, on the authenticator's thread. It does not verify passwords:
/// Permissions does. Thread: the control thread. Lifetime: the references must outlive it.
class NewPasswords {
 public:
  NewPasswords(Authenticator& authenticator, const Catalogue& catalogue, const AskerRights& rights)
      : authenticator_(authenticator), catalogue_(catalogue), rights_(rights) {}

  /// Returns true for the administrator's name. No other user may have it.
  [[nodiscard]] bool is_admin(const std::string& user_id) const { return authenticator_.is_admin(user_id); }
  /// Hashes a user's password. Errors: busy, internal.
  void hash(Secret password, const Asker& asker, Done<std::string> done);
  /// Hashes the password of a topic's own user, or finds the credential that already has it. For askers other
  /// than an administrator, both cases take equal time. Errors: busy, internal.
  void enrol(const protocol::Credentials& given, const Asker& asker, Done<Enrolment> done);
  /// Remembers that these credentials are correct for the credential `id`, which was just stored.
  void remember(std::uint64_t id, const protocol::Credentials& given) { authenticator_.remember(id, given); }

 private:
  Authenticator& authenticator_;
  const Catalogue& catalogue_;
  const AskerRights& rights_;
};

}  // namespace lightq::broker
