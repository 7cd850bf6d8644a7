/// The queue of dead messages that are transferred. Layer: delivery.
#include "delivery/dead/outbox.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <lightq/base/random.hpp>

#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

log::OffsetSet Outbox::under_way_set() const {
  log::OffsetSet set;
  for (const Offset message : under_way_) set.add({message, message + 1});
  return set;
}

std::size_t Outbox::begin(std::size_t most, TopicId target, Offset end) {
  const std::size_t wanted = std::min(most, under_way_max);
  if (target == TopicId{} || wanted <= under_way_.size()) return under_way_.size();
  if (incarnation_ != 0 && target != target_) {
    if (!under_way_.empty()) return under_way_.size();
    renew();
  }
  const log::OffsetSet begun = under_way_set();
  for (Offset from; under_way_.size() < wanted;) {
    const auto run = messages_.first_behind(from);
    if (!run || end <= std::max(run->begin, from)) break;
    const Offset message = std::max(run->begin, from);
    from = message + 1;
    if (!begun.contains(message)) under_way_.push_back(message);
  }
  if (under_way_.empty()) return 0;
  while (incarnation_ == 0) {
    incarnation_ = random_number<std::uint64_t>();
    first_number_ = 1;
    target_ = target;
  }
  return under_way_.size();
}

Offset Outbox::done() {
  assert(!under_way_.empty());
  const Offset message = under_way_.front();
  under_way_.pop_front();
  messages_.remove({message, message + 1});
  ++first_number_;
  return message;
}

Offset Outbox::give_up() {
  assert(!under_way_.empty());
  const Offset message = under_way_.front();
  under_way_.clear();
  messages_.remove({message, message + 1});
  return message;
}

void Outbox::renew() {
  under_way_.clear();
  incarnation_ = 0;  // `begin` draws another one
  first_number_ = 1;
  target_ = {};
}

void Outbox::remove_before(Offset end) {
  messages_.remove({Offset{0}, end});
  for (const Offset message : under_way_) messages_.add({message, message + 1});
}

log::OffsetSet Outbox::take_waiting() {
  log::OffsetSet kept = under_way_set();
  log::OffsetSet waiting = without(messages_, kept);
  messages_ = std::move(kept);
  return waiting;
}

void Outbox::clear() {
  messages_.clear();
  if (!under_way_.empty()) renew();
}

void Outbox::restore(const log::SavedDead& saved) {
  messages_ = saved.outbox;
  under_way_.assign(saved.under_way.begin(), saved.under_way.end());
  first_number_ = saved.first_number;
  incarnation_ = saved.incarnation;
  target_ = {saved.target};
}

}  // namespace lightq::broker
