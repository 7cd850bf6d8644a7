/// A file system in memory, made for exploring: it remembers everything that a power cut may undo, and makes
/// the disk that is left if just these of its changes survived.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "log/storage.hpp"

namespace lightq::test {

/// Thrown by `ExplorerStorage::on_call` to end the process in the middle of a call.
struct ProcessKilled {};

/// Shared by all disks of one exploration: paths by number, and numbers for contents.
class ExplorerWorld {
 public:
  struct Path {
    std::string text;
    std::string name;     ///< its last part
    std::int32_t parent;  ///< -1: the root
  };
  std::int32_t id_of(const std::string& path);
  [[nodiscard]] const Path& path(std::int32_t id) const { return paths_[static_cast<std::size_t>(id)]; }
  std::uint64_t next_content() { return ++content_; }

 private:
  std::deque<Path> paths_;  // which stay where they are
  std::unordered_map<std::string, std::int32_t> ids_;
  std::uint64_t content_ = 0;
};

/// Something that a power cut may undo: it survives in one of its `versions`, the last of which is what the
/// process saw. Atoms are listed in the order in which they came about.
struct CutAtom {
  enum class Kind : std::uint8_t { sector, size, name };
  Kind kind = Kind::sector;
  std::uint32_t file = 0;    ///< which inode, or which change of names
  std::uint32_t sector = 0;  ///< of a file
  std::uint32_t versions = 0;
  std::uint64_t time = 0;
};

/// What survives, for each atom: a number below its `versions`.
using Cut = std::vector<std::uint8_t>;

/// Every file has its bytes and, for each sector written since the file's last sync, what it held before each
/// write. Changes of names are a journal; one that is synced stays, and so do those before it in the same
/// directories. A rename is in both of its directories, as a whole or not at all. A directory's own name lies
/// in its parent: who syncs only the directory may lose it. A failed sync leaves what it should have written
/// undone for good, as Linux does: a later sync that succeeds does not cover it.
///
/// Speed: a cut copies only files that differ from what the disk it is made on holds already. One thread.
class ExplorerStorage final : public log::Storage {
 public:
  static constexpr std::size_t sector_bytes = 512;
  enum class Call { write, read, allocate, sync, map, open, rename, unlink, make_directory, sync_directory };
  /// What a call is to do instead: fail with this errno; 0: go on. For a write, `short_bytes` above 0 lets at
  /// most so many bytes through.
  struct Fault {
    int error = 0;
    std::size_t short_bytes = 0;
  };

  explicit ExplorerStorage(ExplorerWorld& world);
  ~ExplorerStorage() override;

  /// Asked before every call, with its path.
  std::function<Fault(Call, const std::string&)> on_call;
  /// Called after every call that changed what a power cut may leave.
  std::function<void()> on_step;
  /// At the step of a rename: what it renames. Else empty.
  [[nodiscard]] const std::string& being_renamed() const { return being_renamed_; }
  /// What is free, less what was allocated; allocate fails beyond it.
  std::uint64_t disk_bytes = ~std::uint64_t{0} >> 1;

  /// All that may be undone now, oldest first. Also looks at files that are mapped for writing.
  const std::vector<CutAtom>& atoms();
  /// One of `atoms()` in words.
  [[nodiscard]] std::string describe(const CutAtom& atom) const;
  /// Becomes the disk that `from` leaves if it loses power now. `cut` belongs to `from.atoms()`. No file of
  /// this one may be open.
  void become(const ExplorerStorage& from, const std::vector<CutAtom>& atoms, const Cut& cut);
  /// Becomes the disk that `from` is, in the same boot: what the next process finds after a kill.
  void become_same(const ExplorerStorage& from) {
    become(from, {}, {});
    boot_ = from.boot_;
  }
  /// Declares that everything is on disk.
  void settle();

  [[nodiscard]] ExplorerWorld& world() { return world_; }
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] bool exists(const std::string& path) const;
  [[nodiscard]] std::size_t size_of(const std::string& path) const;
  /// A file's bytes, to look at or to damage; on disk, as if they had always been so.
  std::span<std::byte> bytes_of(const std::string& path);
  /// Makes the file `bytes` long, on disk at once.
  void resize(const std::string& path, std::size_t bytes);
  /// A file's bytes for storing to them directly, as a mapping does: what was stored since counts as written
  /// whenever `atoms` is called, at every step, and on sync. The file must not grow meanwhile.
  std::byte* stored_to(const std::string& path);

  Result<std::unique_ptr<log::File>> open(const std::string& path, log::OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> unlink(const std::string& path) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) override;
  std::uint64_t random() override;
  /// The same over kills, another one after each power cut.
  std::uint64_t boot_id() override { return boot_; }

  /// A look at what was stored through mappings: as `on_step` after a call.
  void look() { step(); }
  /// Ends the process: whatever `destroy` does to the files, by calls or by stores, does not happen.
  void kill(const std::function<void()>& destroy);

 private:
  friend class ExplorerFile;
  friend class ExplorerMapping;
  friend class ExplorerWritableMapping;
  struct Inode;
  struct Name {
    std::int32_t path;
    std::int32_t inode;  // `directory` for one
  };
  using Names = std::vector<Name>;
  struct NameChange {
    enum class Kind : std::uint8_t { create, rename, unlink };
    Kind kind;
    bool synced = false;
    std::int32_t path;
    std::int32_t to = -1;  // rename
    std::int32_t inode = -1;
    std::uint64_t time = 0;
  };
  static constexpr std::int32_t directory = -2;

  [[nodiscard]] Fault ask(Call call, const std::string& path) {
    if (dead_) return Fault{EIO, 0};
    return on_call ? on_call(call, path) : Fault{};
  }
  void step();
  [[nodiscard]] const Name* find_now(std::int32_t path) const;
  [[nodiscard]] bool has_parent(std::int32_t path) const;
  static void apply(Names& names, const NameChange& change);
  void change_names(NameChange change);
  [[nodiscard]] std::pair<std::int32_t, std::int32_t> directories_of(const NameChange& change) const;
  Inode& new_inode();
  void write(Inode& inode, ByteView bytes, std::uint64_t position);
  void write_sector(Inode& inode, std::uint32_t sector, const std::byte* before);
  void set_size(Inode& inode, std::uint64_t bytes);
  void grow(Inode& inode, std::uint64_t bytes);
  void note_stores(Inode& inode);
  void sync(Inode& inode, std::size_t begin = 0, std::size_t end = SIZE_MAX);
  void fail_sync(Inode& inode);
  void list_atoms(std::uint32_t index);
  void become_names(const ExplorerStorage& from, const std::vector<CutAtom>& atoms, const Cut& cut);
  void become_inode(Inode& inode, const Inode& from);
  void drop_orphans();
  [[nodiscard]] Inode& inode_at(const std::string& path) const;

  ExplorerWorld& world_;
  std::string being_renamed_;
  std::vector<std::unique_ptr<Inode>> inodes_;
  std::size_t inode_count_ = 0;  // those in use; the others are kept for their memory
  Names names_;                  // as the process sees them
  Names names_on_disk_;          // before the changes in journal_
  std::vector<NameChange> journal_;
  std::vector<CutAtom> atoms_;
  std::vector<std::uint8_t> visible_;
  std::uint64_t time_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t random_ = 0x9E3779B97F4A7C15;
  std::uint64_t boot_ = 1;
  bool dead_ = false;  // what is done is not done any more
};

}  // namespace lightq::test
