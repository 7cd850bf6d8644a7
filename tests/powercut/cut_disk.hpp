/// A disk in memory that models the effects of a power cut. The file system of cut_mount.cpp uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lightq::test {

/// A disk with files and directories. Every file has the bytes that processes see, the bytes that are on
/// disk, and all writes in between. Names are on disk once their directory is synced, together with all
/// earlier changes in the same directories. A rename changes both of its directories, and survives as a whole
/// or not at all. A directory's own name lies in its parent: a sync of the directory alone does not save the
/// directory. Thread: one.
class CutDisk {
 public:
  using Id = std::uint64_t;
  static constexpr Id root = 1;
  static constexpr std::size_t sector_bytes = 512;

  struct Write {
    std::uint64_t position;
    std::vector<std::byte> bytes;
  };
  struct Inode {
    bool is_directory = false;
    std::uint32_t links = 0;
    std::map<std::string, Id> names;  ///< of a directory, as processes see them
    std::map<std::string, Id> names_on_disk;
    std::vector<std::byte> bytes;  ///< of a file, as processes see them
    std::vector<std::byte> bytes_on_disk;
    std::vector<Write> writes;         ///< since the last sync
    std::vector<std::uint64_t> sizes;  ///< that the file has had since the last sync
  };
  /// How much unsynced data a cut kept.
  struct Cut {
    std::size_t sectors = 0, sectors_kept = 0;  ///< a sector counts as kept if any write to it survived
    std::size_t names = 0, names_kept = 0;
  };

  CutDisk();

  /// Returns the inode with a number that an earlier call returned. Lifetime: the inode never moves.
  Inode& at(Id id) { return *inodes_[id]; }
  /// Returns the inode of `name` in a directory. 0 means that there is none.
  Id find(Id directory, const std::string& name);
  Id make(Id directory, const std::string& name, bool is_directory);
  void link(Id file, Id directory, const std::string& name);
  void unlink(Id directory, const std::string& name);
  /// Replaces the inode that had the new name.
  void rename(Id from, const std::string& name, Id to, const std::string& new_name);
  void write(Id file, std::span<const std::byte> bytes, std::uint64_t position);
  /// Changes the size. Bytes past the old end become zero.
  void resize(Id file, std::uint64_t bytes);

  /// Does the fsync of a file: its bytes and size are then on disk, its names are not.
  void sync(Id file);
  /// Does the fsync of a directory.
  void sync_names(Id directory);

  /// Cuts the power. With cut_all nothing unsynced survives. With cut_some a random choice survives: for
  /// each sector any number of its first writes, for each file any size that it has had, and any number of
  /// the first name changes.
  Cut cut_all();
  Cut cut_some(std::uint64_t seed);

  /// Loads the disk from a directory of another file system, or stores the content of the disk there.
  void load(const std::string& directory);
  void store(const std::string& directory) const;

 private:
  struct Change {  // of one name; id 0 removes it
    Id directory;
    std::string name;
    Id id;
  };
  using Step = std::vector<Change>;  // these changes survive together or not at all

  void change_names(Step step);
  void put_on_disk(const Step& step);
  Cut cut_names(std::size_t kept);
  void cut_file(Inode& file, double chance, std::mt19937_64& random, Cut& cut);
  void load_into(Id directory, const std::string& path);
  void store_from(Id directory, const std::string& path) const;

  std::vector<std::unique_ptr<Inode>> inodes_;
  std::deque<Step> steps_;  // not on disk yet
};

}  // namespace lightq::test
