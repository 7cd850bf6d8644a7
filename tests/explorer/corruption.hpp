/// Damages the files of a small log in every way that has a name, and checks that the log notices.
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
  std::size_t bit_step = 1;  ///< flip one of every `bit_step` bits
};

struct CorruptionResult {
  std::uint64_t cases = 0;
  std::uint64_t detected = 0;     ///< refused, reported, or cut as a torn tail
  std::uint64_t harmless = 0;     ///< every message was still read and right: the damaged bytes have no use
  std::uint64_t passed_over = 0;  ///< sound batches that were reported lost because another one was misplaced
  std::optional<std::string> violation;
};

/// A log of three or four files with a cursor, and a similar log from which bytes are copied. All files
/// except the last are sealed. After each damage the log is opened and read, and three rules must hold. No
/// message is wrong. Every batch that was not touched is still read. Every touched batch that is not read was
/// reported or was at the end of the log. Thread: one.
class Corruption {
 public:
  explicit Corruption(const CorruptionOptions& options);

  /// Flips every bit of every segment file, including the header's page.
  CorruptionResult flip_bits();
  /// Swaps batches, overwrites them with others or with zeros, and copies them from another log.
  CorruptionResult move_batches();
  /// Does the same with sectors of 512 bytes, which may contain parts of several batches.
  CorruptionResult move_sectors();
  /// Truncates, removes and exchanges files. Copies headers and seals from other files.
  CorruptionResult spoil_files();
  /// Flips every bit of the cursor files. Zeroes and swaps their sectors.
  CorruptionResult spoil_cursors();

 private:
  struct Batch {
    std::string file;
    std::size_t position;
    std::size_t bytes;
    Offset base;
    Offset end;
    Timestamp time;
    std::uint32_t mask = 0;  // of the file
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
  // True if the damage results in another sound history, so that nothing in the files contradicts it.
  bool first_header_is_anothers_ = false;  // a log takes its identity from its first file
  std::vector<std::byte> last_file_;       // with the damage
  bool strict_ = true;                     // an untouched batch may not be lost, even if its loss is reported
};

}  // namespace lightq::test
