/// Layer: delivery.
#include "broker/delivery/unpacked.hpp"

#include <lightq/base/batch_unpack.hpp>

namespace lightq::broker {

namespace {

// One for all topics of a thread: few are read in parts at a time, and each would keep megabytes.
BatchUnpacker& unpacker() {
  thread_local BatchUnpacker of_this_thread;
  return of_this_thread;
}

}  // namespace

std::optional<BatchView> unpacked(const BatchView& batch) {
  return unpacker().unpack(batch);
}

std::optional<BatchSlice> unpacked(const BatchSlice& slice) {
  if (!slice.batch.is_compressed()) return slice;
  const auto plain = unpacked(slice.batch);
  if (!plain) return std::nullopt;
  return BatchSlice{*plain, slice.first, slice.count, plain->bytes().subspan(batch_layout::header_bytes),
                    false};
}

std::optional<std::size_t> longest_message_packed_in(const BatchView& batch) {
  const auto plain = unpacked(batch);
  unpacker().forget();  // the next one may come to the same place
  if (!plain) return std::nullopt;
  return plain->longest_message_bytes();
}

}  // namespace lightq::broker
