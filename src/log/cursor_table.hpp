/// The named cursors of an embedded queue, in one mapped file: a commit is a few stores to memory. Layer:
/// log. Byte by byte, and why there are four copies: docs/log_format.md, "Cursor table".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/storage.hpp"
#include "log/table_cursor.hpp"

namespace lightq::log {

/// A cursor as it stands now.
struct ListedCursor {
  std::string name;
  Offset committed;
  Offset delivered;  ///< >= committed
};

/// A cursor whose place is lost.
struct DamagedCursor {
  std::string name;  ///< empty: that cannot be read either
  Error error;       ///< corrupt; file and position
};

/// The file `cursors.table` of a log's directory, open for writing: by one process at a time, which the
/// caller sees to. Any thread; calls that change the table or flush wait for each other, the others wait for
/// no disk. Errors: io_error and no_space as of File; after a failed sync all of them, until the table is
/// opened again (the system may have dropped what it could not write).
class CursorTable {
 public:
  static constexpr std::string_view file_name = "cursors.table";

  /// The table in `directory`. `incarnation`: the log's. Errors: io_error, is_missing() where there is no
  /// table; foreign_format; corrupt (the file as a whole; a cursor's damage: `damaged`). The storage must
  /// outlive it.
  static Result<std::unique_ptr<CursorTable>> open(Storage& storage, const std::string& directory,
                                                   std::uint64_t incarnation);
  /// Fails, with foreign_format, if there is a table that a newer version wrote. Reads only: to be asked
  /// before its log is opened, which may change that.
  static Result<void> check_known(Storage& storage, const std::string& directory);
  /// Makes an empty table where there is none: as a whole, or not at all. Durable when it returns.
  static Result<std::unique_ptr<CursorTable>> make(Storage& storage, const std::string& directory,
                                                   std::uint64_t incarnation);

  /// The cursor of this name, or null if there is none; valid as long as the table. Errors: corrupt: its
  /// place is lost, or that of a cursor whose name is lost too, which may be this one.
  Result<TableCursor*> find(std::string_view name);
  /// A new cursor (1 to 128 bytes of name) that stands at `committed`. Durable when it returns. Errors:
  /// invalid_argument (the name; there is one already), limit_reached (limits::cursors_max), as find.
  Result<TableCursor*> create(std::string_view name, Offset committed);
  /// Forgets a cursor, also one whose place is lost; nobody may use it any more. Durable when it returns.
  /// Errors: invalid_argument (there is none).
  Result<void> remove(std::string_view name);
  /// In no particular order; without the damaged ones.
  [[nodiscard]] std::vector<ListedCursor> list() const;

  /// Makes what has been committed so far durable; commits may go on meanwhile. One sync, or none if nothing
  /// has changed. What is delivered is not waited for.
  Result<void> flush();
  /// Commits `next_offset` for all cursors that stand past it, because a power cut took what they had read;
  /// their names. Nobody else may commit meanwhile.
  std::vector<std::string> clamp(Offset next_offset);

  /// What was found damaged when the table was opened and is so still.
  [[nodiscard]] std::vector<DamagedCursor> damaged() const;
  /// Gives up the damaged ones, so that cursors of their names can be made anew. Durable when it returns.
  Result<void> forget_damaged();
  /// What opening would not believe although the cursor's place is known: copies torn by a power cut, for
  /// example. A sentence each, with file and position.
  [[nodiscard]] const std::vector<Error>& passed_over() const { return passed_over_; }

 private:
  struct Block {
    enum class State { blank, unused, active, damaged };
    State state = State::blank;
    CursorIdentity identity;
    std::unique_ptr<TableCursor> cursor;
    std::uint64_t durable_sequence = 0;
    std::size_t durable_slot = 1;  // the newest durable copy's: the next one goes into the other
    std::optional<Error> damage;
  };

  CursorTable(Storage& storage, const std::string& directory, std::uint64_t incarnation);
  Result<void> load();
  Result<void> check_first_page(ByteView file);
  void take_in(std::size_t index, ByteView bytes);
  void refuse_names_in_two_blocks();
  Error damage_at(std::uint64_t position, const std::string& what) const;

  [[nodiscard]] Block* block_of(std::string_view name);
  [[nodiscard]] std::size_t free_block() const;
  Result<void> map_blocks(std::size_t blocks);
  Result<void> write_cursor(std::size_t index, const CursorIdentity& identity, const CursorCopy& first);
  Result<void> write_identity(std::size_t index, const CursorIdentity& identity);
  void put_back(std::size_t index);
  Result<void> write_used(std::size_t used);
  Result<void> write_durable(std::size_t index, std::size_t slot, const CursorCopy& copy);
  Result<void> settle();
  Result<void> settle_block(std::size_t index);
  Result<void> write_again(std::uint64_t position, std::size_t bytes);
  Result<void> sync();
  Result<void> free_blocks(const std::vector<std::size_t>& indices);

  Storage& storage_;
  std::string directory_;
  std::string path_;
  std::uint64_t incarnation_;
  std::unique_ptr<File> file_;
  std::vector<std::unique_ptr<WritableMapping>> mappings_;  // of the same bytes; the last one sees them all
  std::size_t used_ = 0;                                    // blocks before it have had a cursor
  bool used_written_ = true;                                // the file says so
  bool settled_ = false;                                    // what an earlier process left is on disk
  std::optional<Error> failure_;                            // of a sync
  std::vector<Error> passed_over_;
  std::mutex changes_;  // held over disk work; taken before blocks_mutex_
  mutable std::mutex blocks_mutex_;
  std::vector<Block> blocks_;  // changed under both, read under either
};

}  // namespace lightq::log
