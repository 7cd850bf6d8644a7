/// Moves a session's bytes through shared memory and wakes the client. Layer: net.
#include "net/shared_wire.hpp"

#include <thread>

namespace lightq::broker {

namespace {
constexpr std::uint64_t much_bytes_per_us = 500;  // 0.5 GB/s
}  // namespace

void SharedWire::release(std::size_t bytes) {
  if (rings_->reader().release(bytes)) wake_.wake_client();
}

std::size_t SharedWire::send(ByteView first, ByteView second) {
  auto& writer = rings_->writer();
  std::size_t taken = writer.write(first);
  if (taken == first.size()) taken += writer.write(second);
  sent_bytes_ += taken;
  if (taken > 0 && writer.publish()) {
    wake_.wake_client();
    woken_ = now_();
    sent_bytes_ = 0;
  }
  return taken;
}

void SharedWire::give_way() const {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now_() - woken_).count();
  if (sent_bytes_ >= static_cast<std::uint64_t>(us) * much_bytes_per_us) std::this_thread::yield();
}

}  // namespace lightq::broker
