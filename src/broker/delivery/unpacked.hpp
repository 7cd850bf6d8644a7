/// Compressed batches made readable, where not all of one goes to somebody who can read it. Layer: delivery.
#pragma once

#include <cstddef>
#include <optional>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>

#include "broker/delivery/batch_slice.hpp"

namespace lightq::broker {

/// The batch with records that can be read, see BatchUnpacker. Each thread keeps the last four, each of at
/// most limits::compressed_batch_bytes_max: valid until the next call of any of these on this thread, and as
/// long as `batch` is. Nothing: it is damaged, though its checksum was right. Error: there is no memory for
/// it now.
Result<std::optional<BatchView>> unpacked(const BatchView& batch);

/// The same messages, in records that can be read. Error: as above.
Result<std::optional<BatchSlice>> unpacked(const BatchSlice& slice);

/// Of a batch that somebody sends: its longest message, or nothing if it cannot be unpacked. Throws
/// std::bad_alloc.
std::optional<std::size_t> longest_message_packed_in(const BatchView& batch);

}  // namespace lightq::broker
