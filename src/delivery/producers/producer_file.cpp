/// Encodes and decodes a topic's known producers. docs/log_format.md, "Producer file". Layer: delivery.
#include "delivery/producers/producer_file.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <lightq/base/bytes.hpp>

#include "log/saved_state/producer_slots.hpp"

namespace lightq::broker {

namespace {

// Qualified, because a unity build may define the same names for another format in this namespace.
namespace layout = log::producer_layout;

KnownProducer decode_entry(const std::byte* entry, std::uint32_t version) {
  KnownProducer producer{{load_little_endian<std::uint64_t>(entry + layout::at_id),
                          load_little_endian<std::uint16_t>(entry + layout::at_epoch)},
                         load_little_endian<std::uint64_t>(entry + layout::at_expected),
                         {load_little_endian<std::int64_t>(entry + layout::at_last_used)}};
  if (version == 1) return producer;
  const auto flags = load_little_endian<std::uint16_t>(entry + layout::at_flags);
  if ((flags & layout::flag_owner) != 0)
    producer.owner = load_little_endian<std::uint64_t>(entry + layout::at_owner);
  if ((flags & layout::flag_secret) != 0) {
    auto& secret = producer.secret.emplace();
    std::copy_n(entry + layout::at_secret, secret.size(), secret.begin());
  }
  return producer;
}

void encode_entry(const KnownProducer& producer, std::byte* entry) {
  store_little_endian(entry + layout::at_id, producer.identity.id);
  store_little_endian(entry + layout::at_expected, producer.expected);
  store_little_endian(entry + layout::at_last_used, producer.last_used.us);
  store_little_endian(entry + layout::at_epoch, producer.identity.epoch);
  std::uint16_t flags = 0;
  if (producer.owner) {
    flags |= layout::flag_owner;
    store_little_endian(entry + layout::at_owner, *producer.owner);
  }
  if (producer.secret) {
    flags |= layout::flag_secret;
    std::copy_n(producer.secret->begin(), producer.secret->size(), entry + layout::at_secret);
  }
  store_little_endian(entry + layout::at_flags, flags);
}

}  // namespace

ProducerFile::ProducerFile(log::Storage& storage, std::string directory)
    : slots_(storage, std::move(directory), log::producer_slots_name, log::producer_slot_format()) {}

Result<std::optional<ProducerSnapshot>> ProducerFile::load() {
  const auto slot = slots_.load();
  if (!slot) return slot.error();
  if (!slot->has_value()) return std::optional<ProducerSnapshot>();
  const std::byte* from = (**slot).body().data();
  ProducerSnapshot snapshot{{load_little_endian<std::uint64_t>(from)}, {}};
  from += layout::as_of_bytes;
  const std::size_t entry_bytes = layout::entry_bytes_of((**slot).version());
  for (std::uint32_t left = (**slot).count(); left != 0; --left, from += entry_bytes) {
    snapshot.producers.push_back(decode_entry(from, (**slot).version()));
  }
  return std::optional(std::move(snapshot));
}

EncodedProducers ProducerFile::encode(const ProducerSnapshot& snapshot) {
  const auto& producers = snapshot.producers;
  assert(producers.size() <= producer_file_entries_max);
  EncodedProducers encoded{log::SlotFile::make(log::producer_slot_format(),
                                               log::producer_slot_format().version,
                                               layout::as_of_bytes + producers.size() * layout::entry_bytes_2,
                                               static_cast<std::uint32_t>(producers.size()))};
  std::byte* to = encoded.slot.body();
  store_little_endian(to, snapshot.as_of.value);
  to += layout::as_of_bytes;
  for (const KnownProducer& producer : producers) {
    encode_entry(producer, to);
    to += layout::entry_bytes_2;
  }
  return encoded;
}

Result<void> ProducerFile::write(EncodedProducers snapshot) {
  return slots_.write(std::move(snapshot.slot));
}

}  // namespace lightq::broker
