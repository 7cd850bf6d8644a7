/// A disk in memory that knows what a power cut may undo: the model behind the file system of cut_mount.cpp.
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

/// Every file has the bytes that processes see and those that are on disk, with all writes in between; names
/// are on disk once their directory was synced, and so are the changes before them in the same directories. A
/// rename is in both of its directories, as a whole or not at all. A directory's own name lies in its parent:
/// who syncs only the directory may lose it with everything in it. One thread.
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
    std::map<std::string, Id> names;  ///< a directory's, as processes see them
    std::map<std::string, Id> names_on_disk;
    std::vector<std::byte> bytes;  ///< a file's, as processes see them
    std::vector<std::byte> bytes_on_disk;
    std::vector<Write> writes;         ///< since the last sync
    std::vector<std::uint64_t> sizes;  ///< that it has had since the last sync
  };
  /// What a cut left of what was not synced.
  struct Cut {
    std::size_t sectors = 0, sectors_kept = 0;  ///< a sector counts as kept if any write to it survived
    std::size_t names = 0, names_kept = 0;
  };

  CutDisk();

  /// The inode behind a number that a call below gave out; never moves.
  Inode& at(Id id) { return *inodes_[id]; }
  /// What `name` is in a directory; 0: nothing.
  Id find(Id directory, const std::string& name);
  Id make(Id directory, const std::string& name, bool is_directory);
  void link(Id file, Id directory, const std::string& name);
  void unlink(Id directory, const std::string& name);
  /// Replaces what had the new name.
  void rename(Id from, const std::string& name, Id to, const std::string& new_name);
  void write(Id file, std::span<const std::byte> bytes, std::uint64_t position);
  /// What lies past the old end is zero.
  void resize(Id file, std::uint64_t bytes);

  /// fsync of a file: its bytes and size are on disk, its names not.
  void sync(Id file);
  /// fsync of a directory.
  void sync_names(Id directory);

  /// The power fails. Of everything that was not synced nothing survives; with a seed, a random choice does:
  /// for each sector any number of its writes, any size a file has had, and a prefix of the changes of names.
  Cut cut_all();
  Cut cut_some(std::uint64_t seed);

  /// What is on disk, from or to a directory of another file system.
  void load(const std::string& directory);
  void store(const std::string& directory) const;

 private:
  struct Change {  // of one name; id 0: gone
    Id directory;
    std::string name;
    Id id;
  };
  using Step = std::vector<Change>;  // which survive together

  void change_names(Step step);
  void put_on_disk(const Step& step);
  Cut cut_names(std::size_t kept);
  void cut_file(Inode& file, double chance, std::mt19937_64& random, Cut& cut);
  void load_into(Id directory, const std::string& path);
  void store_from(Id directory, const std::string& path) const;

  std::vector<std::unique_ptr<Inode>> inodes_;
  std::deque<Step> steps_;  // not on disk
};

}  // namespace lightq::test
