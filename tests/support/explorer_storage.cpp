/// A file system in memory for exploring every state that a power cut may leave.
#include "support/explorer_storage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "support/explorer_inode.hpp"

namespace lightq::test {

namespace {

Error fault(int error, const std::string& what) {
  return {error == ENOSPC ? ErrorCode::no_space : ErrorCode::io_error, what, error};
}

}  // namespace

std::int32_t ExplorerWorld::id_of(const std::string& path) {
  const auto found = ids_.find(path);
  if (found != ids_.end()) return found->second;
  const std::size_t slash = path.find_last_of('/');
  const std::int32_t parent = slash == 0 || slash == std::string::npos ? -1 : id_of(path.substr(0, slash));
  const auto id = static_cast<std::int32_t>(paths_.size());
  paths_.push_back({path, path.substr(slash + 1), parent});
  ids_.emplace(path, id);
  return id;
}

class ExplorerMapping final : public log::Mapping {
 public:
  ExplorerMapping(ExplorerStorage::Inode& inode, std::size_t size) : inode_(inode), size_(size) {
    ++inode_.mappings;
  }
  ~ExplorerMapping() override { --inode_.mappings; }
  [[nodiscard]] const std::byte* data() const override { return inode_.bytes.get(); }
  [[nodiscard]] std::size_t size() const override { return size_; }

 private:
  ExplorerStorage::Inode& inode_;
  std::size_t size_;
};

// Stores count as written from the next comparison on: at every step, and when the atoms are listed.
class ExplorerWritableMapping final : public log::WritableMapping {
 public:
  ExplorerWritableMapping(ExplorerStorage& storage, ExplorerStorage::Inode& inode, std::size_t size)
      : storage_(storage), inode_(inode), size_(size) {
    ++inode_.mappings;
    if (inode_.seen.empty()) inode_.seen.assign(inode_.bytes.get(), inode_.bytes.get() + inode_.size);
  }
  ~ExplorerWritableMapping() override {
    if (!storage_.dead_) storage_.note_stores(inode_);
    --inode_.mappings;
  }
  [[nodiscard]] std::byte* data() override { return inode_.bytes.get(); }
  [[nodiscard]] std::size_t size() const override { return size_; }

 private:
  ExplorerStorage& storage_;
  ExplorerStorage::Inode& inode_;
  std::size_t size_;
};

class ExplorerFile final : public log::File {
 public:
  using Call = ExplorerStorage::Call;
  ExplorerFile(ExplorerStorage& storage, const std::string& path, ExplorerStorage::Inode& inode)
      : storage_(storage), path_(path), inode_(inode) {}

  Result<std::size_t> write_some(ByteView bytes, std::uint64_t position) override {
    const auto told = storage_.ask(Call::write, path_);
    if (told.error != 0) return fault(told.error, "told to fail a write to " + path_);
    if (told.short_bytes != 0) bytes = bytes.first(std::min(bytes.size(), told.short_bytes));
    storage_.write(inode_, bytes, position);
    storage_.step();
    return bytes.size();
  }

  // Syncs only the written bytes, and the size that they need.
  Result<void> write_synced(ByteView bytes, std::uint64_t position) override {
    if (auto written = log::write_all(*this, bytes, position); !written) return written;
    if (const auto told = storage_.ask(Call::sync, path_); told.error != 0) {
      if (!storage_.dead_) storage_.fail_sync(inode_);
      return fault(told.error, "told to fail a sync of " + path_);
    }
    storage_.sync(inode_, position, position + bytes.size());
    storage_.step();
    return {};
  }

  Result<std::size_t> read_some(std::span<std::byte> to, std::uint64_t position) override {
    if (const auto told = storage_.ask(Call::read, path_); told.error != 0) {
      return fault(told.error, "told to fail a read of " + path_);
    }
    if (position >= inode_.size) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(to.size(), inode_.size - position);
    if (count != 0) std::memcpy(to.data(), inode_.bytes.get() + position, count);
    return count;
  }

  Result<void> allocate(std::uint64_t bytes) override {
    if (const auto told = storage_.ask(Call::allocate, path_); told.error != 0) {
      return fault(told.error, "told to fail to allocate " + path_);
    }
    if (bytes <= inode_.size) return {};
    if (storage_.allocated_ + bytes - inode_.size > storage_.disk_bytes) {
      return fault(ENOSPC, "no room for " + path_);
    }
    storage_.set_size(inode_, bytes);
    storage_.step();
    return {};
  }

  Result<void> sync() override {
    if (const auto told = storage_.ask(Call::sync, path_); told.error != 0) {
      if (!storage_.dead_) storage_.fail_sync(inode_);
      return fault(told.error, "told to fail a sync of " + path_);
    }
    storage_.sync(inode_);
    storage_.step();
    return {};
  }

  Result<std::uint64_t> size_bytes() override { return std::uint64_t{inode_.size}; }

  Result<std::unique_ptr<log::Mapping>> map(std::size_t bytes) override {
    if (const auto told = storage_.ask(Call::map, path_); told.error != 0 || bytes == 0) {
      return fault(told.error == 0 ? EINVAL : told.error, "told to fail to map " + path_);
    }
    if (bytes > inode_.size) throw std::logic_error("mapped past the end of " + path_);
    return std::unique_ptr<log::Mapping>(std::make_unique<ExplorerMapping>(inode_, bytes));
  }
  Result<std::unique_ptr<log::WritableMapping>> map_writable(std::size_t bytes) override {
    if (const auto told = storage_.ask(Call::map, path_); told.error != 0 || bytes == 0) {
      return fault(told.error == 0 ? EINVAL : told.error, "told to fail to map " + path_);
    }
    if (bytes > inode_.size) throw std::logic_error("mapped past the end of " + path_);
    return std::unique_ptr<log::WritableMapping>(
        std::make_unique<ExplorerWritableMapping>(storage_, inode_, bytes));
  }

 private:
  ExplorerStorage& storage_;
  const std::string& path_;  // owned by the ExplorerWorld
  ExplorerStorage::Inode& inode_;
};

ExplorerStorage::ExplorerStorage(ExplorerWorld& world) : world_(world) {}
ExplorerStorage::~ExplorerStorage() = default;

void ExplorerStorage::step() {
  if (on_step && !dead_) on_step();
}

void ExplorerStorage::kill(const std::function<void()>& destroy) {
  std::vector<std::pair<Inode*, std::vector<std::byte>>> stored_to;
  for (std::size_t i = 0; i < inode_count_; ++i) {
    Inode& inode = *inodes_[i];
    if (!inode.seen.empty())
      stored_to.emplace_back(&inode, std::vector(inode.bytes.get(), inode.bytes.get() + inode.size));
  }
  dead_ = true;
  destroy();
  dead_ = false;
  for (const auto& [inode, bytes] : stored_to) {
    std::copy(bytes.begin(), bytes.end(), inode->bytes.get());
    note_stores(*inode);
  }
}

// --- Names ---

const ExplorerStorage::Name* ExplorerStorage::find_now(std::int32_t path) const {
  const auto found =
      std::find_if(names_.begin(), names_.end(), [&](const Name& name) { return name.path == path; });
  return found == names_.end() ? nullptr : &*found;
}

bool ExplorerStorage::has_parent(std::int32_t path) const {
  const std::int32_t parent = world_.path(path).parent;
  return parent == -1 || find_now(parent) != nullptr;
}

void ExplorerStorage::apply(Names& names, const NameChange& change) {
  const auto erase = [&](std::int32_t path) {
    std::erase_if(names, [&](const Name& name) { return name.path == path; });
  };
  if (change.kind != NameChange::Kind::create) erase(change.path);
  if (change.kind == NameChange::Kind::unlink) return;
  const std::int32_t place = change.kind == NameChange::Kind::rename ? change.to : change.path;
  erase(place);
  names.push_back({place, change.inode});
}

void ExplorerStorage::change_names(NameChange change) {
  change.time = ++time_;
  apply(names_, change);
  journal_.push_back(change);
  step();
}

std::pair<std::int32_t, std::int32_t> ExplorerStorage::directories_of(const NameChange& change) const {
  const std::int32_t first = world_.path(change.path).parent;
  return {first, change.to == -1 ? first : world_.path(change.to).parent};
}

Result<std::unique_ptr<log::File>> ExplorerStorage::open(const std::string& path, log::OpenMode mode) {
  if (const auto told = ask(Call::open, path); told.error != 0) {
    return fault(told.error, "told to fail to open " + path);
  }
  const std::int32_t id = world_.id_of(path);
  const Name* name = find_now(id);
  const bool create = mode == log::OpenMode::create;
  if (name == nullptr && (!create || !has_parent(id))) return fault(ENOENT, "no such file: " + path);
  if (name != nullptr && name->inode == directory) return fault(EISDIR, path + " is a directory");
  Inode* inode = nullptr;
  if (name == nullptr) {
    inode = &new_inode();
    change_names({NameChange::Kind::create, false, id, -1, static_cast<std::int32_t>(inode_count_ - 1), 0});
  } else {
    inode = inodes_[static_cast<std::size_t>(name->inode)].get();
    if (create && inode->size != 0 && !dead_) {
      set_size(*inode, 0);
      step();
    }
  }
  return std::unique_ptr<log::File>(std::make_unique<ExplorerFile>(*this, world_.path(id).text, *inode));
}

Result<void> ExplorerStorage::make_directory(const std::string& path) {
  const std::int32_t id = world_.id_of(path);
  if (find_now(id) != nullptr) return {};
  if (const auto told = ask(Call::make_directory, path); told.error != 0) {
    return fault(told.error, "told to fail to make " + path);
  }
  const std::int32_t parent = world_.path(id).parent;
  if (parent != -1) {
    if (auto made = make_directory(world_.path(parent).text); !made) return made;
  }
  change_names({NameChange::Kind::create, false, id, -1, directory, 0});
  return {};
}

Result<void> ExplorerStorage::rename(const std::string& from, const std::string& to) {
  if (const auto told = ask(Call::rename, from); told.error != 0) {
    return fault(told.error, "told to fail a rename of " + from);
  }
  const std::int32_t id = world_.id_of(from);
  const std::int32_t place = world_.id_of(to);
  const Name* name = find_now(id);
  if (name == nullptr || !has_parent(place)) return fault(ENOENT, "no such file: " + from + " or " + to);
  being_renamed_ = from;
  change_names({NameChange::Kind::rename, false, id, place, name->inode, 0});
  being_renamed_.clear();
  return {};
}

Result<void> ExplorerStorage::unlink(const std::string& path) {
  if (const auto told = ask(Call::unlink, path); told.error != 0) {
    return fault(told.error, "told to fail to unlink " + path);
  }
  const std::int32_t id = world_.id_of(path);
  const Name* name = find_now(id);
  if (name == nullptr) return fault(ENOENT, "no such file: " + path);
  change_names({NameChange::Kind::unlink, false, id, -1, name->inode, 0});
  return {};
}

Result<void> ExplorerStorage::remove_directory(const std::string& path) {
  const std::int32_t id = world_.id_of(path);
  const bool used = std::any_of(names_.begin(), names_.end(),
                                [&](const Name& name) { return world_.path(name.path).parent == id; });
  if (used) return fault(ENOTEMPTY, path + " is not empty");
  return unlink(path);
}

// Syncing a change also syncs all earlier changes in the same directories, on which it depends.
Result<void> ExplorerStorage::sync_directory(const std::string& path) {
  if (const auto told = ask(Call::sync_directory, path); told.error != 0) {
    return fault(told.error, "told to fail a sync of " + path);
  }
  const std::int32_t id = world_.id_of(path);
  const bool is_root = path == "/";
  if (!is_root && find_now(id) == nullptr) return fault(ENOENT, "no such directory: " + path);
  std::vector<std::int32_t> synced = {is_root ? -1 : id};
  const auto contains = [&](std::int32_t parent) {
    return std::find(synced.begin(), synced.end(), parent) != synced.end();
  };
  for (auto change = journal_.rbegin(); change != journal_.rend(); ++change) {
    const auto [first, second] = directories_of(*change);
    if (!change->synced && !contains(first) && !contains(second)) continue;
    change->synced = true;
    synced.push_back(first);
    synced.push_back(second);
  }
  std::size_t done = 0;
  while (done < journal_.size() && journal_[done].synced) apply(names_on_disk_, journal_[done++]);
  journal_.erase(journal_.begin(), journal_.begin() + static_cast<std::ptrdiff_t>(done));
  step();
  return {};
}

Result<std::vector<std::string>> ExplorerStorage::list(const std::string& path) {
  const std::int32_t id = world_.id_of(path);
  if (path != "/" && find_now(id) == nullptr) return fault(ENOENT, "no such directory: " + path);
  std::vector<std::string> found;
  for (const Name& name : names_) {
    if (world_.path(name.path).parent == id) found.push_back(world_.path(name.path).name);
  }
  return found;
}

Result<std::uint64_t> ExplorerStorage::free_bytes(const std::string& /*path*/) {
  return disk_bytes - std::min(disk_bytes, allocated_);
}

std::uint64_t ExplorerStorage::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

// --- Inspection ---

ExplorerStorage::Inode& ExplorerStorage::inode_at(const std::string& path) const {
  const Name* name = find_now(world_.id_of(path));
  if (name == nullptr || name->inode == directory) throw std::logic_error("no such file: " + path);
  return *inodes_[static_cast<std::size_t>(name->inode)];
}

std::vector<std::string> ExplorerStorage::paths() const {
  std::vector<std::string> all;
  for (const Name& name : names_) {
    if (name.inode != directory) all.push_back(world_.path(name.path).text);
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool ExplorerStorage::exists(const std::string& path) const {
  return find_now(world_.id_of(path)) != nullptr;
}

std::size_t ExplorerStorage::size_of(const std::string& path) const {
  return inode_at(path).size;
}

std::span<std::byte> ExplorerStorage::bytes_of(const std::string& path) {
  Inode& inode = inode_at(path);
  inode.content = world_.next_content();
  return {inode.bytes.get(), inode.size};
}

void ExplorerStorage::resize(const std::string& path, std::size_t bytes) {
  Inode& inode = inode_at(path);
  set_size(inode, bytes);
  inode.forget_history();
}

std::byte* ExplorerStorage::stored_to(const std::string& path) {
  Inode& inode = inode_at(path);
  if (inode.seen.empty()) inode.seen.assign(inode.bytes.get(), inode.bytes.get() + inode.size);
  return inode.bytes.get();
}

}  // namespace lightq::test
