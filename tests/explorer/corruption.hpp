/// Damages the files of a small log in every way there is a name for, and looks whether it is noticed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "explorer/log_client.hpp"

namespace lightq::test {

struct CorruptionOptions {
  std::size_t messages = 24;
  std::size_t bit_step = 1;  ///< flip only every so many bits
};

struct CorruptionResult {
  std::uint64_t cases = 0;
  std::uint64_t detected = 0;     ///< refused, reported, or cut as a torn tail
  std::uint64_t harmless = 0;     ///< every message was still read, and right: bytes that nothing depends on
  std::uint64_t passed_over = 0;  ///< sound batches that were reported lost, for one in a wrong place
  std::optional<std::string> violation;
};

/// A log of three or four files, all but the last sealed, and a cursor; and another log like it to splice
/// from. After each damage the log is opened and read. It must hold then: no message is wrong; what was not
/// touched is still read; what was touched and is not read was reported, or was the end of the log. One
/// thread.
class Corruption {
 public:
  explicit Corruption(const CorruptionOptions& options);

  /// Every bit of every segment file, the header's page included.
  CorruptionResult flip_bits();
  /// Batches swapped, written over others, zeroed, and taken from another log.
  CorruptionResult move_batches();
  /// The same with sectors of 512 bytes, whichever batches they cut through.
  CorruptionResult move_sectors();
  /// Files cut short, removed, exchanged; headers and seals of other files.
  CorruptionResult spoil_files();
  /// Every bit of the cursor's files, and their sectors zeroed and swapped.
  CorruptionResult spoil_cursors();

 private:
  struct Batch {
    std::string file;
    std::size_t position;
    std::size_t bytes;
    Offset base;
    Offset end;
    Timestamp time;
    std::uint32_t mask = 0;  // of its file
  };
  struct Base {
    explicit Base(ExplorerWorld& world, Payloads& payloads) : disk(world), client(disk, payloads) {}
    ExplorerStorage disk;
    LogClient client;
    std::vector<std::string> files;
    std::vector<Batch> batches;
  };
  struct Touched {
    std::string file;
    std::size_t begin;
    std::size_t end;
  };

  void make(Base& base, std::uint64_t lead);
  static void list_batches(Base& base);
  ExplorerStorage& fresh();
  void touch(const std::string& file, std::size_t begin, std::size_t end) {
    touched_.push_back({file, begin, end});
  }
  void write(const std::string& file, std::size_t at, const std::vector<std::byte>& bytes);
  static std::vector<std::byte> bytes_of(Base& base, const std::string& file, std::size_t at,
                                         std::size_t bytes);
  void judge(const std::string& what, CorruptionResult& result);
  [[nodiscard]] std::set<std::uint64_t> read_all(const std::string& what, CorruptionResult& result);
  void judge_batches(const std::set<std::uint64_t>& found, const std::string& what, CorruptionResult& result);
  void append_and_reopen(const std::string& what, CorruptionResult& result);
  void judge_cursor(const std::string& what, CorruptionResult& result);
  void look_at_damage();
  [[nodiscard]] bool ends_quietly(const Batch& batch) const;
  [[nodiscard]] bool is_touched(const std::string& file, std::size_t begin, std::size_t end) const;

  CorruptionOptions options_;
  ExplorerWorld world_;
  Payloads payloads_;
  Base base_{world_, payloads_};
  Base other_{world_, payloads_};
  ExplorerStorage scratch_{world_};
  LogClient reader_{scratch_, payloads_};
  std::vector<Touched> touched_;
  // Damage that amounts to another sound history, which nothing in the files speaks against.
  bool first_header_is_anothers_ = false;  // the log's identity is then that of its first file
  std::vector<std::byte> last_file_;       // as it was damaged
  bool strict_ = true;                     // nothing that was not touched may be lost, not even with a report
};

}  // namespace lightq::test
