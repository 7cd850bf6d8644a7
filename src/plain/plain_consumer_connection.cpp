/// Tracks which messages of a consumer's connection the operating system has not taken. Layer: plain.
#include "plain/plain_consumer_connection.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace lightq::broker {

namespace {
constexpr std::size_t buffer_bytes_max = 64 * limits::KiB;
}

bool PlainConsumerConnection::offer(Offset offset, ByteView payload) {
  if (!ready_ || retired_ || life().failed()) return false;
  if (output().buffered() >= buffer_bytes_max) {
    flush();
    if (output().buffered() >= buffer_bytes_max || life().failed()) return false;
  }
  if (!life().with_memory([&] { encode(payload); })) return false;
  if (!taken_.empty() && offset < taken_.back().offset) ascending_ = false;
  taken_.push_back({offset, output().appended_total()});
  ++handed_;
  return true;
}

void PlainConsumerConnection::flush() {
  output().flush();
  forget_sent();
}

void PlainConsumerConnection::forget_sent() const {
  while (taken_head_ < taken_.size() && taken_[taken_head_].end <= output().sent_total()) ++taken_head_;
  // Constant cost per entry on average: at least as many entries are erased as are moved.
  if (taken_head_ == taken_.size()) ascending_ = true;
  if (taken_head_ * 2 < taken_.size()) return;
  taken_.erase(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(taken_head_));
  taken_head_ = 0;
}

std::optional<Offset> PlainConsumerConnection::first_unsent() const {
  forget_sent();
  if (taken_head_ == taken_.size()) return std::nullopt;
  if (ascending_) return taken_[taken_head_].offset;
  const auto unsent = std::span(taken_).subspan(taken_head_);
  return std::ranges::min_element(unsent, {}, &Taken::offset)->offset;
}

std::vector<Offset> PlainConsumerConnection::unsent() const {
  forget_sent();
  std::vector<Offset> offsets;
  for (std::size_t i = taken_head_; i < taken_.size(); ++i) offsets.push_back(taken_[i].offset);
  return offsets;
}

void PlainConsumerConnection::set_ready(bool ready) {
  if (ready_ == ready) return;
  ready_ = ready;
  if (ready) {
    host_.consumer_ready(*this);
  } else {
    host_.consumer_unready(*this);
  }
}

}  // namespace lightq::broker
