/// Which of all power cuts are looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "explorer/small_random.hpp"
#include "support/explorer_storage.hpp"

namespace lightq::test {

/// How many cuts there are; once there are more than `most`, any number above it.
std::uint64_t count_cuts(const std::vector<CutAtom>& atoms, std::uint64_t most);
/// The next one, in an order that has them all; false after the last.
bool next_cut(const std::vector<CutAtom>& atoms, Cut& cut);
/// One of them. Requires at least one atom.
void choose_cut(SmallRandom& random, const std::vector<CutAtom>& atoms, Cut& cut);

}  // namespace lightq::test
