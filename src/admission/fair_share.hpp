/// The rule by which users share a limit. Layer: admission. docs/protocol.md, "Limits".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace lightq::broker {

/// Applies one rule: a user with half of the resource leaves its last eighth to others. So no user can shut
/// out all others by taking everything. The total alone limits user 0: the administrator, or an unknown user.
///
/// Quota applies the rule to its own counts. Code that counts by other means calls `ask` itself: where a unit
/// counts for several users, or where the objects are few and listed anyway.
class FairShare {
 public:
  /// The number for all clients of open topics that have no user. Together they have the share of one user.
  static constexpr std::uint64_t anonymous = std::numeric_limits<std::uint64_t>::max();

  enum class Verdict {
    room,
    full,    ///< the total is reached
    others,  ///< the rest is reserved for other users
    own,     ///< the user has the most that one user may have (Quota::Bounds::per_key)
  };

  constexpr explicit FairShare(std::size_t most) : most_(most) {}

  /// Checks whether `user`, with `own` of the `taken` units, may take `more` of them.
  [[nodiscard]] constexpr Verdict ask(std::size_t taken, std::uint64_t user, std::size_t own,
                                      std::size_t more = 1) const {
    if (taken >= most_ || more > most_ - taken) return Verdict::full;
    const bool leaves_it = user != 0 && taken + more > most_ - most_ / 8 && own + more > most_ / 2;
    return leaves_it ? Verdict::others : Verdict::room;
  }

 private:
  std::size_t most_;
};

/// Returns the subject and verb of a refusal's sentence: the user that has too much.
inline std::string name_of_sharer(std::uint64_t user) {
  return user == FairShare::anonymous ? "anonymous clients have" : "this user has";
}

}  // namespace lightq::broker
