/// Explores the disks that power cuts and kills may leave of a topic with everything durable.
#include "explorer/delivery/delivery_explorer.hpp"

#include <cerrno>
#include <utility>

#include "explorer/delivery/simulated_threads.hpp"

namespace lightq::test {

using DiskCall = ExplorerStorage::Call;

DeliveryExplorer::DeliveryExplorer(const DeliveryOptions& options)
    : options_(options), random_(options.seed) {
  simulated_random = SmallRandom(options.seed);
  for (auto& level : levels_) level = std::make_unique<Level>(world_);
  if (!options.replayed) return;
  random_ = SmallRandom(options.replayed->first);
  simulated_random = SmallRandom(options.replayed->second);
}

DeliveryExploration DeliveryExplorer::run() {
  while (!done()) {
    begin_program();
    for (std::size_t i = 0; i < options_.program_steps && !done(); ++i) {
      operate(*client_);
      if (client_->violation) found(*client_, "in the program itself");
    }
    for (auto& disk : live_disks_) disk->on_step = nullptr;
    if (!done() && client_->is_open() && random_.one_in(4)) {
      client_->finish(random_);
      if (client_->violation) found(*client_, "at the end of the program");
    }
    client_.reset();
    if (options_.replayed) break;
  }
  return result_;
}

void DeliveryExplorer::begin_program() {
  ++result_.programs;
  replay_ = std::to_string(random_.state()) + ":" + std::to_string(simulated_random.state());
  for (auto& disk : live_disks_) disk = std::make_unique<ExplorerStorage>(world_);
  live_ = 0;
  ExplorerStorage& disk = *live_disks_[live_];
  for (std::uint64_t i = random_.below(100); i != 0; --i) static_cast<void>(disk.random());
  for (const char* path : {"/topics", "/pool"}) static_cast<void>(disk.make_directory(path));
  disk.settle();
  SimulatedClock::us = 1'000'000'000;
  client_ = std::make_unique<DeliveryClient>();
  client_->now = {1'700'000'000'000'000};
  choose_mix(client_->mix);
  bytes_ = random_.one_in(3) ? 600 : 150;
  watch(disk, *client_, 0);
  client_->start(disk, LifeEnd::power_cut);
  if (client_->violation) found(*client_, "at the first start");
}

void DeliveryExplorer::choose_mix(TopicMix& mix) {
  const DeliveryPart part = options_.part;
  mix.source.broker_type = protocol::BrokerType::file;
  mix.source.segment_bytes = 8192;
  const bool drops = part == DeliveryPart::carry_over || (part == DeliveryPart::all && random_.one_in(2)) ||
                     random_.one_in(6);
  if (drops) mix.source.retention_bytes = random_.between(1, 3) * 8192;
  mix.letters = part == DeliveryPart::letters || (part == DeliveryPart::all && random_.one_in(2));
  mix.attempts_max = static_cast<std::uint32_t>(random_.below(4));
}

void DeliveryExplorer::operate(DeliveryClient& client) {
  if (!client.is_open()) return restart(LifeEnd::kill);
  const DeliveryPart part = options_.part;
  const bool delays = part == DeliveryPart::schedule || part == DeliveryPart::all;
  const std::uint64_t way = random_.below(40);
  if (way == 0) return restart(LifeEnd::kill);
  if (way == 1) {
    cut_for_real();
    return random_.one_in(2) ? live_shortly() : void();
  }
  if (way == 2) return random_.one_in(2) ? fail_a_sync() : kill_in_a_call();
  if (way == 3) return client.save();
  if (way == 4) return client.step_clock(static_cast<std::int64_t>(random_.below(300'000)));
  if (way == 5 && random_.one_in(4))
    return client.step_clock(-static_cast<std::int64_t>(random_.below(200'000)));
  if (way < 12) {
    if (delays && random_.below(4) != 0)
      return client.publish_delayed(random_, random_.between(1, 3), some_bytes());
    const bool streams = client.mix.source.retention_bytes != 0;
    return client.publish(streams ? random_.between(2, 12) : random_.between(1, 3), some_bytes());
  }
  if (way < 20 && part != DeliveryPart::schedule) return client.consume(random_);
  if (way < 14) return client.consume(random_);
  if (way < 22) {
    if (delays && random_.one_in(2)) return client.change_delayed(random_);
    return random_.one_in(3) ? client.give_back() : client.act_on_dead(random_);
  }
  work(client);
}

// Lets the reactor and the disk's threads work, in some order.
void DeliveryExplorer::work(DeliveryClient& client) {
  for (std::uint64_t i = random_.between(1, 6); i != 0 && !done() && !client.violation; --i) {
    if (random_.one_in(2)) {
      static_cast<void>(client.run_job(random_));
    } else {
      client.turn(random_.one_in(6) ? 1'100'000 : random_.one_in(3) ? 110'000 : 5000);
    }
  }
}

// Ends a life soon after its start, when it has written little: the next one finds what a start has mended.
void DeliveryExplorer::live_shortly() {
  DeliveryClient& client = *client_;
  for (std::uint64_t i = random_.between(1, 4); i != 0 && client.is_open() && !done() && !client.violation;
       --i) {
    if (random_.one_in(2)) {
      client.publish(random_.between(1, 3), some_bytes());
    } else {
      static_cast<void>(client.run_job(random_));
    }
  }
  if (client.is_open() && !done() && !client.violation) restart(LifeEnd::kill);
}

// Lets a sync fail. From then on all promised messages stay, and the data of the failed sync may never reach
// the disk.
void DeliveryExplorer::fail_a_sync() {
  DeliveryClient& client = *client_;
  client.calls_fail = true;
  ExplorerStorage& disk = *live_disks_[live_];
  disk.on_call = [left = 1 + random_.below(4)](DiskCall call, const std::string&) mutable {
    const bool sync = call == DiskCall::sync || call == DiskCall::sync_directory;
    return ExplorerStorage::Fault{sync && left != 0 && --left == 0 ? EIO : 0, 0};
  };
  for (std::uint64_t i = random_.between(3, 16); i != 0 && !done() && !client.violation; --i) {
    switch (random_.below(5)) {
      case 0: client.publish(random_.between(1, 2), some_bytes()); break;
      case 1: client.consume(random_); break;
      case 2: client.turn(110'000); break;
      default: static_cast<void>(client.run_job(random_));
    }
  }
  disk.on_call = nullptr;
  // The mark of a failed sync is written when the job's end is noted. A process that is killed before that
  // leaves none (docs/reliability.md, "After a failed sync").
  client.turn(0);
  if (done() || client.violation) return;
  random_.one_in(2) ? cut_for_real() : restart(LifeEnd::kill);
  client.calls_fail = false;
}

// Kills the process before one of its next calls of the disk.
void DeliveryExplorer::kill_in_a_call() {
  DeliveryClient& client = *client_;
  client.calls_fail = true;
  ExplorerStorage& disk = *live_disks_[live_];
  disk.on_call = [&disk, left = random_.between(1, 12)](DiskCall call, const std::string&) mutable {
    const bool changes = call != DiskCall::read && call != DiskCall::map;
    if (!changes || --left != 0) return ExplorerStorage::Fault{};
    disk.die();
    return ExplorerStorage::Fault{EIO, 0};
  };
  for (std::uint64_t i = random_.between(3, 10); i != 0 && !done() && !client.violation; --i) {
    switch (random_.below(4)) {
      case 0: client.consume(random_); break;
      case 1: client.turn(110'000); break;
      default: static_cast<void>(client.run_job(random_));
    }
  }
  if (done() || client.violation) return;
  random_.one_in(2) ? cut_for_real() : restart(LifeEnd::kill);
  client.calls_fail = false;
}

void DeliveryExplorer::restart(LifeEnd end) {
  DeliveryClient& client = *client_;
  ExplorerStorage& disk = *live_disks_[live_];
  client.note_in_call();
  disk.kill([&] { client.stop(); });
  disk.on_call = nullptr;
  client.wait_stopped(random_.one_in(2) ? 0 : static_cast<std::int64_t>(random_.below(300'000)));
  client.start(disk, end);
}

void DeliveryExplorer::cut_for_real() {
  DeliveryClient& client = *client_;
  client.note_in_call();
  ExplorerStorage& before = *live_disks_[live_];
  const std::vector<CutAtom> atoms = before.atoms();
  before.on_step = nullptr;
  before.kill([&] { client.stop(); });
  live_ = 1 - live_;
  ExplorerStorage& after = *live_disks_[live_];
  Cut cut(atoms.size(), 0);
  if (!atoms.empty()) choose_cut(random_, atoms, cut);
  after.on_step = nullptr;
  after.become(before, atoms, cut);
  before.on_call = nullptr;
  watch(after, client, 0);
  client.start(after, LifeEnd::power_cut);
}

// --- Cutting ---

void DeliveryExplorer::watch(ExplorerStorage& disk, DeliveryClient& owner, std::size_t depth) {
  disk.on_step = [this, &disk, &owner, depth] {
    if (!done()) explore(depth, disk, owner);
  };
}

void DeliveryExplorer::explore(std::size_t depth, ExplorerStorage& from, DeliveryClient& owner) {
  owner.note_in_call();
  Level& level = *levels_[depth];
  level.atoms = from.atoms();
  const std::uint64_t most = depth == 0 ? options_.all_below : 4;
  const std::uint64_t samples = depth == 0 ? options_.cuts_per_step : 2;
  const bool all = count_cuts(level.atoms, most) <= most;
  level.cut.assign(level.atoms.size(), 0);
  if (depth == 0) ++result_.steps;
  const std::int64_t clock = SimulatedClock::us;
  const Timestamp now = owner.is_open() ? owner.life().wall() : owner.now;
  for (std::uint64_t i = 0; (all || i < samples) && !done(); ++i) {
    const bool killed = owner.is_open() && random_.one_in(16);
    if (!all && !killed) choose_cut(random_, level.atoms, level.cut);
    level.disk.on_step = nullptr;
    level.client.stop();
    if (killed) {
      level.disk.become_same(from);
    } else {
      level.disk.become(from, level.atoms, level.cut);
    }
    level.client.history = owner.history;
    level.client.mix = owner.mix;
    level.client.now = now;
    explore_one(depth, killed ? LifeEnd::kill : LifeEnd::power_cut);
    if (level.client.violation) found(level.client, killed ? "after a kill" : describe(from, level));
    if (all && !killed && !next_cut(level.atoms, level.cut)) break;
  }
  level.client.stop();
  SimulatedClock::us = clock;
}

// Opens the topics on the disk of this level. Sometimes the program continues there: it is cut again, or goes
// on until everything is acknowledged.
void DeliveryExplorer::explore_one(std::size_t depth, LifeEnd end) {
  Level& level = *levels_[depth];
  DeliveryClient& client = level.client;
  ++result_.states;
  if (depth > 0) ++result_.in_recovery;
  client.violation.reset();
  const bool deeper = depth + 1 < depth_max && random_.one_in(150);
  if (deeper) watch(level.disk, client, depth + 1);
  client.start(level.disk, end);
  if (client.violation || !client.is_open()) return;
  if (const auto* const carried = client.life().store().carried(); carried != nullptr)
    result_.carried += carried->offsets().empty() ? 0 : 1;
  result_.waiting += client.life().source->schedule().stats().messages != 0 ? 1 : 0;
  result_.letters += client.history.letters.empty() ? 0 : 1;
  for (std::uint64_t i = deeper ? random_.between(2, 8) : 0; i != 0 && !client.violation && !done(); --i) {
    switch (random_.below(8)) {
      case 0: client.publish(1, some_bytes()); break;
      case 1: client.consume(random_); break;
      case 2: client.save(); break;
      case 3:
      case 4: static_cast<void>(client.run_job(random_)); break;
      default: client.turn(110'000);
    }
  }
  level.disk.on_step = nullptr;
  if (client.violation || done() || !random_.one_in(400)) return;
  ++result_.finished;
  client.finish(random_);
}

std::string DeliveryExplorer::describe(const ExplorerStorage& from, const Level& level) {
  std::string undone;
  for (std::size_t i = 0; i < level.atoms.size(); ++i) {
    if (level.cut[i] + 1U == level.atoms[i].versions) continue;
    undone += (undone.empty() ? " " : ", ") + from.describe(level.atoms[i]);
  }
  return "after a power cut that undid" + (undone.empty() ? " nothing" : undone);
}

void DeliveryExplorer::found(const DeliveryClient& client, const std::string& where) {
  if (result_.violation) return;
  result_.violation =
      *client.violation + " (" + where + "; part " + std::to_string(static_cast<int>(options_.part)) +
      ", seed " + std::to_string(options_.seed) + ", state " + std::to_string(result_.states) + ", program " +
      std::to_string(result_.programs) + "; LIGHTQ_DELIVERY_PROGRAM=" + replay_ + " replays that program)";
}

}  // namespace lightq::test
