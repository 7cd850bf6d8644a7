/// How much of a thing that there is so many of one user may take. Layer: delivery. docs/protocol.md,
/// "Limits".
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace lightq::broker {

/// Whoever has half of them leaves the last eighth to others, so that nobody keeps all others out by filling
/// it. User 0 (the administrator, or nobody knows who) is held to the whole alone.
class FairShare {
 public:
  /// Clients of open topics who are nobody in particular: all of them have together what one user has.
  static constexpr std::uint64_t strangers = std::numeric_limits<std::uint64_t>::max();

  enum class Verdict {
    room,
    full,    ///< there are as many as there may be
    others,  ///< what is left is for others
  };

  constexpr explicit FairShare(std::size_t most) : most_(most) {}

  /// Whether `user`, who has `own` of the `taken`, may have so many more.
  [[nodiscard]] constexpr Verdict ask(std::size_t taken, std::uint64_t user, std::size_t own,
                                      std::size_t more = 1) const {
    if (taken >= most_ || more > most_ - taken) return Verdict::full;
    const bool leaves_it = user != 0 && taken + more > most_ - most_ / 8 && own + more > most_ / 2;
    return leaves_it ? Verdict::others : Verdict::room;
  }

 private:
  std::size_t most_;
};

/// Who has something, for the sentence of a refusal.
inline std::string name_of_sharer(std::uint64_t user) {
  return user == FairShare::strangers ? "clients of open topics who are no users have" : "this user has";
}

}  // namespace lightq::broker
