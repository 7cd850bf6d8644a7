/// A file system in memory for exploring power cuts. It remembers every change that a power cut may undo, and
/// makes the disk on which exactly a chosen set of these changes survived.
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

#include "log/storage/storage.hpp"

namespace lightq::test {

/// Thrown by `ExplorerStorage::on_call` to end the process in the middle of a call.
struct ProcessKilled {};

/// Shared by all disks of one exploration: numbers the paths, and the contents of files.
class ExplorerWorld {
 public:
  struct Path {
    std::string text;
    std::string name;     ///< the last part of the path
    std::int32_t parent;  ///< -1: the root
  };
  std::int32_t id_of(const std::string& path);
  [[nodiscard]] const Path& path(std::int32_t id) const { return paths_[static_cast<std::size_t>(id)]; }
  std::uint64_t next_content() { return ++content_; }

 private:
  std::deque<Path> paths_;  // a deque, so that references stay valid
  std::unordered_map<std::string, std::int32_t> ids_;
  std::uint64_t content_ = 0;
};

/// A change that a power cut may undo. It survives as one of its `versions`; the last version is the state
/// that the process saw. Atoms are listed from the oldest to the newest.
struct CutAtom {
  enum class Kind : std::uint8_t { sector, size, name };
  Kind kind = Kind::sector;
  std::uint32_t file = 0;    ///< the index of the inode, or of the change of a name
  std::uint32_t sector = 0;  ///< the sector of the file
  std::uint32_t versions = 0;
  std::uint64_t time = 0;
};

/// For each atom the version that survives: a number below its `versions`.
using Cut = std::vector<std::uint8_t>;

/// Keeps for every file its bytes and the history of each sector: its content before each write since the
/// file's last sync. Changes of names form a journal. A synced change is permanent, and so are the earlier
/// changes in the same directories. A rename belongs to both of its directories, and happens as a whole or
/// not at all. The name of a directory is an entry of its parent: a process that syncs only the directory may
/// lose it. A failed sync never writes its sectors, as on Linux: a later sync that succeeds does not cover
/// them.
///
/// Speed: a cut copies only the files that differ from the content of the target disk.
/// Thread: one.
class ExplorerStorage final : public log::Storage {
 public:
  static constexpr std::size_t sector_bytes = 512;
  enum class Call { write, read, allocate, sync, map, open, rename, unlink, make_directory, sync_directory };
  /// The outcome of a call: `error` is an errno to fail with, or 0 to proceed. For a write, `short_bytes`
  /// above 0 limits the bytes that are written.
  struct Fault {
    int error = 0;
    std::size_t short_bytes = 0;
  };

  explicit ExplorerStorage(ExplorerWorld& world);
  ~ExplorerStorage() override;

  /// Called before every call, with its path. Decides the outcome of the call.
  std::function<Fault(Call, const std::string&)> on_call;
  /// Called after every call that changed the possible outcomes of a power cut.
  std::function<void()> on_step;
  /// Returns the path that is renamed, during the step of a rename; otherwise an empty text.
  [[nodiscard]] const std::string& being_renamed() const { return being_renamed_; }
  /// The free bytes of the disk, less the allocated ones. Allocating more fails.
  std::uint64_t disk_bytes = ~std::uint64_t{0} >> 1;

  /// Returns all changes that a power cut may undo now, oldest first. Also finds stores to files that are
  /// mapped for writing.
  const std::vector<CutAtom>& atoms();
  /// Describes one of `atoms()` in words.
  [[nodiscard]] std::string describe(const CutAtom& atom) const;
  /// Becomes the disk that `from` leaves if it loses power now. `cut` chooses the versions of `from.atoms()`.
  /// Requires: no file of this disk is open.
  void become(const ExplorerStorage& from, const std::vector<CutAtom>& atoms, const Cut& cut);
  /// Becomes the present state of `from`, in the same boot: the disk that the next process finds after a
  /// kill.
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
  /// Returns a file's bytes, to inspect or damage them. Changes count as if they had always been on disk.
  std::span<std::byte> bytes_of(const std::string& path);
  /// Sets the file's size to `bytes`. The size is on disk at once.
  void resize(const std::string& path, std::size_t bytes);
  /// Returns a file's bytes for direct stores, like those through a mapping. Stores count as written at every
  /// call of `atoms`, every step and every sync. Requires: the file does not grow meanwhile.
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
  /// Returns a number that survives kills and changes with each power cut.
  std::uint64_t boot_id() override { return boot_; }

  /// Compares mapped files with their last known bytes, and calls `on_step` as after a call.
  void look() { step(); }
  /// Ends the process within a call: from now on no call has an effect, until `kill` destroys its objects.
  void die() { dead_ = true; }
  /// Ends the process: the calls and stores of `destroy` have no effect on the files.
  void kill(const std::function<void()>& destroy);

 private:
  friend class ExplorerFile;
  friend class ExplorerMapping;
  friend class ExplorerWritableMapping;
  struct Inode;
  struct Name {
    std::int32_t path;
    std::int32_t inode;  // `directory` for a directory
  };
  using Names = std::vector<Name>;
  struct NameChange {
    enum class Kind : std::uint8_t { create, rename, unlink };
    Kind kind;
    bool synced = false;
    std::int32_t path;
    std::int32_t to = -1;  // the new path of a rename
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
  std::size_t inode_count_ = 0;  // inodes in use; later ones are kept to reuse their memory
  Names names_;                  // as the process sees them
  Names names_on_disk_;          // without the changes in journal_
  std::vector<NameChange> journal_;
  std::vector<CutAtom> atoms_;
  std::vector<std::uint8_t> visible_;
  std::uint64_t time_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t random_ = 0x9E3779B97F4A7C15;
  std::uint64_t boot_ = 1;
  bool dead_ = false;  // the process has ended: all calls fail
};

}  // namespace lightq::test
