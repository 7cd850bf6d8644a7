/// Adds, finds, closes and removes a session's channels. Layer: session.
#include "session/channel_book.hpp"

#include <algorithm>
#include <utility>

namespace lightq::broker {

void ChannelBook::add(std::unique_ptr<Channel> channel, std::uint32_t request) {
  opening_[channel->number()] = request;
  channels_.emplace(channel->number(), std::move(channel));
}

std::uint32_t ChannelBook::take_opening(std::uint32_t number) {
  const auto asked = opening_.extract(number);
  return asked.empty() ? 0 : asked.mapped();
}

Channel* ChannelBook::find(std::uint32_t number) const {
  const auto found = channels_.find(number);
  return found == channels_.end() ? nullptr : found->second.get();
}

Channel* ChannelBook::find_open(std::uint32_t number) const {
  return opening_.contains(number) ? nullptr : find(number);
}

bool ChannelBook::settled() const {
  return opening_.empty() && std::all_of(channels_.begin(), channels_.end(),
                                         [](const auto& entry) { return entry.second->settled(); });
}

std::optional<ChannelBook::Closed> ChannelBook::take_closed() {
  for (auto closing = closing_.begin(); closing != closing_.end(); ++closing) {
    const Closed closed{closing->first, closing->second};
    const Channel* const channel = find(closed.number);
    if (channel != nullptr && !channel->settled()) continue;
    closing_.erase(closing);
    drop(closed.number);
    return closed;
  }
  return std::nullopt;
}

void ChannelBook::drop(std::uint32_t number) {
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  if (found->second->held()) count_resumed();
  found->second->leave();
  loop_.destroy_later(std::move(found->second));
  channels_.erase(found);
}

void ChannelBook::drop_all() {
  while (!channels_.empty()) drop(channels_.begin()->first);
  opening_.clear();
  closing_.clear();
}

}  // namespace lightq::broker
