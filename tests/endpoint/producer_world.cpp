/// A topic on a failing disk, and producers that send everything again.
#include "endpoint/producer_world.hpp"

#include <algorithm>

#include "support/batches.hpp"

namespace lightq::test {

using broker::Admission;
using broker::ClientError;
using broker::LogEnds;

namespace {

const broker::StorageSettings settings{.topics_directory = "/topics", .flush_interval_ms = 300};

broker::TopicDefinition definition_of(const WorldOptions& options) {
  broker::TopicDefinition definition{{1}, *TopicName::parse("orders"), {}};
  definition.settings.broker_type = options.type;
  definition.settings.ring_bytes = limits::ring_bytes_min;
  definition.settings.segment_bytes = limits::segment_bytes_min;
  definition.settings.capacity_bytes = options.capacity_bytes;
  return definition;
}

}  // namespace

ProducerWorld::ProducerWorld(Random& random, WorldOptions options) : random_(random), options_(options) {
  open();
}

// --- The broker ---

void ProducerWorld::open() {
  sink_.lines.clear();
  pool_ = std::make_unique<log::SegmentPool>(log::SegmentPoolOptions{"/pool", 4}, storage_);
  auto opened = broker::TopicOpener(storage_, *pool_).open(definition_of(options_), settings, now_, sink_);
  if (!opened) {
    complain("the topic does not open: " + opened.error().text());
    return;
  }
  topic_ = std::move(*opened);
  const auto is_doubt = [](const std::string& line) {
    return line.find("the broker has forgotten producers") != line.npos;
  };
  const bool doubtful = std::any_of(sink_.lines.begin(), sink_.lines.end(), is_doubt);
  counts.doubts += doubtful ? 1 : 0;
  look_at_everything(doubtful);
}

void ProducerWorld::drop_all() {
  storage_.on_call = nullptr;
  save_.reset();
  topic_ = {};
  pool_.reset();
  each_process([](Process& process) {
    process.state = Process::State::away;
    for (SentBatch& batch : process.window) batch.end.reset();
  });
}

void ProducerWorld::restart() {
  drop_all();
  open();
}

void ProducerWorld::clean_stop() {
  storage_.on_call = nullptr;
  ++counts.stops;
  if (save_) finish_open_save(write_open_save());
  const bool closed = topic_.log->close().ok();
  if (auto last = producers().take_last_save(ends())) {
    producers().saved(topic_.producer_file->write(std::move(*last)).ok());
  }
  const Offset end = topic_.log->next_offset();
  restart();
  if (violation || !closed) return;
  if (topic_.log->next_offset() != end) complain("a clean stop lost messages");
}

void ProducerWorld::power_cut() {
  ++counts.power_cuts;
  const std::uint64_t share = random_.below(3);
  drop_all();
  storage_.power_cut([&] { return share == 0 || (share == 1 && random_.one_in(2)); });
  open();
}

LogEnds ProducerWorld::ends() const {
  LogEnds ends = LogEnds::of(*topic_.log);
  if (options_.broken == BrokenRule::snapshot_before_durable) ends.durable = ends.next;
  return ends;
}

bool ProducerWorld::write_open_save() {
  return topic_.producer_file->write(*std::exchange(save_, std::nullopt)).ok();
}

void ProducerWorld::finish_open_save(bool well) {
  counts.saves += well ? 1 : 0;
  producers().saved(well);
}

// Between taking, writing and finishing a save, any other event may happen.
void ProducerWorld::save_some() {
  if (!save_) {
    save_ = producers().take_save(ends(), now_);
    return;
  }
  const bool written = write_open_save();
  if (random_.one_in(8)) return restart();  // written, but not reported
  finish_open_save(written);
}

void ProducerWorld::log_work() {
  topic_.log->maintain(now_);
  const auto job = topic_.log->take_disk_job(now_);
  if (job == nullptr) return;
  job->run();
  job->finish();
}

void ProducerWorld::arm_fault() {
  storage_.on_call = [this, left = random_.below(30)](FaultyStorage::Call call, const std::string&) mutable {
    using Call = FaultyStorage::Call;
    if (call == Call::read || call == Call::map || left-- != 0) return FaultyStorage::Fault{};
    left = random_.below(30);
    if (call == Call::write && random_.one_in(2)) return FaultyStorage::Fault{0, 1 + random_.below(100)};
    return FaultyStorage::Fault{random_.one_in(2) ? EIO : ENOSPC, 0};
  };
}

// --- The producers ---

template <typename Visit>
void ProducerWorld::each_process(Visit visit) {
  for (Client& client : clients_) {
    visit(client.current);
    if (client.former) visit(*client.former);
  }
}

Process& ProducerWorld::some_process() {
  Client& client = clients_[random_.below(clients_.size())];
  return client.former && random_.one_in(3) ? *client.former : client.current;
}

/// Returns true if another process was told that it owns the id.
bool ProducerWorld::is_shut_out(const Process& process) const {
  return std::any_of(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.former && &*client.former == &process && client.current.began &&
           client.current.identity.id == process.identity.id;
  });
}

void ProducerWorld::take_over(Client& client) {
  if (!client.current.began) return;
  ++counts.takeovers;
  client.former = std::move(client.current);
  client.current = {};
  client.current.identity = {client.former->identity.id,
                             static_cast<std::uint16_t>(client.former->identity.epoch + 1)};
}

void ProducerWorld::act(Process& process) {
  switch (process.state) {
    case Process::State::away: return connect(process);
    case Process::State::waiting: return answer(process);
    case Process::State::on: return send_new(process);
  }
}

void ProducerWorld::connect(Process& process) {
  const bool shut_out = is_shut_out(process);
  const auto opened = producers().open(process.identity, last_id_ + 1, now_);
  if (opened.refusal == ClientError::unknown_producer) {
    // Unconfirmed messages may be stored or not: they are not sent again.
    ++counts.unknown;
    process = {};
    return;
  }
  if (opened.refusal == ClientError::fenced) {
    ++counts.fenced;
    if (process.began && !shut_out && process.identity.id != 0) {
      const bool newer = std::any_of(clients_.begin(), clients_.end(), [&](const Client& client) {
        return client.current.identity.id == process.identity.id &&
               client.current.identity.epoch > process.identity.epoch;
      });
      if (!newer) complain("a process was fenced, and no other has its id");
    }
    process = {};
    return;
  }
  if (shut_out) complain("a process came back after another was told that it has the id");
  if (process.identity.id == 0) ++last_id_;
  process.identity = opened.producer.identity;
  process.expected = opened.producer.expected;
  process.change = producers().change();
  process.state = Process::State::waiting;
}

void ProducerWorld::answer(Process& process) {
  const bool early = options_.broken == BrokenRule::told_before_settled;
  if (!producers().is_settled(process.change) && !early) return;
  process.state = Process::State::on;
  if (!process.began) {
    process.began = true;
    process.next = process.confirmed = process.expected;
    return;
  }
  const std::string says = "the broker expects " + std::to_string(process.expected) + " of " +
                           std::to_string(process.identity.id) + ", ";
  if (process.expected < process.confirmed)
    complain(says + "confirmed were " + std::to_string(process.confirmed));
  if (process.next < process.expected) complain(says + "sent were " + std::to_string(process.next));
  for (SentBatch& batch : process.window) {
    if (!transmit(process, batch)) return;
  }
}

void ProducerWorld::send_new(Process& process) {
  SentBatch batch{process.next, {}, std::nullopt};
  for (std::uint64_t left = random_.between(1, 3); left != 0; --left) {
    const std::string number = std::to_string(++last_payload_);
    batch.payloads.push_back(number + std::string(random_.below(3000), '.') + number);
  }
  process.next += batch.payloads.size();
  process.window.push_back(std::move(batch));
  transmit(process, process.window.back());
}

bool ProducerWorld::transmit(Process& process, SentBatch& batch) {
  const Admission admission = producers().admit({process.identity, batch.begin, batch.payloads.size()});
  const auto is_stored = [&](const std::string& payload) { return stored_.contains(payload); };
  if (admission == Admission::store || admission == Admission::repeat) {
    if (is_shut_out(process)) complain("a process was served after another was told that it has the id");
  }
  switch (admission) {
    case Admission::store:
      if (std::any_of(batch.payloads.begin(), batch.payloads.end(), is_stored))
        complain("a message is to be stored twice");
      return append(process, batch);
    case Admission::repeat:
      ++counts.repeats;
      if (!std::all_of(batch.payloads.begin(), batch.payloads.end(), is_stored))
        complain("a message that is not stored is taken for stored");
      batch.end = topic_.log->next_offset();
      return true;
    case Admission::out_of_sequence: complain("a process that left nothing out is told that it did"); break;
    case Admission::fenced:
    case Admission::unknown: process.state = Process::State::away; break;
  }
  return false;
}

bool ProducerWorld::append(Process& process, SentBatch& batch) {
  auto bytes =
      make_batch_of_producer(process.identity.id, process.identity.epoch, batch.begin, batch.payloads);
  auto appended = topic_.log->append(bytes, now_);
  if (appended.outcome == log::AppendOutcome::full) {
    topic_.log->make_room(bytes.size(), topic_.log->next_offset());
    appended = topic_.log->append(bytes, now_);
  }
  if (appended.outcome != log::AppendOutcome::appended) {
    process.state = Process::State::away;
    return false;
  }
  producers().stored({process.identity, batch.begin, batch.payloads.size()}, now_);
  producers().appended(bytes.size());
  for (const std::string& payload : batch.payloads) {
    stored_[payload] = appended.base;
    appended.base = appended.base + 1;
  }
  batch.end = topic_.log->next_offset();
  return true;
}

void ProducerWorld::confirm_all() {
  each_process([this](Process& process) { confirm(process); });
}

void ProducerWorld::confirm(Process& process) {
  const Offset durable = topic_.log->durable_offset();
  while (!process.window.empty() && process.window.front().end && *process.window.front().end <= durable) {
    const SentBatch& batch = process.window.front();
    process.confirmed = batch.begin + batch.payloads.size();
    confirmed_.insert(batch.payloads.begin(), batch.payloads.end());
    process.window.pop_front();
  }
}

// --- Comparisons ---

/// After a start: checks that no message is there twice, and that no confirmed message is missing.
void ProducerWorld::look_at_everything(bool doubtful) {
  std::map<std::string, Offset> found;
  std::map<std::uint64_t, std::uint64_t> ends;  // by producer: one past its last message in the log
  const Offset first = topic_.log->first_offset();
  log::ReadPosition place{first};
  while (place.offset < topic_.log->next_offset()) {
    const auto read = topic_.log->read(place);
    if (read.outcome != log::ReadOutcome::batch) {
      place.offset = read.next;
      continue;
    }
    Offset offset = read.batch.base_offset();
    for (const std::string& payload : payloads_of(read.batch)) {
      if (!found.emplace(payload, offset).second) complain("a message is in the log twice");
      offset = offset + 1;
    }
    ends[read.batch.producer_id()] = read.batch.first_sequence() + read.batch.record_count();
    place.offset = read.batch.end_offset();
  }
  for (const auto& [payload, offset] : stored_) {
    if (offset < first) found.emplace(payload, offset);  // dropped since, but it was stored
  }
  stored_ = std::move(found);
  for (const std::string& payload : confirmed_) {
    if (!stored_.contains(payload)) complain("a message that was confirmed is lost");
  }
  look_at_producers(ends, doubtful);
}

/// Checks that each known producer is expected to continue after its last message. A producer with messages
/// in the log must be known, unless there was a reason to forget it.
void ProducerWorld::look_at_producers(const std::map<std::uint64_t, std::uint64_t>& ends, bool doubtful) {
  for (const auto& [id, end] : ends) {
    const auto* const known = producers().find(id);
    if (known == nullptr && doubtful) forgotten_.insert(id);
    if (known == nullptr && !forgotten_.contains(id))
      complain("producer " + std::to_string(id) + " is unknown, though its messages are there");
    if (known != nullptr && known->expected != end) {
      complain("producer " + std::to_string(id) + " is expected at " + std::to_string(known->expected) +
               ", its messages end at " + std::to_string(end));
    }
  }
}

// --- Events ---

void ProducerWorld::step() {
  now_.us += static_cast<std::int64_t>(random_.below(60'000));
  if (options_.calls_fail && random_.one_in(20)) arm_fault();
  const std::uint64_t choice = random_.below(100);
  if (random_.one_in(options_.steps_to_a_power_cut)) {
    power_cut();
  } else if (choice == 1) {
    ++counts.kills;
    restart();
  } else if (choice == 2 && random_.one_in(3)) {
    clean_stop();
  } else if (choice < 5) {
    take_over(clients_[random_.below(clients_.size())]);
  } else if (choice < 7) {
    some_process().state = Process::State::away;  // its connection breaks
  } else if (choice < 9) {
    storage_.write_back([this] { return random_.one_in(2); });
  } else if (choice < 25) {
    log_work();
  } else if (choice < 45) {
    save_some();
  } else {
    act(some_process());
  }
  if (!violation) confirm_all();
}

void ProducerWorld::finish() {
  restart();
  for (int round = 0; round < 4 && !violation; ++round) {
    now_.us += 2'000'000;
    each_process([this](Process& process) {
      if (process.state != Process::State::on) act(process);
    });
    if (auto taken = producers().take_save(LogEnds::of(*topic_.log), now_)) {
      finish_open_save(topic_.producer_file->write(std::move(*taken)).ok());
    }
    if (!topic_.log->flush()) complain("a log without faults does not become durable");
    confirm_all();
  }
  for (const Client& client : clients_) {
    if (!client.current.window.empty()) complain("what was sent again was not confirmed");
  }
  if (!violation) restart();
}

}  // namespace lightq::test
