/// Opens, changes and syncs the named cursors of an embedded queue. docs/log_format.md, "Cursor table".
/// Layer: log.
#include "log/saved_state/cursor_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

namespace lightq::log {

namespace {

constexpr std::size_t blocks_at_first = 8;  // the number doubles each time the table grows
constexpr std::uint64_t file_bytes_max = cursor_block_position(limits::cursors_max);

Error no_such_cursor(std::string_view name, const std::string& path) {
  return {ErrorCode::invalid_argument, "there is no cursor '" + std::string(name) + "' in " + path, 0};
}

}  // namespace

CursorTable::CursorTable(Storage& storage, const std::string& directory, std::uint64_t incarnation)
    : storage_(storage),
      directory_(directory),
      path_(directory + "/" + std::string(file_name)),
      incarnation_(incarnation) {}

// --- Opening -----------------------------------------------------------------------------------------------

Result<std::unique_ptr<CursorTable>> CursorTable::open(Storage& storage, const std::string& directory,
                                                       std::uint64_t incarnation) {
  std::unique_ptr<CursorTable> table(new CursorTable(storage, directory, incarnation));
  if (auto loaded = table->load(); !loaded) return loaded.error();
  return table;
}

// Reports only a newer format. `open` reports all other errors.
Result<void> CursorTable::check_known(Storage& storage, const std::string& directory) {
  const std::string path = directory + "/" + std::string(file_name);
  const auto file = storage.open(path, OpenMode::read_only);
  const auto size = file ? (*file)->size_bytes() : file.error();
  if (!size) return {};
  std::vector<std::byte> bytes(std::min(*size, file_bytes_max));
  const auto came = read_all(**file, bytes, 0);
  if (!came || *came < cursor_table_header_bytes) return {};
  bytes.resize(*came);
  CursorTableHeader header;
  const CursorTableFault fault = decode_cursor_table_header(bytes, header);
  if (fault == CursorTableFault::foreign) return foreign_cursor_table(path, bytes);
  if (fault != CursorTableFault::none) return {};
  const auto newer = newer_cursor_in(path, bytes, header.incarnation);
  return newer ? *newer : Result<void>{};
}

Result<std::unique_ptr<CursorTable>> CursorTable::make(Storage& storage, const std::string& directory,
                                                       std::uint64_t incarnation) {
  const std::string path = directory + "/" + std::string(file_name);
  const auto there = storage.open(path, OpenMode::read_only);
  if (there) return Error{ErrorCode::invalid_argument, path + " exists already", 0};
  if (!is_missing(there.error())) return there.error();
  if (auto made = storage.make_directory(directory); !made) return made.error();
  const std::string unfinished = path + ".new";
  const auto page = encode_cursor_table_header(incarnation);
  {
    const auto file = storage.open(unfinished, OpenMode::create);
    if (!file) return file.error();
    auto done = (*file)->allocate(cursor_block_position(blocks_at_first));
    if (done) done = write_all(**file, page, 0);
    if (done) done = (*file)->sync();
    if (!done) return done.error();
  }
  if (auto named = storage.rename(unfinished, path); !named) return named.error();
  if (auto synced = storage.sync_directory(directory); !synced) return synced.error();
  auto table = open(storage, directory, incarnation);
  if (table) (*table)->settled_ = true;
  return table;
}

Error CursorTable::damage_at(std::uint64_t position, const std::string& what) const {
  return {ErrorCode::corrupt, path_ + " at position " + std::to_string(position) + ": " + what, 0};
}

Result<void> CursorTable::load() {
  auto file = storage_.open(path_, OpenMode::read_write);
  if (!file) return file.error();
  file_ = std::move(*file);
  const auto size = file_->size_bytes();
  if (!size) return size.error();
  std::vector<std::byte> bytes(std::min(*size, file_bytes_max));
  const auto came = read_all(*file_, bytes, 0);
  if (!came) return came.error();
  bytes.resize(*came);
  if (auto sound = check_first_page(bytes); !sound) return sound;
  // A block that is cut off counts as if zeros followed: it reads like that once the file has its full
  // length.
  if (const auto newer = newer_cursor_in(path_, bytes, incarnation_)) return *newer;
  const std::size_t blocks =
      (bytes.size() - cursor_table_header_bytes + cursor_block_bytes - 1) / cursor_block_bytes;
  bytes.resize(cursor_block_position(blocks));
  if (blocks < used_) {
    return damage_at(bytes.size(), "the file ends after " + std::to_string(blocks) + " of " +
                                       std::to_string(used_) + " cursors");
  }
  if (auto mapped = map_blocks(std::max(blocks, blocks_at_first)); !mapped) return mapped;
  for (std::size_t index = 0; index < blocks; ++index) {
    take_in(index, ByteView(bytes).subspan(cursor_block_position(index), cursor_block_bytes));
  }
  refuse_names_in_two_blocks();
  return {};
}

Result<void> CursorTable::check_first_page(ByteView file) {
  if (file.size() < cursor_table_header_bytes) {
    return damage_at(file.size(), "the file ends within its first page");
  }
  CursorTableHeader header;
  switch (decode_cursor_table_header(file, header)) {
    case CursorTableFault::none: break;
    case CursorTableFault::foreign: return foreign_cursor_table(path_, file);
    case CursorTableFault::damaged: return damage_at(0, "the first page has a wrong checksum");
  }
  if (header.incarnation != incarnation_) {
    return damage_at(0, "the table belongs to another log: its incarnation is " +
                            std::to_string(header.incarnation) + ", the log's " +
                            std::to_string(incarnation_));
  }
  used_ = header.used.value_or(0);
  used_written_ = header.used.has_value();
  if (!used_written_) {
    passed_over_.push_back(damage_at(cursor_table_used_position, "the number of used blocks is damaged"));
  }
  return {};
}

void CursorTable::take_in(std::size_t index, ByteView bytes) {
  Block& block = blocks_[index];
  const std::uint64_t position = cursor_block_position(index);
  DecodedCursor decoded = decode_cursor_block(bytes, index, incarnation_);
  block.identity = std::move(decoded.identity);
  switch (decoded.state) {
    case DecodedCursor::State::blank: block.state = Block::State::blank; break;
    case DecodedCursor::State::unused: block.state = Block::State::unused; break;
    case DecodedCursor::State::active: block.state = Block::State::active; break;
    case DecodedCursor::State::newer:  // load() has refused these already
    case DecodedCursor::State::damaged: block.state = Block::State::damaged; break;
  }
  if (block.state == Block::State::damaged || (block.state == Block::State::blank && index < used_)) {
    block.state = Block::State::damaged;
    block.damage = damage_at(position + cursor_identity_position, "a cursor's name is damaged");
  }
  if (!used_written_ && block.state != Block::State::blank) used_ = index + 1;
  if (block.state != Block::State::active) return;
  const std::string whose = "cursor '" + block.identity.name + "'";
  if (!decoded.newest) {
    block.state = Block::State::damaged;
    block.damage = damage_at(position, "no copy of " + whose + " is sound");
    return;
  }
  for (const std::size_t copy : decoded.bad_copies) {
    passed_over_.push_back(damage_at(position + copy, "a copy of " + whose +
                                                          " is damaged; the cursor continues at offset " +
                                                          std::to_string(decoded.newest->committed.value)));
  }
  if (decoded.durable) {
    block.durable_sequence = decoded.durable->sequence;
    block.durable_slot = decoded.durable_slot;
  }
  block.cursor->begin(mappings_.back()->data() + position,
                      cursor_copy_seed(block.identity, index, incarnation_), block.identity.name,
                      *decoded.newest, decoded.delivered);
}

// Each block is bound to its position, so only a bug or a forger can put one name into two blocks.
void CursorTable::refuse_names_in_two_blocks() {
  std::map<std::string_view, std::size_t> known;
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    Block& block = blocks_[index];
    if (!block.identity.active) continue;
    const auto [other, is_new] = known.emplace(block.identity.name, index);
    if (is_new) continue;
    for (Block* twin : {&block, &blocks_[other->second]}) {
      twin->state = Block::State::damaged;
      twin->damage =
          damage_at(cursor_block_position(index), "there is a second cursor '" + block.identity.name + "'");
    }
  }
}

Result<void> CursorTable::map_blocks(std::size_t blocks) {
  const std::uint64_t bytes = cursor_block_position(blocks);
  if (auto allocated = file_->allocate(bytes); !allocated) return allocated;
  auto mapping = file_->map_writable(bytes);
  if (!mapping) return mapping.error();
  const std::lock_guard lock(blocks_mutex_);
  mappings_.push_back(std::move(*mapping));
  while (blocks_.size() < blocks) {
    blocks_.emplace_back();
    blocks_.back().cursor = std::make_unique<TableCursor>();
  }
  return {};
}

// --- Looking up --------------------------------------------------------------------------------------------

CursorTable::Block* CursorTable::block_of(std::string_view name) {
  for (Block& block : blocks_) {
    if (block.identity.active && block.identity.name == name) return &block;
  }
  return nullptr;
}

Result<TableCursor*> CursorTable::find(std::string_view name) {
  const std::lock_guard lock(blocks_mutex_);
  if (const Block* block = block_of(name)) {
    if (block->damage) return *block->damage;
    return block->cursor.get();
  }
  for (const Block& block : blocks_) {
    if (block.damage && block.identity.name.empty()) return *block.damage;
  }
  return nullptr;
}

std::vector<ListedCursor> CursorTable::list() const {
  const std::lock_guard lock(blocks_mutex_);
  std::vector<ListedCursor> cursors;
  for (const Block& block : blocks_) {
    if (block.state != Block::State::active) continue;
    const Offset delivered = block.cursor->delivered();
    const Offset committed = block.cursor->committed();
    cursors.push_back({block.identity.name, committed, std::max(committed, delivered)});
  }
  return cursors;
}

std::vector<DamagedCursor> CursorTable::damaged() const {
  const std::lock_guard lock(blocks_mutex_);
  std::vector<DamagedCursor> found;
  for (const Block& block : blocks_) {
    if (block.damage) found.push_back({block.identity.name, *block.damage});
  }
  return found;
}

// --- Changing ----------------------------------------------------------------------------------------------

std::size_t CursorTable::free_block() const {
  const auto found = std::find_if(blocks_.begin(), blocks_.end(), [](const Block& block) {
    return block.state == Block::State::blank || block.state == Block::State::unused;
  });
  return static_cast<std::size_t>(found - blocks_.begin());
}

Result<TableCursor*> CursorTable::create(std::string_view name, Offset committed) {
  if (name.empty() || name.size() > limits::cursor_name_bytes_max) {
    return Error{ErrorCode::invalid_argument, "a cursor's name has 1 to 128 bytes", 0};
  }
  const std::lock_guard changes(changes_);
  const auto known = find(name);
  if (!known) return known.error();
  if (*known != nullptr) {
    return Error{ErrorCode::invalid_argument, "there is a cursor '" + std::string(name) + "' already", 0};
  }
  if (auto settled = settle(); !settled) return settled.error();
  const std::size_t index = free_block();
  if (index == limits::cursors_max) {
    return Error{ErrorCode::limit_reached,
                 path_ + " has the maximum of " + std::to_string(index) + " cursors", 0};
  }
  if (index == blocks_.size()) {
    if (auto grown = map_blocks(std::min(2 * index, limits::cursors_max)); !grown) return grown.error();
  }
  const CursorIdentity identity{true, blocks_[index].identity.generation + 1, std::string(name)};
  const CursorCopy first{1, committed};
  if (auto written = write_cursor(index, identity, first); !written) return written.error();
  const std::lock_guard lock(blocks_mutex_);
  Block& block = blocks_[index];
  block.state = Block::State::active;
  block.identity = identity;
  block.durable_sequence = first.sequence;
  block.durable_slot = 0;
  block.cursor->begin(mappings_.back()->data() + cursor_block_position(index),
                      cursor_copy_seed(identity, index, incarnation_), identity.name, first, committed);
  return block.cursor.get();
}

// Syncs the copies before it writes the name, so that a recovery never finds a name without a position.
Result<void> CursorTable::write_cursor(std::size_t index, const CursorIdentity& identity,
                                       const CursorCopy& first) {
  const auto copies = encode_new_cursor(first, cursor_copy_seed(identity, index, incarnation_));
  if (auto written = write_all(*file_, copies, cursor_block_position(index)); !written) return written;
  const CursorIdentity unused{false, identity.generation, {}};
  if (blocks_[index].state == Block::State::blank) {
    if (auto written = write_identity(index, unused); !written) return written;
    const std::lock_guard lock(blocks_mutex_);
    blocks_[index].state = Block::State::unused;
  }
  if (auto synced = sync(); !synced) return synced;
  if (auto written = write_used(std::max(used_, index + 1)); !written) return written;
  if (auto written = write_identity(index, identity); !written) return written;
  auto synced = sync();
  if (!synced) put_back(index);  // creation failed here, so the next process must not find the cursor either
  return synced;
}

// If the write fails half way, the block must not look like a damaged cursor at the next open. put_back()
// restores the earlier bytes through the mapping, where no call can fail.
Result<void> CursorTable::write_identity(std::size_t index, const CursorIdentity& identity) {
  const std::uint64_t position = cursor_block_position(index) + cursor_identity_position;
  const auto bytes = encode_cursor_identity(identity, index, incarnation_);
  auto written = write_all(*file_, bytes, position);
  if (!written) put_back(index);
  return written;
}

void CursorTable::put_back(std::size_t index) {
  std::array<std::byte, cursor_identity_bytes> before{};
  if (blocks_[index].state != Block::State::blank) {
    before = encode_cursor_identity(blocks_[index].identity, index, incarnation_);
  }
  std::memcpy(mappings_.back()->data() + cursor_block_position(index) + cursor_identity_position,
              before.data(), before.size());
}

Result<void> CursorTable::write_used(std::size_t used) {
  if (used == used_ && used_written_) return {};
  used_written_ = false;
  const auto bytes = encode_cursor_table_used(static_cast<std::uint32_t>(used), incarnation_);
  if (auto written = write_all(*file_, bytes, cursor_table_used_position); !written) return written;
  used_ = used;
  used_written_ = true;
  return {};
}

Result<void> CursorTable::remove(std::string_view name) {
  const std::lock_guard changes(changes_);
  std::vector<std::size_t> indices;
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    if (blocks_[index].identity.active && blocks_[index].identity.name == name) indices.push_back(index);
  }
  if (indices.empty()) return no_such_cursor(name, path_);
  return free_blocks(indices);
}

Result<void> CursorTable::forget_damaged() {
  const std::lock_guard changes(changes_);
  std::vector<std::size_t> indices;
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    if (blocks_[index].damage) indices.push_back(index);
  }
  if (indices.empty()) return {};
  return free_blocks(indices);
}

Result<void> CursorTable::free_blocks(const std::vector<std::size_t>& indices) {
  if (auto settled = settle(); !settled) return settled;
  for (const std::size_t index : indices) {
    const CursorIdentity unused{false, blocks_[index].identity.generation, {}};
    if (auto written = write_identity(index, unused); !written) return written;
  }
  if (auto synced = sync(); !synced) {
    // In this process they still are cursors, so they must be cursors for the next process too.
    for (const std::size_t index : indices) put_back(index);
    return synced;
  }
  const std::lock_guard lock(blocks_mutex_);
  for (const std::size_t index : indices) {
    Block& block = blocks_[index];
    block.state = Block::State::unused;
    block.identity = {false, block.identity.generation, {}};
    block.damage.reset();
  }
  return {};
}

// --- Making durable ----------------------------------------------------------------------------------------

Result<void> CursorTable::sync() {
  auto synced = file_->sync();
  if (!synced) failure_ = synced.error();
  return synced;
}

Result<void> CursorTable::write_durable(std::size_t index, std::size_t slot, const CursorCopy& copy) {
  const auto bytes = encode_cursor_copy(copy, cursor_copy_seed(blocks_[index].identity, index, incarnation_));
  return write_all(*file_, bytes,
                   cursor_block_position(index) + cursor_durable_position + slot * cursor_durable_stride);
}

// Makes the bytes that load() found durable, because the process that wrote them may have ended before its
// sync. This must happen before a write over the copy that would otherwise count, and before anything relies
// on a name. The bytes are written again first: after a failed sync the system may take their page for clean.
Result<void> CursorTable::settle() {
  if (failure_) return *failure_;
  if (settled_) return {};
  if (used_written_) {
    if (auto again = write_again(cursor_table_used_position, cursor_table_used_bytes); !again) return again;
  }
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    if (auto again = settle_block(index); !again) return again;
  }
  const auto directory = storage_.open_directory(directory_);
  if (!directory) return directory.error();  // nothing was synced yet, so no data is lost
  if (auto synced = sync(); !synced) return synced;
  auto named = (*directory)->sync();
  if (!named) failure_ = named.error();
  settled_ = named.ok();
  return named;
}

Result<void> CursorTable::settle_block(std::size_t index) {
  const Block& block = blocks_[index];
  const bool sound = block.state == Block::State::active || block.state == Block::State::unused;
  if (!sound) return {};
  const std::uint64_t begin = cursor_block_position(index);
  const std::uint64_t copy = begin + cursor_durable_position + block.durable_slot * cursor_durable_stride;
  if (block.state == Block::State::active && block.durable_sequence != 0) {
    if (auto again = write_again(copy, cursor_copy_bytes); !again) return again;
  }
  return write_again(begin + cursor_identity_position, cursor_identity_bytes);
}

Result<void> CursorTable::write_again(std::uint64_t position, std::size_t bytes) {
  return write_all(*file_, {mappings_.back()->data() + position, bytes}, position);
}

Result<void> CursorTable::flush() {
  const std::lock_guard changes(changes_);
  if (auto settled = settle(); !settled) return settled;
  std::vector<std::pair<std::size_t, std::uint64_t>> written_copies;  // block, sequence
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    const Block& block = blocks_[index];
    if (block.state != Block::State::active) continue;
    const CursorCopy last = block.cursor->last();
    if (last.sequence == block.durable_sequence) continue;
    if (auto written = write_durable(index, 1 - block.durable_slot, last); !written) return written;
    written_copies.emplace_back(index, last.sequence);
  }
  if (written_copies.empty()) return {};
  if (auto synced = sync(); !synced) return synced;
  for (const auto& [index, sequence] : written_copies) {
    blocks_[index].durable_sequence = sequence;
    blocks_[index].durable_slot = 1 - blocks_[index].durable_slot;
  }
  return {};
}

std::vector<std::string> CursorTable::clamp(Offset next_offset) {
  const std::lock_guard lock(blocks_mutex_);
  std::vector<std::string> names;
  for (Block& block : blocks_) {
    if (block.state != Block::State::active) continue;
    TableCursor& cursor = *block.cursor;
    if (next_offset < cursor.committed()) {
      names.push_back(block.identity.name);
      cursor.commit(next_offset);
    }
    if (next_offset < cursor.delivered()) cursor.note_delivered(next_offset);
  }
  return names;
}

}  // namespace lightq::log
