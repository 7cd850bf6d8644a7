/// Operations of plain consumers and of subscribers.
#include <algorithm>
#include <utility>

#include "model/steps.hpp"

namespace lightq::model {

using namespace broker;

namespace {
constexpr std::size_t pullers_max = 2;
constexpr std::size_t subscribers_max = 2;
}  // namespace

/// The connection stalls, takes some, or is writable again.
void Steps::change_sink(PlainSink& sink) {
  const std::uint64_t choice = random_.below(5);
  if (choice < 2) {
    sink.is_writable = false;
    sink.room = random_.below(6);
  } else if (choice == 2) {
    sink.send(random_.between(1, 4));
  } else {
    sink.is_writable = true;
    sink.flush();
  }
  note("the connection of consumer " + std::to_string(sink.number) +
       (choice < 2    ? " stalls"
        : choice == 2 ? " takes some"
                      : " is writable"));
  ++tally_["changes of plain connections"];
  broker_.plain().listener.consumers_writable();
}

void Steps::change_pullers() {
  const std::string name(protocol::default_group);
  const auto known = groups_.find(name);
  const std::size_t count = known == groups_.end() ? 0 : known->second->pullers.size();
  const std::uint64_t choice = random_.below(6);
  if (count == 0 || (choice == 0 && count < pullers_max)) return join_plainly(known == groups_.end());
  ModelGroup& group = *known->second;
  auto at = group.pullers.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random_.below(count)));
  PlainSink& sink = *at->second.sink;
  if (1 < choice) return change_sink(sink);
  note("plain consumer " + std::to_string(sink.number) + " leaves");
  PlainEndpoints& plain = broker_.plain();
  plain.topic.detach_puller(sink);
  plain.listener.consumers_changed();
  group.puller_left(sink.number);
  ++tally_["plain consumers that left"];
}

void Steps::join_plainly(bool is_first) {
  if (broker_.is_dead()) return;
  const std::string name(protocol::default_group);
  if (is_first) {
    const std::uint64_t first = broker_.orders_store().first_offset().value;
    ModelGroup& made = add_group(name, first);
    for (std::uint64_t at = first; at < log_.size(); ++at) made.appended(at);
  }
  const int number = ++last_client_;
  note("plain consumer " + std::to_string(number) + " joins");
  auto& puller = groups_.at(name)->pullers[number];
  puller.sink = std::make_unique<PlainSink>(broker_.journal(), number);
  PlainEndpoints& plain = broker_.plain();
  plain.topic.attach_puller(*puller.sink);
  plain.listener.consumers_changed();
  ++tally_["plain consumers"];
}

void Steps::change_subscribers() {
  const std::uint64_t choice = random_.below(8);
  PlainEndpoints& plain = broker_.plain();
  if (subscribers_.empty() || (choice == 0 && subscribers_.size() < subscribers_max)) {
    if (broker_.is_dead()) return;
    const std::uint64_t endpoint = next_endpoint_++;
    note("subscriber " + std::to_string(endpoint) + " joins at " + std::to_string(log_.size()));
    broker_.catalogue().subscribers.insert(endpoint);
    plain.add(endpoint, std::nullopt);
    ModelSubscriber& joined = subscribers_[endpoint];
    joined.next = log_.size();
    joined.joined_ms = broker_.ticked_ms();
    ++tally_["subscribers"];
    return;
  }
  auto at = subscribers_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random_.below(subscribers_.size())));
  auto& [endpoint, subscriber] = *at;
  if (subscriber.sink == nullptr && choice == 1) {
    note("subscriber " + std::to_string(endpoint) + " is removed");
    broker_.catalogue().subscribers.erase(endpoint);
    plain.remove(endpoint);
    subscribers_.erase(at);
    ++tally_["subscribers removed"];
    return;
  }
  if (subscriber.sink == nullptr) {
    subscriber.sink = std::make_unique<PlainSink>(broker_.journal(), ++last_client_);
    note("consumer " + std::to_string(last_client_) + " of subscriber " + std::to_string(endpoint) +
         " connects");
    plain.topic.subscribers().attach(plain.at(endpoint), *subscriber.sink);
    plain.listener.consumers_changed();
    return;
  }
  if (2 < choice) return change_sink(*subscriber.sink);
  note("the consumer of subscriber " + std::to_string(endpoint) + " disconnects");
  if (subscriber.sink->first_unsent()) ++tally_["subscribers that disconnected with unsent messages"];
  subscriber.next = subscriber.committed();
  plain.topic.subscribers().detach(plain.at(endpoint));
  plain.listener.consumers_changed();
  subscriber.sink.reset();
}

}  // namespace lightq::model
