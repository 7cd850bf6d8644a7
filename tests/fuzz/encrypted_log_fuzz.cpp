/// Fuzz target: an encrypted segment file. Its batches have any content but were encrypted with the right
/// key, or are any bytes. The log may return only batches that pass their checks, and must return the message
/// that was appended. With another key the log does not open, and the file does not change. If the first byte
/// is odd, the input is a file of keys instead.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/storage_keys.hpp"
#include "log/segment_log/segment_log.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"

namespace {

using namespace lightq;

constexpr std::uint64_t incarnation = 1;
constexpr std::uint32_t epoch = 7;

void require(bool condition) {
  if (!condition) std::abort();
}

void read_keys(std::string_view text) {
  const auto keys = rest::StorageKeys::parse(text, "fuzz");
  if (!keys) return;
  require((*keys)->size() != 0 && (*keys)->size() <= limits::storage_keys_max);
  const auto cipher = (*keys)->of(incarnation);
  require(cipher->knows(cipher->key_id()) && cipher->key_id() != 0);
}

/// Takes a batch from the input and encrypts it. The batch is as long as its header states, or as the input
/// is. Its magic, version, length, offset and epoch are corrected first. Returns the bytes used.
std::size_t add_batch(std::vector<std::byte>& file, ByteView input, Offset base, log::BatchCipher& cipher) {
  const std::size_t said = load_little_endian<std::uint16_t>(input.data() + batch_layout::total_bytes);
  const std::size_t bytes = std::min(input.size(), std::max(said, batch_layout::header_bytes));
  std::vector<std::byte> batch(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(bytes));
  const bool mended = std::to_integer<int>(batch[0]) % 2 == 0;
  store_little_endian(batch.data(), batch_layout::magic_value);
  store_little_endian(batch.data() + batch_layout::version, batch_layout::version_value);
  store_little_endian(batch.data() + batch_layout::total_bytes, static_cast<std::uint32_t>(bytes));
  if (mended) store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
  stamp_batch(batch, base, Timestamp{1}, epoch);
  const std::size_t at = file.size();
  file.resize(at + bytes + encrypted_layout::more_bytes);
  cipher.encrypt(BatchView::trusted(batch.data()), std::span(file).subspan(at));
  return bytes;
}

/// Returns a segment file. If `lost`, its key id is unknown, as after a repair that did not find it.
std::vector<std::byte> made_of(ByteView input, bool encrypt, bool lost, const rest::StorageKeys& keys) {
  const auto cipher = keys.of(incarnation);
  std::vector<std::byte> file(log::segment_header_bytes);
  Offset base;
  while (encrypt && input.size() >= batch_layout::header_bytes) {
    const std::size_t at = file.size();
    input = input.subspan(add_batch(file, input, base, *cipher));
    base = BatchView::trusted(file.data() + at).end_offset();
  }
  file.insert(file.end(), input.begin(), input.end());
  file.resize(log::round_up_to_page(file.size() + 1));
  const std::uint64_t key_id = lost ? log::key_id_unknown : cipher->key_id();
  const auto page = log::encode_segment_header({epoch, {0}, incarnation, file.size(), {}, key_id});
  std::copy(page.begin(), page.end(), file.begin());
  return file;
}

std::uint64_t read_all_messages(log::Log& log) {
  std::uint64_t messages = 0;
  for (log::ReadPosition place;;) {
    const log::ReadResult result = log.read(place);
    if (result.outcome == log::ReadOutcome::end) return messages;
    const bool is_batch = result.outcome == log::ReadOutcome::batch;
    const Offset next = is_batch ? result.batch.end_offset() : result.next;
    require(place.offset < next);
    if (is_batch) {
      require(!BatchView::check_header(result.batch.bytes(), BatchView::mask_of(result.batch.bytes())));
      require(!result.batch.check_body());
      messages += result.batch.record_count();
    }
    place.offset = next;
  }
}

/// Returns true for the error of a log with another key, or of a log of a newer version: the batches may have
/// any flags.
bool is_refusal(ErrorCode code) {
  return code == ErrorCode::not_supported || code == ErrorCode::foreign_format;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 60'000) return 0;
  if ((data[0] & 1) != 0) {
    read_keys({reinterpret_cast<const char*>(data + 1), size - 1});
    return 0;
  }
  static const auto keys = rest::StorageKeys::parse(std::string(64, 'a'), "fuzz").value_or_throw();
  static const auto others = rest::StorageKeys::parse(std::string(64, 'b'), "fuzz").value_or_throw();
  test::FaultyStorage storage;
  log::SegmentPool pool({"/pool"}, storage);
  log::SegmentLogOptions options;
  options.directory = "/log";
  options.segment_bytes = limits::segment_bytes_min;
  const std::string path = "/log/" + log::segment_name({0});
  require(storage.open(path, log::OpenMode::create).ok());
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const bool lost = (data[0] & 4) != 0;
  const auto file = made_of({bytes + 1, size - 1}, (data[0] & 2) != 0, lost, *keys);
  storage.bytes_of(path) = file;

  options.ciphers = others.get();
  {
    // If the key id is lost and no batch is sound, nothing shows that this is the wrong key.
    const auto wrong = log::SegmentLog::open(options, storage, pool, Timestamp{1});
    require(wrong.ok() ? lost && read_all_messages(**wrong) == 0
                       : is_refusal(wrong.error().code) && storage.bytes_of(path) == file);
  }
  storage.bytes_of(path) = file;
  options.ciphers = keys.get();
  auto opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  if (!opened) return 0;
  const std::uint64_t messages = read_all_messages(**opened);
  const Offset next = (*opened)->next_offset();
  auto batch = test::make_batch({"one more"});
  const auto appended = (*opened)->append(batch, Timestamp{2});
  require(appended.outcome == log::AppendOutcome::appended && appended.base == next);
  opened->reset();
  opened = log::SegmentLog::open(options, storage, pool, Timestamp{1});
  require(opened.ok() && read_all_messages(**opened) == messages + 1);
  return 0;
}
