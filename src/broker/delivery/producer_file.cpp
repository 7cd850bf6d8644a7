/// A topic's known producers, on disk. docs/log_format.md, "Producer file". Layer: delivery.
#include "broker/delivery/producer_file.hpp"

#include <cassert>
#include <utility>

#include <lightq/base/bytes.hpp>

namespace lightq::broker {

namespace {

// The body: u64 as_of, then each producer.
constexpr std::size_t as_of_bytes = 8;
constexpr std::size_t at_id = 0;          // u64
constexpr std::size_t at_expected = 8;    // u64
constexpr std::size_t at_last_used = 16;  // i64
constexpr std::size_t at_epoch = 24;      // u16
constexpr std::size_t entry_bytes = 26;

KnownProducer decode_entry(const std::byte* entry) {
  return {
      {load_little_endian<std::uint64_t>(entry + at_id), load_little_endian<std::uint16_t>(entry + at_epoch)},
      load_little_endian<std::uint64_t>(entry + at_expected),
      {load_little_endian<std::int64_t>(entry + at_last_used)}};
}

void encode_entry(const KnownProducer& producer, std::byte* entry) {
  store_little_endian(entry + at_id, producer.identity.id);
  store_little_endian(entry + at_expected, producer.expected);
  store_little_endian(entry + at_last_used, producer.last_used.us);
  store_little_endian(entry + at_epoch, producer.identity.epoch);
}

bool sound(const log::SlotBytes& slot) {
  const ByteView body = slot.body();
  const std::uint32_t count = slot.count();
  if (count > producer_file_entries_max || body.size() != as_of_bytes + count * entry_bytes) return false;
  for (std::size_t at = as_of_bytes; at < body.size(); at += entry_bytes) {
    if (decode_entry(body.data() + at).identity.id == 0) return false;
  }
  return true;
}

constexpr log::SlotFormat format{
    "producer file", 0x0A1A0A0D4452504CULL,  // "LPRD", then bytes that text transfers spoil
    1, log::SlotBytes::header_bytes + as_of_bytes + producer_file_entries_max* entry_bytes, sound};

}  // namespace

ProducerFile::ProducerFile(log::Storage& storage, std::string directory)
    : slots_(storage, std::move(directory), "producers", format) {}

Result<std::optional<ProducerSnapshot>> ProducerFile::load() {
  const auto slot = slots_.load();
  if (!slot) return slot.error();
  if (!slot->has_value()) return std::optional<ProducerSnapshot>();
  const std::byte* from = (**slot).body().data();
  ProducerSnapshot snapshot{{load_little_endian<std::uint64_t>(from)}, {}};
  from += as_of_bytes;
  for (std::uint32_t left = (**slot).count(); left != 0; --left, from += entry_bytes) {
    snapshot.producers.push_back(decode_entry(from));
  }
  return std::optional(std::move(snapshot));
}

EncodedProducers ProducerFile::encode(const ProducerSnapshot& snapshot) {
  const auto& producers = snapshot.producers;
  assert(producers.size() <= producer_file_entries_max);
  EncodedProducers encoded{log::SlotFile::make(format, format.version,
                                               as_of_bytes + producers.size() * entry_bytes,
                                               static_cast<std::uint32_t>(producers.size()))};
  std::byte* to = encoded.slot.body();
  store_little_endian(to, snapshot.as_of.value);
  to += as_of_bytes;
  for (const KnownProducer& producer : producers) {
    encode_entry(producer, to);
    to += entry_bytes;
  }
  return encoded;
}

Result<void> ProducerFile::write(EncodedProducers snapshot) {
  return slots_.write(std::move(snapshot.slot));
}

}  // namespace lightq::broker
