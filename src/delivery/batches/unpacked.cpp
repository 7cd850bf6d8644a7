/// Decompresses batches with a few buffers for each thread. Layer: delivery.
#include "delivery/batches/unpacked.hpp"

#include <array>
#include <cerrno>
#include <new>

#include <lightq/base/batch_unpack.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {

/// The decompression buffers of a thread. Few batches are read in parts at a time, and a buffer for each
/// topic would take megabytes. Several buffers are needed because consumers at different offsets take turns.
class Unpackers {
 public:
  BatchUnpacker& of(const BatchView& batch) {
    for (BatchUnpacker& kept : kept_) {
      if (kept.has(batch)) return kept;
    }
    return kept_[turn_++ % kept_.size()];
  }

 private:
  std::array<BatchUnpacker, 4> kept_;
  std::size_t turn_ = 0;
};

Unpackers& of_this_thread() {
  thread_local Unpackers unpackers;
  return unpackers;
}

}  // namespace

Result<std::optional<BatchView>> unpacked(const BatchView& batch) {
  if (!batch.is_compressed()) return std::optional(batch);
  BatchUnpacker& unpacker = of_this_thread().of(batch);
  if (!unpacker.has(batch)) TurnWork::add(batch.records_bytes());
  try {
    return unpacker.unpack(batch);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::limit_reached, "not enough memory to unpack a batch", ENOMEM};
  }
}

Result<std::optional<BatchSlice>> unpacked(const BatchSlice& slice) {
  if (!slice.batch.is_compressed()) return std::optional(slice);
  const auto plain = unpacked(slice.batch);
  if (!plain) return plain.error();
  if (!*plain) return std::optional<BatchSlice>();
  return std::optional(BatchSlice{**plain, slice.first, slice.count,
                                  (*plain)->bytes().subspan(batch_layout::header_bytes), false});
}

std::optional<PackedContent> content_packed_in(const BatchView& batch,
                                               const std::function<void(const BatchView&)>& look) {
  BatchUnpacker& unpacker = of_this_thread().of(batch);
  TurnWork::add(batch.records_bytes());
  const auto plain = unpacker.unpack(batch);
  unpacker.forget();  // the next batch may lie at the same address
  if (!plain) return std::nullopt;
  if (look) look(*plain);
  return PackedContent{header_content(*plain), unpacker.longest_message_bytes()};
}

}  // namespace lightq::broker
