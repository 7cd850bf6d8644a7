/// Explores the states in which power cuts and kills may leave an embedded queue.
#include "explorer/queue_explorer.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lightq::test {

using Call = ExplorerStorage::Call;

QueueExplorer::QueueExplorer(const ExplorerOptions& options) : options_(options), random_(options.seed) {
  for (auto& level : levels_) level = std::make_unique<Level>(world_, payloads_);
}

Exploration QueueExplorer::run() {
  while (!done()) {
    begin_program();
    for (std::size_t i = 0; i < options_.program_steps && !done(); ++i) {
      live_client_->now.us += static_cast<std::int64_t>(random_.below(30'000));
      operate(*live_client_);
      if (live_client_->violation) found(*live_client_, "in the program itself");
    }
    live_disks_[live_]->on_step = nullptr;
    live_client_.reset();
  }
  return result_;
}

void QueueExplorer::begin_program() {
  ++result_.programs;
  payloads_.forget_from(0);
  for (auto& disk : live_disks_) disk = std::make_unique<ExplorerStorage>(world_);
  live_ = 0;
  ExplorerStorage& disk = *live_disks_[live_];
  for (std::uint64_t i = random_.below(100); i != 0; --i) static_cast<void>(disk.random());
  static_cast<void>(disk.make_directory("/queues"));
  disk.settle();
  live_client_ = std::make_unique<QueueClient>(disk, payloads_);
  choose_options(live_client_->options);
  size_ = random_.below(random_.one_in(3) ? 2500 : 600);
  watch(disk, *live_client_, 0);
  live_client_->open(Ending::kill);
}

void QueueExplorer::choose_options(QueueOptions& options) {
  options.segment_bytes = limits::queue_segment_bytes_min;
  options.overflow = random_.one_in(2) ? Overflow::reject : Overflow::drop_oldest;
  options.recycled_files_max = random_.below(4);
  if (random_.one_in(3)) options.capacity_bytes = random_.between(6000, 20'000);
  if (random_.one_in(3)) options.retention_bytes = random_.between(4000, 16'000);
  options.drop_committed = random_.one_in(2);
  options.many_writers = random_.one_in(2);
  options.retain_uncommitted = random_.one_in(2);
  switch (random_.below(6)) {
    case 0: options.flush = FlushPolicy::every_append(); break;
    case 1: options.flush = FlushPolicy::every_messages(random_.between(2, 12)); break;
    case 2: options.flush = FlushPolicy::every_bytes(random_.between(500, 4000)); break;
    default: options.flush = FlushPolicy::none();
  }
  const bool small = random_.one_in(2);
  checkpoints_.set_usual();
  if (small) {
    const std::uint64_t reserve_bytes = random_.between(200, 4000);
    checkpoints_.set(reserve_bytes, random_.between(1, 2000));
  }
}

std::size_t QueueExplorer::some_size() {
  return random_.one_in(4) ? random_.below(700) : random_.one_in(40) ? 5000 : size_;
}

void QueueExplorer::operate(QueueClient& client) {
  const std::uint64_t kept = client.history.messages.size() - client.history.first.value;
  const std::uint64_t somewhere = client.history.first.value + random_.below(kept + 1);
  switch (random_.below(30)) {
    case 0: return restart(Ending::kill);
    case 1: return cut_for_real();
    case 2:
    case 3: return with_others([&] { client.flush(); });
    case 4: client.close(); return restart(Ending::kill);
    case 5: return with_others([&] { client.trim({somewhere}); });
    case 6: return with_others([&] { client.maintain(); });
    case 7:
    case 8:
    case 9:
    case 10: return client.commit(some_cursor(), somewhere);
    case 11: return client.commit(some_cursor(), client.history.messages.size());
    case 16: return random_.one_in(3) ? client.remove_cursor(some_cursor()) : fail_a_sync();
    case 12:
    case 13:
    case 14: return client.enqueue_batch(std::vector<std::size_t>(random_.between(1, 4), some_size() / 2));
    case 15: return client.compare(Ending::kill);
    default: return client.enqueue(some_size());
  }
}

std::size_t QueueExplorer::some_cursor() {
  const std::size_t cursor = random_.below(QueueClient::cursors_max);
  return random_.one_in(2) ? 0 : cursor;
}

// Runs a call that works in jobs, as a background thread does. At some of its steps other threads append and
// commit, where the queue's locks permit it.
void QueueExplorer::with_others(const std::function<void()>& call) {
  QueueClient& client = *live_client_;
  ExplorerStorage& disk = client.storage();
  if (!client.options.many_writers || client.options.flush.each_append) return call();
  // Jobs sync, and no lock of the queue is locked during a sync.
  auto asked = std::exchange(disk.on_call, nullptr);
  bool syncs = false;
  disk.on_call = [&](Call kind, const std::string& path) {
    syncs = kind == Call::sync || kind == Call::sync_directory;
    return asked ? asked(kind, path) : ExplorerStorage::Fault{};
  };
  disk.on_step = [&, left = random_.below(4)]() mutable {
    if (done()) return;
    const bool in_sync = std::exchange(syncs, false);
    explore(0, disk, client);
    if (left == 0 || !in_sync || !random_.one_in(2)) return;
    // Steps of this action must not start another one.
    const std::uint64_t once_more = std::exchange(left, 0) - 1;
    act_meanwhile(client);
    left = once_more;
  };
  call();
  disk.on_call = std::move(asked);
  watch(disk, client, 0);
}

void QueueExplorer::act_meanwhile(QueueClient& client) {
  const std::size_t cursor = some_cursor();
  switch (random_.below(4)) {
    case 0:
      if (client.has_cursor(cursor)) client.commit(cursor, client.history.messages.size());
      return;
    case 1: return client.enqueue_batch(std::vector<std::size_t>(random_.between(1, 3), some_size() / 2));
    default: return client.enqueue(some_size());
  }
}

// Lets a sync of the log or of the cursors fail. From then on nothing more is confirmed, and everything that
// was stored stays. The data of the failed sync may never reach the disk, whether the power is cut now or
// after the next start.
void QueueExplorer::fail_a_sync() {
  QueueClient& client = *live_client_;
  client.calls_fail = true;
  client.storage().on_call = [left = 1 + random_.below(4)](Call call, const std::string&) mutable {
    const bool sync = call == Call::sync || call == Call::sync_directory;
    return ExplorerStorage::Fault{sync && left != 0 && --left == 0 ? EIO : 0, 0};
  };
  for (std::uint64_t i = random_.between(2, 12); i != 0 && !done() && !client.violation; --i) {
    client.now.us += 1000;
    switch (random_.below(7)) {
      case 0:
      case 1: with_others([&] { client.flush(); }); break;
      case 2: client.commit(some_cursor(), client.history.messages.size()); break;
      case 3: client.maintain(); break;
      case 4: client.remove_cursor(some_cursor()); break;
      default: client.enqueue(some_size());
    }
  }
  client.storage().on_call = nullptr;
  if (done() || client.violation) return;
  return random_.one_in(2) ? cut_for_real() : restart(Ending::kill);
}

void QueueExplorer::restart(Ending ending) {
  QueueClient& client = *live_client_;
  client.died_opening = !client.is_open() && !client.history.closed && ending == Ending::kill;
  client.open(ending);
}

void QueueExplorer::cut_for_real() {
  QueueClient& client = *live_client_;
  client.note_first();
  client.die();
  ExplorerStorage& before = *live_disks_[live_];
  live_ = 1 - live_;
  ExplorerStorage& after = *live_disks_[live_];
  const std::vector<CutAtom> atoms = before.atoms();
  Cut cut(atoms.size(), 0);
  if (!atoms.empty()) choose_cut(random_, atoms, cut);
  before.on_step = after.on_step = nullptr;
  after.become(before, atoms, cut);
  client.move_to(after);
  watch(after, client, 0);
  restart(Ending::power_cut);
}

// --- Cutting ---

void QueueExplorer::watch(ExplorerStorage& disk, QueueClient& owner, std::size_t depth) {
  disk.on_step = [this, &disk, &owner, depth] {
    if (!done()) explore(depth, disk, owner);
  };
}

void QueueExplorer::explore(std::size_t depth, ExplorerStorage& from, QueueClient& owner) {
  owner.note_first();
  Level& level = *levels_[depth];
  level.atoms = from.atoms();
  const std::uint64_t most = depth == 0 ? options_.all_below : 4;
  const std::uint64_t samples = depth == 0 ? options_.cuts_per_step : 2;
  const bool all = count_cuts(level.atoms, most) <= most;
  level.cut.assign(level.atoms.size(), 0);
  if (depth == 0) ++result_.steps;
  const Timestamp now = live_client_->now;
  for (std::uint64_t i = 0; (all || i < samples) && !done(); ++i) {
    const bool killed = random_.one_in(8);
    if (!all && !killed) choose_cut(random_, level.atoms, level.cut);
    level.disk.on_step = nullptr;
    level.client.die();
    if (killed) {
      level.disk.become_same(from);
    } else {
      level.disk.become(from, level.atoms, level.cut);
    }
    level.client.history = owner.history;
    level.client.cursors = owner.cursors;
    level.client.options = owner.options;
    level.client.now = now;
    level.client.died_opening = !owner.is_open() || owner.died_opening;
    explore_one(depth, killed && owner.opened ? Ending::kill : Ending::power_cut);
    if (level.client.violation) found(level.client, killed ? "after a kill" : describe(from, level));
    if (all && !killed && !next_cut(level.atoms, level.cut)) break;
  }
  level.client.die();
}

// Opens the queue on the disk of this level. Sometimes the program continues there and is cut again.
void QueueExplorer::explore_one(std::size_t depth, Ending ending) {
  Level& level = *levels_[depth];
  QueueClient& client = level.client;
  ++result_.states;
  if (depth > 0) ++result_.in_recovery;
  client.violation.reset();
  const bool deeper = depth + 1 < depth_max && random_.one_in(40);
  if (deeper) watch(level.disk, client, depth + 1);
  client.open(ending);
  const std::size_t messages = payloads_.count();
  for (std::uint64_t i = deeper ? random_.between(1, 6) : 0; i != 0 && !client.violation && !done(); --i) {
    switch (random_.below(5)) {
      case 0: client.flush(); break;
      case 1: client.commit(some_cursor(), client.history.messages.size()); break;
      case 2: client.enqueue_batch({some_size()}); break;
      default: client.enqueue(some_size());
    }
  }
  level.disk.on_step = nullptr;
  if (deeper && !client.violation && !done()) client.open(Ending::kill);
  client.die();
  payloads_.forget_from(messages);
}

std::string QueueExplorer::describe(const ExplorerStorage& from, const Level& level) const {
  std::string undone;
  for (std::size_t i = 0; i < level.atoms.size(); ++i) {
    if (level.cut[i] + 1U == level.atoms[i].versions) continue;
    undone += (undone.empty() ? " " : ", ") + from.describe(level.atoms[i]);
  }
  return "after a power cut that undid" + (undone.empty() ? " nothing" : undone);
}

void QueueExplorer::found(const QueueClient& client, const std::string& where) {
  if (result_.violation) return;
  result_.violation = *client.violation + " (" + where + "; seed " + std::to_string(options_.seed) +
                      ", state " + std::to_string(result_.states) + ", program " +
                      std::to_string(result_.programs) + ")";
}

}  // namespace lightq::test
