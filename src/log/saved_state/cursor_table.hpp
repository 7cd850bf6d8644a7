/// The named cursors of an embedded queue in one mapped file, so that a commit is a few stores to memory.
/// Layer: log. docs/log_format.md, "Cursor table", has the bytes and the reason for four copies of each
/// cursor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/saved_state/table_cursor.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// A cursor and its current position.
struct ListedCursor {
  std::string name;
  Offset committed;
  Offset delivered;  ///< >= committed
};

/// A cursor that has lost its position.
struct DamagedCursor {
  std::string name;  ///< empty if the name is lost too
  Error error;       ///< corrupt, with file and position
};

/// The file `cursors.table` of a log's directory, open for writing. Requires: only one process has it open at
/// a time; the caller ensures that. Thread: any. Calls that change the table and `flush` wait for each other;
/// all others never wait for the disk. Errors: io_error and no_space as of File. After a failed sync the
/// system may have dropped unwritten pages. Calls that write therefore return that error until the table is
/// opened again.
class CursorTable {
 public:
  static constexpr std::string_view file_name = "cursors.table";

  /// Opens the table in `directory`. `incarnation` is that of the log. Lifetime: the storage must outlive the
  /// table. Errors: io_error, for which is_missing() is true if there is no table; foreign_format; corrupt
  /// for damage to the whole file (`damaged` lists the damage of single cursors).
  static Result<std::unique_ptr<CursorTable>> open(Storage& storage, const std::string& directory,
                                                   std::uint64_t incarnation);
  /// Returns foreign_format if a newer version wrote the table. Only reads. Call it before opening the
  /// table's log, because opening may change the log.
  static Result<void> check_known(Storage& storage, const std::string& directory);
  /// Creates an empty table, completely or not at all. The table is durable when this returns. Errors:
  /// invalid_argument if there is a table already.
  static Result<std::unique_ptr<CursorTable>> make(Storage& storage, const std::string& directory,
                                                   std::uint64_t incarnation);

  /// Returns the cursor of this name, or null if there is none. Lifetime: the cursor lives as long as the
  /// table. Errors: corrupt if the cursor's position is lost, or if the name of any damaged cursor is lost,
  /// which may be this one.
  Result<TableCursor*> find(std::string_view name);
  /// Creates a cursor at offset `committed`; its name has 1 to 128 bytes. The cursor is durable when this
  /// returns. Errors: invalid_argument (bad name, or the cursor exists); limit_reached (limits::cursors_max);
  /// those of `find`.
  Result<TableCursor*> create(std::string_view name, Offset committed);
  /// Removes a cursor, also one whose position is lost. Durable when this returns. Requires: no thread uses
  /// the cursor any more. Errors: invalid_argument (there is no such cursor).
  Result<void> remove(std::string_view name);
  /// Returns all cursors that are not damaged, in no particular order.
  [[nodiscard]] std::vector<ListedCursor> list() const;

  /// Makes everything committed before the call durable, with one sync, or with none if nothing has changed.
  /// Other threads may commit meanwhile. Does not make the delivered offsets durable.
  Result<void> flush();
  /// Sets cursors that are past `next_offset` to it, because a power cut removed messages that they had read.
  /// Returns the names of those whose committed offset changed. Requires: no other thread commits meanwhile.
  std::vector<std::string> clamp(Offset next_offset);

  /// Returns the cursors that were damaged when the table was opened and have not been removed since.
  [[nodiscard]] std::vector<DamagedCursor> damaged() const;
  /// Removes all damaged cursors, so that cursors of their names can be created again. Durable when this
  /// returns.
  Result<void> forget_damaged();
  /// Returns one error, with file and position, for each damaged part that opening could ignore, for example
  /// a copy torn by a power cut. The affected cursors have kept their positions.
  [[nodiscard]] const std::vector<Error>& passed_over() const { return passed_over_; }

 private:
  struct Block {
    enum class State { blank, unused, active, damaged };
    State state = State::blank;
    CursorIdentity identity;
    std::unique_ptr<TableCursor> cursor;
    std::uint64_t durable_sequence = 0;
    std::size_t durable_slot = 1;  // slot of the newest durable copy; the next one goes into the other
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
  std::vector<std::unique_ptr<WritableMapping>> mappings_;  // of the same file; the last covers it all
  std::size_t used_ = 0;                                    // all blocks that ever had a cursor lie before it
  bool used_written_ = true;                                // used_ equals the number in the file
  bool settled_ = false;                                    // the earlier process's bytes are on disk
  std::optional<Error> failure_;                            // the error of a failed sync, if one has failed
  std::vector<Error> passed_over_;
  std::mutex changes_;  // locked during disk writes; lock it before blocks_mutex_
  mutable std::mutex blocks_mutex_;
  std::vector<Block> blocks_;  // to change it, lock both mutexes; to read it, either
};

}  // namespace lightq::log
