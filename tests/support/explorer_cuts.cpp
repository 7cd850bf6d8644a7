/// ExplorerStorage: the history of its files, and the disk that a power cut leaves.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "support/explorer_inode.hpp"

namespace lightq::test {

namespace {

constexpr std::size_t sector_size = ExplorerStorage::sector_bytes;

std::size_t sectors_of(std::size_t bytes) {
  return (bytes + sector_size - 1) / sector_size;
}

}  // namespace

// --- The history of files ---

ExplorerStorage::Inode& ExplorerStorage::new_inode() {
  if (inode_count_ == inodes_.size()) inodes_.push_back(std::make_unique<Inode>());
  Inode& inode = *inodes_[inode_count_++];
  inode.forget_history();
  if (inode.size != 0) std::memset(inode.bytes.get(), 0, inode.size);
  inode.size = 0;
  inode.seen.clear();
  inode.content = world_.next_content();
  return inode;
}

void ExplorerStorage::grow(Inode& inode, std::uint64_t bytes) {
  if (bytes <= inode.capacity) return;
  if (inode.mappings != 0) throw std::logic_error("grew a mapped file");
  const std::size_t capacity = sectors_of(bytes) * sector_size;
  auto larger = std::make_unique<std::byte[]>(capacity);
  if (inode.size != 0) std::memcpy(larger.get(), inode.bytes.get(), inode.size);
  inode.bytes = std::move(larger);
  inode.capacity = capacity;
  inode.sectors.resize(sectors_of(capacity));
}

// A file that shrinks has zeros after its new end. Each sector that this changes counts as written.
void ExplorerStorage::set_size(Inode& inode, std::uint64_t bytes) {
  if (!inode.seen.empty()) note_stores(inode);
  grow(inode, bytes);
  if (!inode.seen.empty()) inode.seen.resize(bytes);
  inode.old_sizes.push_back({inode.size, ++time_});
  for (std::size_t at = bytes / sector_size * sector_size; at < inode.size; at += sector_size) {
    write_sector(inode, static_cast<std::uint32_t>(at / sector_size), inode.bytes.get() + at);
    const std::size_t from = std::max<std::size_t>(at, bytes);
    std::memset(inode.bytes.get() + from, 0, at + sector_size - from);
  }
  allocated_ = allocated_ + bytes - std::min<std::uint64_t>(allocated_ + bytes, inode.size);
  inode.size = bytes;
  inode.content = world_.next_content();
}

// Called before the sector changes; `before` has its present bytes.
void ExplorerStorage::write_sector(Inode& inode, std::uint32_t sector, const std::byte* before) {
  Inode::Sector& known = inode.sectors[sector];
  if (known.writes == 0) known.first_old = static_cast<std::int32_t>(inode.olds.size());
  ++known.writes;
  known.stuck = false;
  Inode::Old& old = inode.olds.emplace_back();
  old.sector = sector;
  old.time = time_;
  std::memcpy(old.bytes.data(), before, sector_size);
}

void ExplorerStorage::write(Inode& inode, ByteView bytes, std::uint64_t position) {
  if (bytes.empty()) return;
  const std::uint64_t end = position + bytes.size();
  if (inode.size < end) set_size(inode, end);
  if (!inode.seen.empty()) note_stores(inode);
  ++time_;
  for (std::size_t sector = position / sector_size; sector * sector_size < end; ++sector) {
    write_sector(inode, static_cast<std::uint32_t>(sector), inode.bytes.get() + sector * sector_size);
  }
  std::memcpy(inode.bytes.get() + position, bytes.data(), bytes.size());
  if (!inode.seen.empty()) std::memcpy(inode.seen.data() + position, bytes.data(), bytes.size());
  inode.content = world_.next_content();
}

void ExplorerStorage::note_stores(Inode& inode) {
  bool changed = false;
  ++time_;
  for (std::size_t at = 0; at < inode.seen.size(); at += sector_size) {
    const std::size_t count = std::min(sector_size, inode.seen.size() - at);
    if (std::memcmp(inode.seen.data() + at, inode.bytes.get() + at, count) == 0) continue;
    std::array<std::byte, sector_size> before{};
    std::memcpy(before.data(), inode.seen.data() + at, count);
    write_sector(inode, static_cast<std::uint32_t>(at / sector_size), before.data());
    std::memcpy(inode.seen.data() + at, inode.bytes.get() + at, count);
    changed = true;
  }
  if (changed) inode.content = world_.next_content();
}

// Syncs the sectors that contain any byte of [begin, end). The file's size on disk then covers `end`.
void ExplorerStorage::sync(Inode& inode, std::size_t begin, std::size_t end) {
  if (!inode.seen.empty()) note_stores(inode);
  const bool whole = end == SIZE_MAX;
  const auto covered = [&](std::uint32_t sector) {
    const std::size_t at = std::size_t{sector} * sector_size;
    return whole || (begin < at + sector_size && at < end);
  };
  std::vector<Inode::Old> kept;
  std::vector<std::uint32_t> stuck;
  for (const Inode::Old& old : inode.olds) {
    if (inode.sectors[old.sector].stuck) stuck.push_back(old.sector);
    if (inode.sectors[old.sector].stuck || !covered(old.sector)) kept.push_back(old);
  }
  std::vector<Inode::OldSize> sizes = std::move(inode.old_sizes);
  inode.forget_history();
  for (const Inode::Old& old : kept) {
    Inode::Sector& known = inode.sectors[old.sector];
    if (known.writes == 0) known.first_old = static_cast<std::int32_t>(inode.olds.size());
    ++known.writes;
    inode.olds.push_back(old);
  }
  for (const std::uint32_t sector : stuck) inode.sectors[sector].stuck = true;
  if (whole) return;
  for (Inode::OldSize& size : sizes) size.bytes = std::max<std::uint64_t>(size.bytes, end);
  inode.old_sizes = std::move(sizes);
}

void ExplorerStorage::fail_sync(Inode& inode) {
  if (!inode.seen.empty()) note_stores(inode);
  for (const Inode::Old& old : inode.olds) inode.sectors[old.sector].stuck = true;
}

void ExplorerStorage::settle() {
  for (std::size_t i = 0; i < inode_count_; ++i) inodes_[i]->forget_history();
  journal_.clear();
  names_on_disk_ = names_;
}

// --- Changes that a power cut may undo ---

void ExplorerStorage::list_atoms(std::uint32_t index) {
  Inode& inode = *inodes_[index];
  if (!inode.seen.empty()) note_stores(inode);
  for (std::size_t i = 0; i < inode.olds.size(); ++i) {
    const Inode::Old& old = inode.olds[i];
    const Inode::Sector& known = inode.sectors[old.sector];
    if (known.first_old != static_cast<std::int32_t>(i)) continue;
    const std::uint32_t versions = std::min<std::uint32_t>(known.writes, 254) + 1;
    atoms_.push_back({CutAtom::Kind::sector, index, old.sector, versions, old.time});
  }
  if (!inode.old_sizes.empty()) {
    const auto versions = static_cast<std::uint32_t>(std::min<std::size_t>(inode.old_sizes.size(), 254) + 1);
    atoms_.push_back({CutAtom::Kind::size, index, 0, versions, inode.old_sizes.front().time});
  }
}

const std::vector<CutAtom>& ExplorerStorage::atoms() {
  atoms_.clear();
  // Leaves out the files that have no name in any outcome: their bytes make no difference.
  visible_.assign(inode_count_, 0);
  const auto see = [&](std::int32_t inode) {
    if (inode >= 0) visible_[static_cast<std::size_t>(inode)] = 1;
  };
  for (const Name& name : names_on_disk_) see(name.inode);
  for (const NameChange& change : journal_) see(change.inode);
  for (std::uint32_t i = 0; i < inode_count_; ++i) {
    if (visible_[i] != 0) list_atoms(i);
  }
  for (std::uint32_t i = 0; i < journal_.size(); ++i) {
    if (!journal_[i].synced) atoms_.push_back({CutAtom::Kind::name, i, 0, 2, journal_[i].time});
  }
  std::sort(atoms_.begin(), atoms_.end(),
            [](const CutAtom& one, const CutAtom& other) { return one.time < other.time; });
  return atoms_;
}

std::string ExplorerStorage::describe(const CutAtom& atom) const {
  if (atom.kind == CutAtom::Kind::name) {
    const NameChange& change = journal_[atom.file];
    const std::string path = world_.path(change.path).text;
    if (change.kind == NameChange::Kind::create) return "creating " + path;
    if (change.kind == NameChange::Kind::unlink) return "removing " + path;
    return "renaming " + path + " to " + world_.path(change.to).text;
  }
  std::string path = "a file without a name";
  for (const Name& name : names_) {
    if (name.inode == static_cast<std::int32_t>(atom.file)) path = world_.path(name.path).text;
  }
  if (atom.kind == CutAtom::Kind::size) return "the size of " + path;
  return "sector " + std::to_string(atom.sector) + " of " + path;
}

// A lost change of a name takes with it all later changes in the same directories.
void ExplorerStorage::become_names(const ExplorerStorage& from, const std::vector<CutAtom>& atoms,
                                   const Cut& cut) {
  names_ = from.names_on_disk_;
  std::vector<std::uint8_t> survives(from.journal_.size(), 1);
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (atoms[i].kind == CutAtom::Kind::name) survives[atoms[i].file] = cut[i];
  }
  std::vector<std::int32_t> lost;
  const auto is_lost = [&](std::int32_t parent) {
    return std::find(lost.begin(), lost.end(), parent) != lost.end();
  };
  for (std::size_t i = 0; i < from.journal_.size(); ++i) {
    const NameChange& change = from.journal_[i];
    const auto [first, second] = from.directories_of(change);
    if (!change.synced && (survives[i] == 0 || is_lost(first) || is_lost(second))) {
      lost.push_back(first);
      lost.push_back(second);
    } else {
      apply(names_, change);
    }
  }
  drop_orphans();
  names_on_disk_ = names_;
  journal_.clear();
}

// Removes names in directories that do not exist.
void ExplorerStorage::drop_orphans() {
  std::size_t before = 0;
  do {
    before = names_.size();
    for (std::size_t i = 0; i < names_.size();) {
      if (has_parent(names_[i].path)) {
        ++i;
      } else {
        names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  } while (names_.size() != before);
}

void ExplorerStorage::become_inode(Inode& inode, const Inode& from) {
  inode.forget_history();
  inode.seen.clear();
  if (inode.mappings != 0) throw std::logic_error("a file is mapped over a power cut");
  if (inode.content == from.content) return;
  grow(inode, from.size);
  if (from.size != 0) std::memcpy(inode.bytes.get(), from.bytes.get(), from.size);
  if (from.size < inode.size) std::memset(inode.bytes.get() + from.size, 0, inode.size - from.size);
  inode.size = from.size;
  inode.content = from.content;
}

void ExplorerStorage::become(const ExplorerStorage& from, const std::vector<CutAtom>& atoms, const Cut& cut) {
  become_names(from, atoms, cut);
  while (inodes_.size() < from.inode_count_) inodes_.push_back(std::make_unique<Inode>());
  inode_count_ = from.inode_count_;
  random_ = from.random_;
  time_ = from.time_;
  allocated_ = from.allocated_;
  disk_bytes = from.disk_bytes;
  boot_ = from.boot_ + 1;
  visible_.assign(inode_count_, 0);
  for (const Name& name : names_) {
    if (name.inode < 0) continue;
    const auto index = static_cast<std::size_t>(name.inode);
    visible_[index] = 1;
    become_inode(*inodes_[index], *from.inodes_[index]);
  }
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    const CutAtom& atom = atoms[i];
    if (atom.kind == CutAtom::Kind::name || cut[i] + 1U == atom.versions || visible_[atom.file] == 0)
      continue;
    Inode& inode = *inodes_[atom.file];
    const Inode& source = *from.inodes_[atom.file];
    if (inode.content == source.content) inode.content = world_.next_content();
    if (atom.kind == CutAtom::Kind::size) {
      inode.size = std::min<std::size_t>(source.old_sizes[cut[i]].bytes, inode.capacity);
      continue;
    }
    auto old = static_cast<std::size_t>(source.sectors[atom.sector].first_old);
    for (std::uint32_t skip = cut[i]; skip != 0; --skip) {
      do ++old;
      while (source.olds[old].sector != atom.sector);
    }
    std::memcpy(inode.bytes.get() + std::size_t{atom.sector} * sector_size, source.olds[old].bytes.data(),
                sector_size);
  }
  for (std::size_t i = 0; i < inode_count_; ++i) {
    Inode& inode = *inodes_[i];
    if (visible_[i] != 0 && inode.size < inode.capacity) {
      std::memset(inode.bytes.get() + inode.size, 0, inode.capacity - inode.size);
    }
  }
}

}  // namespace lightq::test
