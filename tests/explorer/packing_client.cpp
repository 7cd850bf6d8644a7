/// A user of a log that is written through a mapping. It packs messages as the embedded queue does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "explorer/log_client.hpp"

namespace lightq::test {

using log::AppendOutcome;

AppendOutcome LogClient::begin_batch(std::size_t bytes) {
  constexpr std::size_t batch_bytes = 1500;
  constexpr std::uint32_t records_max = 7;
  const std::size_t needed = batch_layout::header_bytes + record_bytes(bytes);
  const auto got = log_->room_in_place(needed, std::max(needed, batch_bytes));
  if (got.outcome != AppendOutcome::appended) return got.outcome;
  open_.begin(got.room.bytes, got.room.page, got.room.position, got.room.header, {storage_->boot_id()},
              log_->next_offset(), now, records_max);
  return AppendOutcome::appended;
}

AppendOutcome LogClient::pack(std::size_t bytes) {
  history.closed = false;
  if (!open_.is_open() || !open_.fits(bytes)) {
    finish_batch();
    const AppendOutcome begun = begin_batch(bytes);
    note();
    if (begun != AppendOutcome::appended) return begun;
  }
  add_record(bytes);
  history.certain_end = history.end();
  return AppendOutcome::appended;
}

void LogClient::add_record(std::size_t bytes) {
  history.messages.push_back(payloads_.make(bytes));
  open_.add(as_byte_view(payloads_.text(history.messages.back())));
  if (open_.next_offset() != history.end()) complain("the open batch does not go on at the last message");
  if (on_store) on_store();
}

void LogClient::finish_batch() {
  if (!open_.is_open()) return;
  stamp_open_batch();
  if (on_store) on_store();
}

void LogClient::stamp_open_batch() {
  const Timestamp opened = open_.opened();
  const auto batch = open_.finish();
  const log::SegmentHeader& header = log_->segments().active().header();
  stamp_batch(batch, log_->next_offset(), opened, header.epoch, header.batch_mask);
  log_->append_in_place(batch);
}

std::span<std::byte> LogClient::active_file() {
  const std::string path = log_->segments().active().path();
  const bool unnamed = !storage_->exists(path);
  return storage_->bytes_of(unnamed ? std::string(directory) + "/" + log::next_prepared_name : path);
}

std::vector<std::byte> LogClient::image() {
  const auto bytes = active_file();
  return {bytes.begin(), bytes.end()};
}

// Undoes the last of the stores since `before`, as a kill leaves them: stores happen in order, so only the
// first ones are there. The mark in the first page is stored last.
void LogClient::leave_half(const std::vector<std::byte>& before, std::uint64_t eighths) {
  const auto bytes = active_file();
  std::vector<std::size_t> changed;
  for (std::size_t at = log::segment_header_bytes; at < bytes.size(); ++at) {
    if (bytes[at] != before[at]) changed.push_back(at);
  }
  for (std::size_t at = 0; at < log::segment_header_bytes; ++at) {
    if (bytes[at] != before[at]) changed.push_back(at);
  }
  // Half of the kills hit the few stores of the mark or the header instead of the many of the payload.
  const std::size_t last = std::min<std::size_t>(changed.size(), 20);
  const std::size_t undone = eighths < 4 ? last * eighths / 4 : changed.size() * (eighths - 3) / 5;
  for (std::size_t i = changed.size() - std::min(undone, changed.size()); i < changed.size(); ++i) {
    bytes[changed[i]] = before[changed[i]];
  }
  if (on_store) on_store();
}

void LogClient::pack_half(std::size_t bytes, std::uint64_t eighths) {
  history.closed = false;
  if (!open_.is_open() || !open_.fits(bytes)) {
    finish_batch();
    if (begin_batch(bytes) != AppendOutcome::appended) return;
    note();
  }
  const auto before = image();
  history.messages.push_back(payloads_.make(bytes));
  open_.add(as_byte_view(payloads_.text(history.messages.back())));
  leave_half(before, eighths);
}

void LogClient::finish_batch_half(std::uint64_t eighths) {
  if (!open_.is_open()) return;
  const auto before = image();
  stamp_open_batch();
  leave_half(before, eighths);
}

}  // namespace lightq::test
