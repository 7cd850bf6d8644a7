/// Surveys the cursors in a log's directory. docs/log_format.md, "Cursor file" and "Cursor table". Layer:
/// tools.
#include "log/tools/cursor_survey.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/cursor_table.hpp"

namespace lightq::log {

namespace {

constexpr int looks_max = 3;  // another process may be writing the file
constexpr std::size_t at_header_crc = 60;
constexpr std::uint64_t file_bytes_max = cursor_block_position(limits::cursors_max);

/// Reads a cursor table once and collects its cursors and damage.
class TableSurvey {
 public:
  TableSurvey(std::string path, Storage& storage, std::uint64_t incarnation)
      : path_(std::move(path)), storage_(storage), incarnation_(incarnation) {}
  CursorSurvey run();

 private:
  bool read();
  void judge_first_page();
  void judge_block(std::size_t index, ByteView block);
  void judge_cursor(const DecodedCursor& decoded, std::uint64_t position, ByteView block);
  void drop_names_in_two_blocks();
  void find(Finding::Kind kind, std::uint64_t begin, std::uint64_t bytes, std::string detail);

  const std::string path_;
  Storage& storage_;
  std::uint64_t incarnation_;
  std::vector<std::byte> bytes_;
  std::optional<std::uint32_t> used_;
  CursorSurvey result_;
  std::multimap<std::string, std::uint64_t> blocks_;  // of sound cursors: name and position
};

CursorSurvey TableSurvey::run() {
  if (!read()) return std::move(result_);
  judge_first_page();
  if (incarnation_ == 0 || result_.foreign) return std::move(result_);
  const std::size_t whole = bytes_.size();
  const std::size_t beyond = whole - std::min(whole, cursor_table_header_bytes);
  const std::size_t blocks = (beyond + cursor_block_bytes - 1) / cursor_block_bytes;
  bytes_.resize(cursor_block_position(blocks));  // the queue also reads a cut-off block as zeros
  if (used_ && blocks < *used_) {
    find(Finding::Kind::cursors, whole, 0,
         path_ + " ends after " + std::to_string(blocks) + " of " + std::to_string(*used_) + " cursors");
  }
  for (std::size_t index = 0; index < blocks; ++index) {
    judge_block(index, ByteView(bytes_).subspan(cursor_block_position(index), cursor_block_bytes));
    if (result_.foreign) return std::move(result_);
  }
  drop_names_in_two_blocks();
  return std::move(result_);
}

bool TableSurvey::read() {
  const auto file = storage_.open(path_, OpenMode::read_only);
  if (!file && is_missing(file.error())) return false;
  result_.exists = true;
  Result<std::uint64_t> size = file ? (*file)->size_bytes() : file.error();
  Result<std::size_t> came = std::size_t{0};
  if (size) {
    bytes_.resize(std::min(*size, file_bytes_max));
    came = read_all(**file, bytes_, 0);
  }
  if (size && came) {
    bytes_.resize(*came);
    return true;
  }
  const Error& why = size ? came.error() : size.error();
  if (is_shortage(why)) result_.unavailable = why;
  find(Finding::Kind::cursors, 0, 0, why.text());
  return false;
}

void TableSurvey::judge_first_page() {
  const auto lost = [&](const std::string& why) {
    find(Finding::Kind::cursors, 0, cursor_table_header_bytes, path_ + ": " + why);
  };
  if (bytes_.size() < cursor_table_header_bytes) return lost("the file ends within its first page");
  CursorTableHeader header;
  const CursorTableFault fault = decode_cursor_table_header(bytes_, header);
  if (fault != CursorTableFault::none) {
    // The page of another format version has a valid checksum; a magic number with a flipped bit has not.
    const auto stored = load_little_endian<std::uint32_t>(bytes_.data() + at_header_crc);
    result_.foreign = fault == CursorTableFault::foreign && stored == crc32c({bytes_.data(), at_header_crc});
    if (!result_.foreign) return lost("the first page has a wrong checksum");
    return find(Finding::Kind::cursors, 0, cursor_table_header_bytes,
                foreign_cursor_table(path_, bytes_).message);
  }
  result_.incarnation = header.incarnation;
  if (incarnation_ == 0) incarnation_ = header.incarnation;
  if (header.incarnation != incarnation_) return lost("the table belongs to another log");
  used_ = header.used;
  if (used_) return;
  find(Finding::Kind::copy, cursor_table_used_position, cursor_table_used_bytes,
       "the number of used blocks is damaged; the blocks themselves are counted instead");
}

void TableSurvey::judge_block(std::size_t index, ByteView block) {
  const std::uint64_t position = cursor_block_position(index);
  const DecodedCursor decoded = decode_cursor_block(block, index, incarnation_);
  const bool missing = decoded.state == DecodedCursor::State::blank && used_ && index < *used_;
  if (decoded.state == DecodedCursor::State::newer) {
    result_.foreign = true;
    find(Finding::Kind::cursors, position + cursor_identity_position, cursor_identity_bytes,
         newer_cursor(path_, index).message);
  } else if (missing || decoded.state == DecodedCursor::State::damaged) {
    find(Finding::Kind::cursor, position + cursor_identity_position, cursor_identity_bytes,
         "a cursor's name is damaged");
  } else if (decoded.state == DecodedCursor::State::active) {
    judge_cursor(decoded, position, block);
  }
}

void TableSurvey::judge_cursor(const DecodedCursor& decoded, std::uint64_t position, ByteView block) {
  const std::string whose = "cursor '" + decoded.identity.name + "'";
  if (!decoded.newest) {
    find(Finding::Kind::cursor, position, cursor_identity_position, "no copy of " + whose + " is sound");
    return;
  }
  const std::string goes_on =
      " is damaged; the cursor continues at offset " + std::to_string(decoded.newest->committed.value);
  for (const std::size_t copy : decoded.bad_copies) {
    find(Finding::Kind::copy, position + copy, cursor_copy_bytes, "a copy of " + whose + goes_on);
  }
  const std::byte* delivered = block.data() + cursor_delivered_position;
  if (load_little_endian<std::uint64_t>(delivered) != ~load_little_endian<std::uint64_t>(delivered + 8)) {
    find(Finding::Kind::copy, position + cursor_delivered_position, 16,
         "the delivered offset of " + whose + " is damaged; the committed offset is used instead");
  }
  blocks_.emplace(decoded.identity.name, position);
  result_.cursors.push_back({path_,
                             decoded.identity.name,
                             decoded.newest->committed,
                             {decoded.newest->committed, {}},
                             std::max(decoded.newest->committed, decoded.delivered)});
}

// Each block is bound to its position, so only a bug or a forger can put one name into two blocks.
void TableSurvey::drop_names_in_two_blocks() {
  for (const auto& [name, position] : blocks_) {
    if (blocks_.count(name) == 1) continue;
    find(Finding::Kind::cursor, position, cursor_block_bytes, "there is a second cursor '" + name + "'");
  }
  std::erase_if(result_.cursors,
                [&](const SurveyedCursor& cursor) { return blocks_.count(cursor.name) != 1; });
}

void TableSurvey::find(Finding::Kind kind, std::uint64_t begin, std::uint64_t bytes, std::string detail) {
  result_.findings.push_back({kind, path_, begin, begin + bytes, {}, {}, std::move(detail)});
}

}  // namespace

CursorSurvey survey_cursor_files(const std::string& directory, Storage& storage) {
  const std::string path = directory + "/cursors";
  CursorFile file(storage, directory);
  CursorSurvey survey;
  for (int look = 0; look < looks_max; ++look) {
    survey.findings.clear();
    survey.unavailable.reset();
    auto loaded = file.load(UnreadableSlot::is_damaged);
    if (!loaded) {
      if (is_shortage(loaded.error())) survey.unavailable = loaded.error();
      survey.findings.push_back({Finding::Kind::cursors, path, 0, 0, {}, {}, loaded.error().text()});
      continue;
    }
    survey.cursors.clear();
    for (NamedCursor& cursor : *loaded) {
      survey.cursors.push_back({path, std::move(cursor.name), cursor.offset, std::move(cursor.unfinished)});
    }
    if (!file.passed_over()) break;
    survey.findings.push_back({Finding::Kind::torn, path, 0, 0, {}, {}, file.passed_over()->text()});
  }
  survey.exists = !survey.cursors.empty() || !survey.findings.empty();
  return survey;
}

CursorSurvey survey_cursor_table(const std::string& directory, Storage& storage, std::uint64_t incarnation) {
  const std::string path = directory + "/" + std::string(CursorTable::file_name);
  CursorSurvey survey;
  for (int look = 0; look < looks_max; ++look) {
    survey = TableSurvey(path, storage, incarnation).run();
    if (survey.sound()) break;
  }
  return survey;
}

}  // namespace lightq::log
