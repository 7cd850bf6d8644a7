/// Begins transfers, and passes letters and answers on. Layer: topic.
#include "topic/dead/letter_office.hpp"

#include <chrono>
#include <utility>

namespace lightq::broker {

namespace {
// After a look at the groups of a topic, the next one is not sooner.
constexpr auto look_interval = std::chrono::milliseconds(20);
}  // namespace

void LetterOffice::wake(TopicId topic) {
  if (post_ == nullptr || stopped_ || looks_.contains(topic)) return;
  looks_[topic] = parts_.loop.at(EventLoop::Clock::now() + look_interval, [this, topic] { look(topic); });
}

void LetterOffice::look(TopicId topic) {
  looks_.erase(topic);
  TopicRuntime* const runtime = parts_.find_topic(topic);
  if (runtime == nullptr) return;
  for (const std::string& group : parts_.waiting_groups(*runtime)) begin(*runtime, group);
}

void LetterOffice::begin(TopicRuntime& topic, const std::string& group) {
  const GroupKey key{topic.definition().id, group};
  if (const auto known = by_group_.find(key); known != by_group_.end())
    return work(known->second, [](LetterTransfer& transfer) { transfer.woken(); });
  const std::uint64_t number = ++last_transfer_;
  LetterTransfer::Parts parts{
      .loop = parts_.loop,
      .post = *post_,
      .sink = parts_.sink,
      .turns = turns_,
      .saved =
          [self = std::weak_ptr(self_), number](const Result<void>& result) {
            const auto office = self.lock();  // the topic may end its saves after the office
            if (office == nullptr) return;
            (*office)->work(number, [&](LetterTransfer& transfer) { transfer.saved(result); });
          },
      .rested = [this, number] { work(number, [](LetterTransfer& transfer) { transfer.rested(); }); },
      .turned = [this, number] { work(number, [](LetterTransfer& transfer) { transfer.turned(); }); },
      .sent = &sent_};
  transfers_[number] = std::make_unique<LetterTransfer>(std::move(parts), parts_.source_of(topic, group),
                                                        LetterChannel{key.first, number, 0});
  by_group_[key] = number;
  work(number, [](LetterTransfer& transfer) { transfer.work(); });
}

/// Calls the transfer, if it still exists, and drops it if it has nothing more to do. The call may lead to
/// another one of this function, for a save that ends at once; only the outermost one drops.
void LetterOffice::work(std::uint64_t transfer, const std::function<void(LetterTransfer&)>& call) {
  const auto found = transfers_.find(transfer);
  if (found == transfers_.end()) return;
  ++calls_;
  call(*found->second);
  --calls_;
  if (calls_ == 0 && found->second->is_done()) drop(transfer);
}

void LetterOffice::drop(std::uint64_t transfer) {
  std::erase_if(by_group_, [&](const auto& entry) { return entry.second == transfer; });
  const auto dropped = transfers_.extract(transfer);  // destroyed when it is in no map
}

void LetterOffice::forget(TopicId topic) {
  returns_.forget(topic);
  if (const auto look = looks_.extract(topic)) parts_.loop.cancel(look.mapped());
  std::erase_if(by_group_, [&](const auto& entry) { return entry.first.first == topic; });
  std::erase_if(transfers_, [&](const auto& entry) { return entry.second->channel().source == topic; });
}

void LetterOffice::stop() {
  stopped_ = true;
  returns_.stop();
  for (const auto& [topic, timer] : std::exchange(looks_, {})) parts_.loop.cancel(timer);
  by_group_.clear();
  transfers_.clear();
  producers_.clear();
}

void LetterOffice::open_producer(LetterChannel channel, TopicId target, std::uint64_t id) {
  const auto answer = [this, source = channel.source](const LetterPost::Task& task) {
    post_->answer(source, task);
  };
  const auto ended = [answer, channel](const Error& why) {
    answer([channel, why](LetterOffice& there) { there.ended(channel, why); });
  };
  TopicRuntime* const topic = stopped_ ? nullptr : parts_.find_topic(target);
  if (topic == nullptr) return ended({ErrorCode::topic_not_found, "the topic is not open"});
  if (topic->definition().settings.broker_type == protocol::BrokerType::direct)
    return ended({ErrorCode::not_supported, "a direct topic keeps no messages"});
  LetterProducer::Reports reports{
      .settled =
          [answer, channel](std::uint64_t expected) {
            answer([channel, expected](LetterOffice& there) { there.settled(channel, expected); });
          },
      .refused =
          [answer, channel](std::uint64_t number, const Error& why) {
            answer([channel, number, why](LetterOffice& there) { there.refused(channel, number, why); });
          },
      .ended = ended,
      .held =
          [answer, channel](const Error& why) {
            answer([channel, why](LetterOffice& there) { there.held(channel, why); });
          }};
  auto& producer = producers_[channel];
  producer = std::make_unique<LetterProducer>(*topic, id, room_, std::move(reports));
  producer->open();
}

void LetterOffice::take(LetterChannel channel, std::vector<NumberedLetter> letters) {
  const auto found = producers_.find(channel);
  if (found != producers_.end()) found->second->take(std::move(letters));
}

void LetterOffice::close_producer(LetterChannel channel) {
  const auto closed = producers_.extract(channel);
}

LetterTransfer* LetterOffice::transfer_at(LetterChannel channel) {
  const auto found = transfers_.find(channel.transfer);
  return found != transfers_.end() && found->second->channel() == channel ? found->second.get() : nullptr;
}

void LetterOffice::settled(LetterChannel channel, std::uint64_t expected) {
  if (transfer_at(channel) == nullptr) return;
  work(channel.transfer, [&](LetterTransfer& transfer) { transfer.settled(expected); });
}

void LetterOffice::refused(LetterChannel channel, std::uint64_t number, const Error& why) {
  if (transfer_at(channel) == nullptr) return;
  work(channel.transfer, [&](LetterTransfer& transfer) { transfer.refused(number, why); });
}

void LetterOffice::ended(LetterChannel channel, const Error& why) {
  if (transfer_at(channel) == nullptr) return;
  work(channel.transfer, [&](LetterTransfer& transfer) { transfer.ended(why); });
}

void LetterOffice::held(LetterChannel channel, const Error& why) {
  if (transfer_at(channel) == nullptr) return;
  work(channel.transfer, [&](LetterTransfer& transfer) { transfer.held(why); });
}

}  // namespace lightq::broker
