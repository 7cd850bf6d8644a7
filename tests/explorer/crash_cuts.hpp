/// Chooses which of all possible power cuts are explored.
#pragma once

#include <cstdint>
#include <vector>

#include "explorer/small_random.hpp"
#include "support/explorer_storage.hpp"

namespace lightq::test {

/// Returns the number of different cuts. If there are more than `most`, returns any number above `most`.
std::uint64_t count_cuts(const std::vector<CutAtom>& atoms, std::uint64_t most);
/// Changes `cut` to the next one, in an order that contains every cut. Returns false after the last one.
bool next_cut(const std::vector<CutAtom>& atoms, Cut& cut);
/// Sets `cut` to a random one. Requires: at least one atom.
void choose_cut(SmallRandom& random, const std::vector<CutAtom>& atoms, Cut& cut);

}  // namespace lightq::test
