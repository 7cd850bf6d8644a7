/// A file system in memory that fails when a test asks for it.
#include "support/faulty_storage.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace lightq::test {

namespace {

Error fault(int error, const std::string& what) {
  return {error == ENOSPC ? ErrorCode::no_space : ErrorCode::io_error, what, error};
}

std::string directory_of(const std::string& path) {
  return path.substr(0, path.find_last_of('/'));
}

}  // namespace

class FaultyMapping final : public log::Mapping {
 public:
  FaultyMapping(const std::byte* data, std::size_t size, std::function<void()> unmap)
      : data_(data), size_(size), unmap_(std::move(unmap)) {}
  ~FaultyMapping() override { unmap_(); }
  [[nodiscard]] const std::byte* data() const override { return data_; }
  [[nodiscard]] std::size_t size() const override { return size_; }

 private:
  const std::byte* data_;
  std::size_t size_;
  std::function<void()> unmap_;
};

class FaultyWritableMapping final : public log::WritableMapping {
 public:
  FaultyWritableMapping(std::byte* data, std::size_t size, std::function<void()> unmap)
      : data_(data), size_(size), unmap_(std::move(unmap)) {}
  ~FaultyWritableMapping() override { unmap_(); }
  [[nodiscard]] std::byte* data() override { return data_; }
  [[nodiscard]] std::size_t size() const override { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
  std::function<void()> unmap_;
};

class FaultyFile final : public log::File {
 public:
  using Call = FaultyStorage::Call;
  FaultyFile(FaultyStorage& storage, std::string path, std::shared_ptr<FaultyStorage::Node> node)
      : storage_(storage), path_(std::move(path)), node_(std::move(node)) {}

  Result<std::size_t> write_some(ByteView bytes, std::uint64_t position) override {
    const auto told = storage_.ask(Call::write, path_);
    const std::lock_guard lock(storage_.mutex_);
    if (told.error != 0 && told.short_bytes == 0)
      return fault(told.error, "told to fail a write to " + path_);
    if (told.short_bytes != 0) bytes = bytes.first(std::min(bytes.size(), told.short_bytes));
    if (position + bytes.size() > node_->bytes.size()) resize(position + bytes.size());
    std::copy(bytes.begin(), bytes.end(), node_->bytes.begin() + static_cast<std::ptrdiff_t>(position));
    for (std::size_t sector = position / FaultyStorage::sector_bytes;
         sector * FaultyStorage::sector_bytes < position + bytes.size(); ++sector) {
      node_->dirty_sectors.insert(sector);
    }
    if (storage_.on_write) storage_.on_write(path_, position, bytes.size());
    return bytes.size();
  }

  Result<std::size_t> read_some(std::span<std::byte> to, std::uint64_t position) override {
    if (const auto told = storage_.ask(Call::read, path_); told.error != 0) {
      return fault(told.error, "told to fail a read of " + path_);
    }
    if (storage_.on_read && storage_.on_read(path_, position, to.size()))
      return fault(EIO, "a bad sector of " + path_);
    const std::lock_guard lock(storage_.mutex_);
    if (position >= node_->bytes.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(to.size(), node_->bytes.size() - position);
    if (count != 0) std::memcpy(to.data(), node_->bytes.data() + position, count);
    return count;
  }

  Result<void> allocate(std::uint64_t bytes) override {
    if (const auto told = storage_.ask(Call::allocate, path_); told.error != 0) {
      return fault(told.error, "told to fail to allocate " + path_);
    }
    const std::lock_guard lock(storage_.mutex_);
    if (bytes <= node_->bytes.size()) return {};
    if (storage_.used_bytes() + bytes - node_->bytes.size() > storage_.disk_bytes) {
      return fault(ENOSPC, "no room for " + path_);
    }
    resize(bytes);
    return {};
  }

  // Syncs only the sectors that it has written.
  Result<void> write_synced(ByteView bytes, std::uint64_t position) override {
    if (auto written = log::write_all(*this, bytes, position); !written) return written;
    if (const auto told = storage_.ask(Call::sync, path_); told.error != 0) {
      return fault(told.error, "told to fail a sync of " + path_);
    }
    const std::lock_guard lock(storage_.mutex_);
    FaultyStorage::sync_range(*node_, position, position + bytes.size());
    return {};
  }

  bool release_descriptor(const std::string& path) override {
    const std::lock_guard lock(storage_.mutex_);
    if (storage_.may_release_descriptors && !storage_.may_release_descriptors(path)) return false;
    storage_.released.insert(path);
    return true;
  }

  Result<void> sync() override {
    if (const auto told = storage_.ask(Call::sync, path_); told.error != 0) {
      return fault(told.error, "told to fail a sync of " + path_);
    }
    const std::lock_guard lock(storage_.mutex_);
    node_->on_disk = node_->bytes;
    node_->dirty_sectors.clear();
    return {};
  }

  Result<std::uint64_t> size_bytes() override {
    const std::lock_guard lock(storage_.mutex_);
    return std::uint64_t{node_->bytes.size()};
  }

  Result<std::unique_ptr<log::Mapping>> map(std::size_t bytes) override {
    if (const auto told = storage_.ask(Call::map, path_); told.error != 0 || bytes == 0) {
      return fault(told.error == 0 ? EINVAL : told.error, "told to fail to map " + path_);
    }
    const std::lock_guard lock(storage_.mutex_);
    if (bytes > node_->bytes.size()) throw std::logic_error("mapped past the end of " + path_);
    ++node_->mappings;
    return std::unique_ptr<log::Mapping>(
        std::make_unique<FaultyMapping>(node_->bytes.data(), bytes, [node = node_] { --node->mappings; }));
  }

  Result<std::unique_ptr<log::WritableMapping>> map_writable(std::size_t bytes) override {
    if (const auto told = storage_.ask(Call::map, path_); told.error != 0 || bytes == 0) {
      return fault(told.error == 0 ? EINVAL : told.error, "told to fail to map " + path_);
    }
    const std::lock_guard lock(storage_.mutex_);
    if (bytes > node_->bytes.size()) throw std::logic_error("mapped past the end of " + path_);
    if (node_->mappings == 0) node_->bytes.reserve(bytes + FaultyStorage::grows_mapped_bytes);
    ++node_->mappings;
    node_->stored_to = true;
    return std::unique_ptr<log::WritableMapping>(std::make_unique<FaultyWritableMapping>(
        node_->bytes.data(), bytes, [node = node_] { --node->mappings; }));
  }

 private:
  void resize(std::size_t bytes) {
    if (node_->mappings != 0 && bytes > node_->bytes.capacity()) {
      throw std::logic_error("grew a mapped file too far: " + path_);
    }
    node_->bytes.resize(bytes);
  }
  FaultyStorage& storage_;
  std::string path_;
  std::shared_ptr<FaultyStorage::Node> node_;
};

FaultyStorage::Fault FaultyStorage::ask(Call call, const std::string& path) {
  return on_call ? on_call(call, path) : Fault{};
}

std::uint64_t FaultyStorage::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [path, node] : names_) bytes += node->bytes.size();
  return bytes;
}

Result<std::unique_ptr<log::File>> FaultyStorage::open(const std::string& path, log::OpenMode mode) {
  if (const auto told = ask(Call::open, path); told.error != 0)
    return fault(told.error, "told to fail to open " + path);
  const std::lock_guard lock(mutex_);
  auto& node = names_[path];
  if (mode == log::OpenMode::create) {
    node = std::make_shared<Node>();
  } else if (node == nullptr) {
    names_.erase(path);
    return fault(ENOENT, "no such file: " + path);
  }
  return std::unique_ptr<log::File>(std::make_unique<FaultyFile>(*this, path, node));
}

Result<void> FaultyStorage::make_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  made_directories_.insert(path);
  return {};
}
Result<void> FaultyStorage::remove_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  made_directories_.erase(path);
  return {};
}

// A rename is one transaction, as in a journaling file system: it is on disk as a whole or not at all.
Result<void> FaultyStorage::rename(const std::string& from, const std::string& to) {
  if (const auto told = ask(Call::rename, from); told.error != 0)
    return fault(told.error, "told to fail a rename of " + from);
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(from);
  if (found == names_.end()) return rename_directory(from, to);
  const auto node = found->second;
  names_.erase(found);
  names_[to] = node;
  return {};
}

namespace {

/// Moves every path below `from` to the same place below `to`. Returns true if there was any.
bool move_below(auto& names, const std::string& from, const std::string& to) {
  std::vector<std::string> moving;
  for (const auto& [path, node] : names) {
    if (path.starts_with(from + "/")) moving.push_back(path);
  }
  for (const std::string& path : moving) {
    names[to + path.substr(from.size())] = names[path];
    names.erase(path);
  }
  return !moving.empty();
}

}  // namespace

// The rename is on disk after the next sync of the target's directory. Requires: the caller locks mutex_.
Result<void> FaultyStorage::rename_directory(const std::string& from, const std::string& to) {
  if (!move_below(names_, from, to) && !made_directories_.contains(from))
    return fault(ENOENT, "no such file: " + from);
  if (made_directories_.erase(from) != 0) made_directories_.insert(to);
  renamed_directories_.emplace_back(from, to);
  return {};
}

Result<void> FaultyStorage::unlink(const std::string& path) {
  if (const auto told = ask(Call::unlink, path); told.error != 0)
    return fault(told.error, "told to fail to unlink " + path);
  const std::lock_guard lock(mutex_);
  if (names_.erase(path) == 0) return fault(ENOENT, "no such file: " + path);
  return {};
}

Result<void> FaultyStorage::link(const std::string& from, const std::string& to) {
  if (const auto told = ask(Call::link, from); told.error != 0)
    return fault(told.error, "told to fail a link of " + from);
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(from);
  if (found == names_.end()) return fault(ENOENT, "no such file: " + from);
  if (names_.contains(to)) return fault(EEXIST, "there is a file already: " + to);
  names_[to] = found->second;
  return {};
}

Result<std::uint64_t> FaultyStorage::link_count(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) return fault(ENOENT, "no such file: " + path);
  std::uint64_t links = 0;
  for (const auto& [name, node] : names_) links += node == found->second ? 1 : 0;
  return links;
}

Result<std::unique_ptr<log::Directory>> FaultyStorage::open_directory(const std::string& path) {
  if (const auto told = ask(Call::open, path); told.error != 0)
    return fault(told.error, "told to fail to open the directory " + path);
  return log::Storage::open_directory(path);
}

Result<void> FaultyStorage::sync_directory(const std::string& path) {
  if (const auto told = ask(Call::sync_directory, path); told.error != 0)
    return fault(told.error, "told to fail a sync of " + path);
  const std::lock_guard lock(mutex_);
  for (const auto& [from, to] : renamed_directories_) {
    if (directory_of(to) == path) move_below(names_on_disk_, from, to);
  }
  std::erase_if(renamed_directories_,
                [&](const auto& renamed) { return directory_of(renamed.second) == path; });
  std::set<std::shared_ptr<Node>>
      moved;  // files that came to this directory: in the same transaction they left their old one
  for (const auto& [name, node] : names_) {
    if (directory_of(name) == path) moved.insert(node);
  }
  std::erase_if(names_on_disk_, [&](const auto& entry) {
    const auto now = names_.find(entry.first);
    // False for the first name of a linked file.
    const bool has_left = now == names_.end() || now->second != entry.second;
    return directory_of(entry.first) == path || (has_left && moved.contains(entry.second));
  });
  for (const auto& [name, node] : names_) {
    if (directory_of(name) == path) names_on_disk_[name] = node;
  }
  return {};
}

Result<std::vector<std::string>> FaultyStorage::list(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const std::string below = path + "/";
  std::set<std::string> found;
  bool is_there = made_directories_.contains(path);
  const auto note = [&](const std::string& name) {
    if (!name.starts_with(below)) return;
    found.insert(name.substr(below.size(), name.find('/', below.size()) - below.size()));
    is_there = true;
  };
  for (const auto& [name, node] : names_) note(name);
  for (const std::string& name : made_directories_) note(name);
  if (!is_there) return fault(ENOENT, "no such directory: " + path);
  return std::vector<std::string>(found.begin(), found.end());
}

Result<std::uint64_t> FaultyStorage::free_bytes(const std::string& /*path*/) {
  const std::lock_guard lock(mutex_);
  return disk_bytes - std::min(disk_bytes, used_bytes());
}

std::uint64_t FaultyStorage::random() {
  const std::lock_guard lock(mutex_);
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

// Marks the sectors that stores through a mapping have changed as dirty.
void FaultyStorage::note_stores(Node& node) {
  if (!node.stored_to) return;
  for (std::size_t begin = 0; begin < node.bytes.size(); begin += sector_bytes) {
    const std::size_t end = std::min(begin + sector_bytes, node.bytes.size());
    const bool same = end <= node.on_disk.size() &&
                      std::memcmp(node.bytes.data() + begin, node.on_disk.data() + begin, end - begin) == 0;
    if (!same) node.dirty_sectors.insert(begin / sector_bytes);
  }
}

void FaultyStorage::sync_range(Node& node, std::size_t begin, std::size_t end) {
  begin = begin / sector_bytes * sector_bytes;
  end = std::min((end + sector_bytes - 1) / sector_bytes * sector_bytes, node.bytes.size());
  if (node.on_disk.size() < end) node.on_disk.resize(end);
  std::copy(node.bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            node.bytes.begin() + static_cast<std::ptrdiff_t>(end),
            node.on_disk.begin() + static_cast<std::ptrdiff_t>(begin));
  for (std::size_t at = begin; at < end; at += sector_bytes) node.dirty_sectors.erase(at / sector_bytes);
}

std::vector<std::byte> FaultyStorage::surviving_bytes(Node& node, const std::function<bool()>& survives) {
  note_stores(node);
  std::vector<std::byte> after = node.on_disk;
  after.resize(node.bytes.size());
  for (const std::size_t sector : node.dirty_sectors) {
    if (!survives()) continue;
    const auto begin = static_cast<std::ptrdiff_t>(sector * sector_bytes);
    const auto end = static_cast<std::ptrdiff_t>(std::min((sector + 1) * sector_bytes, node.bytes.size()));
    std::copy(node.bytes.begin() + begin, node.bytes.begin() + end, after.begin() + begin);
  }
  return after;
}

void FaultyStorage::write_back(const std::function<bool()>& chosen) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, node] : names_) node->on_disk = surviving_bytes(*node, chosen);
}

void FaultyStorage::power_cut(const std::function<bool()>& survives) {
  const std::lock_guard lock(mutex_);
  ++boot_;
  if (!survives()) names_ = names_on_disk_;
  names_on_disk_ = names_;
  renamed_directories_.clear();
  for (const auto& [name, node] : names_) {
    const std::vector<std::byte> after = surviving_bytes(*node, survives);
    node->bytes = after;
    node->on_disk = after;
    node->dirty_sectors.clear();
    node->stored_to = false;
  }
}

std::vector<std::byte>& FaultyStorage::bytes_of(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return names_.at(path)->bytes;
}

bool FaultyStorage::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return names_.contains(path);
}

std::vector<std::string> FaultyStorage::paths() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, node] : names_) all.push_back(name);
  return all;
}

}  // namespace lightq::test
