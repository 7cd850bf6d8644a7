/// The disk of cut_disk.hpp, a model of power cuts.
#include "powercut/cut_disk.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace lightq::test {

CutDisk::CutDisk() {
  inodes_.push_back(nullptr);
  inodes_.push_back(std::make_unique<Inode>());
  at(root).is_directory = true;
  at(root).links = 2;
}

CutDisk::Id CutDisk::find(Id directory, const std::string& name) {
  const auto& names = at(directory).names;
  const auto found = names.find(name);
  return found == names.end() ? 0 : found->second;
}

void CutDisk::change_names(Step step) {
  for (const Change& change : step) {
    auto& names = at(change.directory).names;
    const Id before = find(change.directory, change.name);
    if (before != 0) --at(before).links;
    if (change.id == 0) {
      names.erase(change.name);
    } else {
      names[change.name] = change.id;
      ++at(change.id).links;
    }
  }
  steps_.push_back(std::move(step));
}

CutDisk::Id CutDisk::make(Id directory, const std::string& name, bool is_directory) {
  const Id id = inodes_.size();
  inodes_.push_back(std::make_unique<Inode>());
  at(id).is_directory = is_directory;
  at(id).links = is_directory ? 1 : 0;
  change_names({{directory, name, id}});
  return id;
}

void CutDisk::link(Id file, Id directory, const std::string& name) {
  change_names({{directory, name, file}});
}

void CutDisk::unlink(Id directory, const std::string& name) {
  change_names({{directory, name, 0}});
}

void CutDisk::rename(Id from, const std::string& name, Id to, const std::string& new_name) {
  const Id id = find(from, name);
  if (from == to && name == new_name) return;
  change_names({{from, name, 0}, {to, new_name, id}});
}

void CutDisk::write(Id file, std::span<const std::byte> bytes, std::uint64_t position) {
  Inode& inode = at(file);
  if (position + bytes.size() > inode.bytes.size()) resize(file, position + bytes.size());
  std::copy(bytes.begin(), bytes.end(), inode.bytes.begin() + static_cast<std::ptrdiff_t>(position));
  inode.writes.push_back({position, {bytes.begin(), bytes.end()}});
}

void CutDisk::resize(Id file, std::uint64_t bytes) {
  Inode& inode = at(file);
  if (bytes < inode.bytes.size()) {
    inode.writes.push_back({bytes, std::vector<std::byte>(inode.bytes.size() - bytes)});
  }
  inode.bytes.resize(bytes);
  inode.sizes.push_back(bytes);
}

void CutDisk::sync(Id file) {
  Inode& inode = at(file);
  inode.bytes_on_disk.resize(inode.bytes.size());
  for (const Write& write : inode.writes) {
    const std::uint64_t end =
        std::min<std::uint64_t>(write.position + write.bytes.size(), inode.bytes.size());
    if (end <= write.position) continue;
    std::copy_n(inode.bytes.begin() + static_cast<std::ptrdiff_t>(write.position), end - write.position,
                inode.bytes_on_disk.begin() + static_cast<std::ptrdiff_t>(write.position));
  }
  inode.writes.clear();
  inode.sizes.clear();
}

void CutDisk::put_on_disk(const Step& step) {
  for (const Change& change : step) {
    auto& names = at(change.directory).names_on_disk;
    if (change.id == 0) {
      names.erase(change.name);
    } else {
      names[change.name] = change.id;
    }
  }
}

// Goes back from the newest step. A step that touches a synced directory also takes along the earlier steps
// in its other directory.
void CutDisk::sync_names(Id directory) {
  std::set<Id> synced{directory};
  std::vector<bool> goes(steps_.size());
  for (std::size_t i = steps_.size(); i-- > 0;) {
    goes[i] = std::any_of(steps_[i].begin(), steps_[i].end(),
                          [&](const Change& change) { return synced.count(change.directory) != 0; });
    if (!goes[i]) continue;
    for (const Change& change : steps_[i]) synced.insert(change.directory);
  }
  std::deque<Step> left;
  for (std::size_t i = 0; i < goes.size(); ++i) {
    if (goes[i]) {
      put_on_disk(steps_[i]);
    } else {
      left.push_back(std::move(steps_[i]));
    }
  }
  steps_ = std::move(left);
}

CutDisk::Cut CutDisk::cut_names(std::size_t kept) {
  Cut cut;
  cut.names = steps_.size();
  cut.names_kept = kept;
  for (std::size_t i = 0; i < kept; ++i) put_on_disk(steps_[i]);
  steps_.clear();
  return cut;
}

CutDisk::Cut CutDisk::cut_all() {
  Cut cut = cut_names(0);
  std::mt19937_64 random;
  for (const auto& inode : inodes_) {
    if (inode != nullptr && !inode->is_directory) cut_file(*inode, 0, random, cut);
  }
  return cut;
}

CutDisk::Cut CutDisk::cut_some(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto kept = std::uniform_int_distribution<std::size_t>(0, steps_.size())(random);
  Cut cut = cut_names(kept);
  constexpr double chances[] = {0.02, 0.2, 0.5, 0.8, 0.98};
  for (const auto& inode : inodes_) {
    if (inode == nullptr || inode->is_directory) continue;
    cut_file(*inode, chances[random() % std::size(chances)], random, cut);
  }
  return cut;
}

// Each sector has had some writes. On disk it has its state after one of them, or before all of them.
void CutDisk::cut_file(Inode& file, double chance, std::mt19937_64& random, Cut& cut) {
  std::map<std::uint64_t, std::vector<const Write*>> sectors;
  std::size_t longest = file.bytes_on_disk.size();
  for (const Write& write : file.writes) {
    if (write.bytes.empty()) continue;
    const std::uint64_t end = write.position + write.bytes.size();
    longest = std::max<std::size_t>(longest, end);
    for (std::uint64_t at = write.position / sector_bytes; at <= (end - 1) / sector_bytes; ++at) {
      sectors[at].push_back(&write);
    }
  }
  std::vector<std::byte> disk = std::move(file.bytes_on_disk);
  std::size_t size = disk.size();
  if (!file.sizes.empty() && std::bernoulli_distribution(chance)(random)) {
    size = file.sizes[random() % file.sizes.size()];
  }
  disk.resize(std::max(longest, size));
  for (const auto& [sector, writes] : sectors) {
    ++cut.sectors;
    if (!std::bernoulli_distribution(chance)(random)) continue;
    ++cut.sectors_kept;
    const std::size_t count = random() % 2 == 0 ? writes.size() : 1 + random() % writes.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Write& write = *writes[i];
      const std::uint64_t begin = std::max(sector * sector_bytes, write.position);
      const std::uint64_t end = std::min((sector + 1) * sector_bytes, write.position + write.bytes.size());
      std::copy_n(write.bytes.begin() + static_cast<std::ptrdiff_t>(begin - write.position), end - begin,
                  disk.begin() + static_cast<std::ptrdiff_t>(begin));
    }
  }
  disk.resize(size);
  file.bytes_on_disk = std::move(disk);
  file.writes.clear();
  file.sizes.clear();
}

void CutDisk::load(const std::string& directory) {
  load_into(root, directory);
  for (const Step& step : steps_) put_on_disk(step);
  steps_.clear();
}

void CutDisk::load_into(Id directory, const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const Id id = make(directory, entry.path().filename().string(), entry.is_directory());
    if (entry.is_directory()) {
      load_into(id, entry.path().string());
      continue;
    }
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    at(id).bytes.assign(bytes.begin(), bytes.end());
    at(id).bytes_on_disk = at(id).bytes;
  }
}

void CutDisk::store(const std::string& directory) const {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::filesystem::remove_all(entry.path());
  }
  store_from(root, directory);
}

void CutDisk::store_from(Id directory, const std::string& path) const {
  for (const auto& [name, id] : inodes_[directory]->names_on_disk) {
    const std::string to = (std::filesystem::path(path) / name).string();
    if (inodes_[id]->is_directory) {
      std::filesystem::create_directory(to);
      store_from(id, to);
      continue;
    }
    const auto& bytes = inodes_[id]->bytes_on_disk;
    std::ofstream out(to, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

}  // namespace lightq::test
