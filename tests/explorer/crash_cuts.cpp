/// Chooses which of all possible power cuts are explored.
#include "explorer/crash_cuts.hpp"

namespace lightq::test {

std::uint64_t count_cuts(const std::vector<CutAtom>& atoms, std::uint64_t most) {
  std::uint64_t count = 1;
  for (const CutAtom& atom : atoms) {
    count *= atom.versions;
    if (count > most) return count;
  }
  return count;
}

bool next_cut(const std::vector<CutAtom>& atoms, Cut& cut) {
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (++cut[i] < atoms[i].versions) return true;
    cut[i] = 0;
  }
  return false;
}

// Disks fail in runs, so most choices are runs. Nothing survives, everything survives, everything up to a
// moment, all but one atom, only one atom, or any mixture.
void choose_cut(SmallRandom& random, const std::vector<CutAtom>& atoms, Cut& cut) {
  const std::size_t count = atoms.size();
  const auto last = [&](std::size_t i) { return static_cast<std::uint8_t>(atoms[i].versions - 1); };
  const auto any = [&](std::size_t i) { return static_cast<std::uint8_t>(random.below(atoms[i].versions)); };
  const std::uint64_t way = random.below(10);
  const std::size_t place = random.below(count);
  for (std::size_t i = 0; i < count; ++i) {
    switch (way) {
      case 0: cut[i] = 0; break;
      case 1: cut[i] = i < place ? last(i) : std::uint8_t{0}; break;
      case 2: cut[i] = i == place ? any(i) : last(i); break;
      case 3: cut[i] = i == place ? last(i) : std::uint8_t{0}; break;
      case 4: cut[i] = random.one_in(8) ? any(i) : last(i); break;
      case 5: cut[i] = random.one_in(8) ? any(i) : std::uint8_t{0}; break;
      case 6: cut[i] = i < place ? last(i) : any(i); break;  // the newest writes survive in disorder
      case 7: cut[i] = atoms[i].kind == CutAtom::Kind::name ? last(i) : any(i); break;
      default: cut[i] = any(i);
    }
  }
}

}  // namespace lightq::test
