/// Encrypts output in units and tracks which of them were sent. Layer: net.
#include "net/sealed_output.hpp"

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {
// So many encrypted bytes are prepared at once: enough to make a system call worth its cost.
constexpr std::size_t sealed_bytes_enough = 128 * limits::KiB;
constexpr std::size_t kept_bytes_max = 512 * limits::KiB;
}  // namespace

void SealedOutput::append_as_is(ByteView wire) {
  wire_.insert(wire_.end(), wire.begin(), wire.end());
}

void SealedOutput::append_unsealed(ByteView plain) {
  append_as_is(plain);
  add_unit(plain.size());
}

std::size_t SealedOutput::seal(ByteView plain) {
  if (!cipher_.ready()) return 0;
  std::size_t taken = 0;
  while (taken < plain.size() && waiting().size() < sealed_bytes_enough) {
    const std::size_t unit = cipher_.seal(plain.subspan(taken), wire_);
    if (unit == 0) break;
    taken += unit;
    add_unit(unit);
  }
  return taken;
}

void SealedOutput::add_unit(std::size_t plain_bytes) {
  units_.push_back({sent_total_ + waiting().size(), plain_bytes});
  plain_bytes_ += plain_bytes;
}

std::size_t SealedOutput::sent(std::size_t wire_bytes) {
  head_ += wire_bytes;
  sent_total_ += wire_bytes;
  std::size_t left = 0;
  while (!units_.empty() && units_.front().wire_end <= sent_total_) {
    left += units_.front().plain_bytes;
    units_.pop_front();
  }
  plain_bytes_ -= left;
  drop_sent();
  return left;
}

/// Moves the waiting bytes to the front if they are not more than the sent bytes that this frees.
void SealedOutput::drop_sent() {
  if (head_ < wire_.size() && head_ < waiting().size()) return;
  wire_.erase(wire_.begin(), wire_.begin() + static_cast<std::ptrdiff_t>(head_));
  head_ = 0;
  if (wire_.empty() && wire_.capacity() > kept_bytes_max) release_memory();
}

void SealedOutput::release_memory() {
  if (waiting().empty()) wire_ = std::vector<std::byte>();
}

}  // namespace lightq::broker
