/// Decompresses batches for consumers that cannot read them, or that take only a part. Layer: delivery.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>

#include "delivery/batches/batch_slice.hpp"
#include "delivery/batches/header_content.hpp"

namespace lightq::broker {

/// Returns the batch with readable records, decompressed if needed; see BatchUnpacker. Returns nothing if it
/// is damaged although its checksum was right.
/// Lifetime: until the next call of any of these functions on this thread, and no longer than `batch`. Each
/// thread keeps the last four batches, each of at most limits::compressed_batch_bytes_max.
/// Errors: limit_reached if there is no memory for it now.
Result<std::optional<BatchView>> unpacked(const BatchView& batch);

/// Returns the slice's messages in readable records. Results and errors are as for the function above.
Result<std::optional<BatchSlice>> unpacked(const BatchSlice& slice);

/// The content of a compressed batch that a client sends.
struct PackedContent : HeaderContent {
  std::size_t longest_message_bytes = 0;
};

/// Returns the content of a batch, or nothing if it cannot be decompressed. Calls `look`, unless it is empty,
/// with the decompressed batch. Throws std::bad_alloc.
std::optional<PackedContent> content_packed_in(const BatchView& batch,
                                               const std::function<void(const BatchView&)>& look = {});

}  // namespace lightq::broker
