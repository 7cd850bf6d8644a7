/// The queue of dead messages that are transferred. Layer: delivery.
#include "delivery/dead/outbox.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <lightq/base/random.hpp>

namespace lightq::broker {

std::size_t Outbox::begin(std::size_t most) {
  const std::size_t wanted = std::min(most, messages_.size());
  if (wanted <= under_way_) return under_way_;
  while (incarnation_ == 0) {
    incarnation_ = random_number<std::uint64_t>();
    first_number_ = 1;
  }
  under_way_ = wanted;
  return under_way_;
}

Offset Outbox::done() {
  assert(under_way_ != 0);
  const Offset message = messages_.front();
  messages_.pop_front();
  --under_way_;
  ++first_number_;
  return message;
}

Offset Outbox::give_up() {
  assert(under_way_ != 0);
  const Offset message = messages_.front();
  messages_.pop_front();
  under_way_ = 0;
  return message;
}

void Outbox::clear() {
  messages_.clear();
  if (std::exchange(under_way_, 0) == 0) return;
  incarnation_ = 0;
  first_number_ = 1;
}

void Outbox::restore(std::uint64_t incarnation, std::uint64_t first_number, std::size_t under_way,
                     const std::vector<Offset>& messages) {
  messages_.assign(messages.begin(), messages.end());
  under_way_ = under_way;
  first_number_ = first_number;
  incarnation_ = incarnation;
}

}  // namespace lightq::broker
