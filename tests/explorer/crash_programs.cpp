/// Explores the states in which power cuts may leave a log. This file has the programs that are cut.
#include <algorithm>
#include <cerrno>

#include "explorer/crash_explorer.hpp"

namespace lightq::test {

using Call = ExplorerStorage::Call;

void CrashExplorer::begin_program() {
  ++result_.programs;
  live_client_.reset();
  payloads_.forget_from(0);
  for (auto& disk : live_disks_) disk = std::make_unique<ExplorerStorage>(world_);
  live_ = 0;
  ExplorerStorage& disk = *live_disks_[live_];
  for (std::uint64_t i = random_.below(100); i != 0; --i) static_cast<void>(disk.random());
  static_cast<void>(disk.make_directory("/topics"));
  disk.settle();
  live_client_ = std::make_unique<LogClient>(disk, payloads_);
  choose_options();
  choose_sizes();
  sync_has_failed_ = false;
  watch(disk, *live_client_, 0, 1);
  live_client_->open(Ending::kill);
}

// Chooses random options. With small distances the log writes a checkpoint every few messages, and the next
// messages soon lie beyond it.
void CrashExplorer::choose_options() {
  log::SegmentLogOptions& options = live_client_->options;
  options.segment_bytes = options_.segment_bytes;
  options.mapped_writes = options_.mapped;
  if (options_.encrypted) options.ciphers = keys_.get();
  if (random_.one_in(2)) options.retention_bytes = random_.between(4000, 16'000);
  if (random_.one_in(3)) options.capacity_bytes = random_.between(6000, 20'000);
  const bool small = options_.small_checkpoints && random_.one_in(2);
  checkpoints_.set_usual();
  if (small) {
    const std::uint64_t reserve_bytes = random_.between(200, 4000);
    checkpoints_.set(reserve_bytes, random_.between(1, 2000));
  }
  if (!options_.mapped) return;
  if (random_.one_in(2)) options.flush_interval_ms = 0;
  options.prefault = random_.one_in(2);
  live_client_->on_store = [this] {
    if (!done() && live_client_->log() != nullptr) live_client_->storage().look();
  };
}

// Chooses the message sizes of a program. A torn batch can complete another one only if both begin with the
// same bytes. A header must cross a sector border, and sizes must repeat. So half of the programs have
// batches that end at such positions.
void CrashExplorer::choose_sizes() {
  constexpr std::size_t around = batch_layout::header_bytes + record_bytes(0);
  const bool at_borders = random_.one_in(2);
  const bool alike = random_.one_in(2);
  for (std::size_t& size : sizes_) {
    size = random_.below(random_.one_in(4) ? 3000 : 700);
    if (at_borders)
      size = random_.between(1, 3) * ExplorerStorage::sector_bytes - random_.below(4) * 8 - around;
  }
  if (alike) sizes_.fill(sizes_[0]);
}

std::vector<std::size_t> CrashExplorer::some_sizes() {
  std::vector<std::size_t> sizes(random_.one_in(3) ? 2 : 1);
  for (std::size_t& size : sizes) size = sizes_[random_.below(sizes_.size())];
  if (random_.one_in(40)) sizes[0] = 6000;  // needs a file larger than segment_bytes
  return sizes;
}

void CrashExplorer::append_some() {
  if (options_.mapped && !random_.one_in(5)) return pack_some();
  const auto outcome = live_client_->append(some_sizes());
  if (outcome == log::AppendOutcome::full) {
    live_client_->make_room(4000, {live_client_->history.first.value + random_.below(40)});
  }
}

void CrashExplorer::pack_some() {
  const auto outcome = live_client_->pack(sizes_[random_.below(sizes_.size())]);
  if (outcome == log::AppendOutcome::full) {
    live_client_->make_room(4000, {live_client_->history.first.value + random_.below(40)});
  }
}

void CrashExplorer::kill_in_a_store() {
  if (!options_.mapped) return;
  for (std::uint64_t i = random_.below(4); i != 0; --i) pack_some();
  if (random_.one_in(2)) {
    live_client_->pack_half(sizes_[random_.below(sizes_.size())], random_.below(9));
  } else {
    live_client_->finish_batch_half(random_.below(9));
  }
  restart(Ending::kill);
}

void CrashExplorer::close_and_go_on() {
  static_cast<void>(live_client_->close_log());
  if (random_.one_in(2)) restart(Ending::kill);
}

void CrashExplorer::operate() {
  LogClient& client = *live_client_;
  client.now.us += static_cast<std::int64_t>(random_.below(60'000));
  switch (random_.below(34)) {
    case 0: return restart(Ending::kill);
    case 1: return random_.one_in(2) ? cut_for_real() : kill_in_a_call();
    case 2:
    case 3: static_cast<void>(client.flush()); return;
    case 4: client.maintain(); return;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10: return work_on_job();
    case 11:
    case 12: static_cast<void>(client.commit(random_.below(client.history.messages.size() + 1))); return;
    case 13:
      if (random_.one_in(2)) client.donate(random_.between(1, 12), sizes_[random_.below(sizes_.size())]);
      return;
    case 14: return fail_a_sync();
    case 15: return look();
    case 16: return close_and_go_on();
    case 17: return kill_in_a_store();
    default: return append_some();
  }
}

// Runs the three parts of a job, with other operations in between. Appends also happen while the job runs, as
// on the thread of the log.
void CrashExplorer::work_on_job() {
  LogClient& client = *live_client_;
  if (!client.take_job()) return;
  if (random_.one_in(3)) append_some();
  ExplorerStorage& disk = client.storage();
  disk.on_step = [this, &client, &disk, appending = false]() mutable {
    if (done()) return;
    explore(0, disk, client);
    // The log's thread would wait here until the job has named that segment.
    if (disk.being_renamed().ends_with(log::next_prepared_name)) return;
    if (appending || !random_.one_in(4)) return;
    appending = true;
    append_some();
    appending = false;
  };
  client.run_job();
  watch(disk, client, 0, 1);
  if (random_.one_in(3)) append_some();
  client.finish_job();
}

void CrashExplorer::look() {
  LogClient& client = *live_client_;
  client.compare(Ending::kill);
}

// Lets a sync fail. The data of a failed sync may never reach the disk, and later syncs report no error for
// it. A process that starts before the power is cut would read that data as if it were on disk. So this life
// ends with a power cut.
void CrashExplorer::fail_a_sync() {
  if (!random_.one_in(3)) return;
  ExplorerStorage& disk = live_client_->storage();
  append_some();
  live_client_->calls_fail = true;
  disk.on_call = [left = 1 + random_.below(2)](Call call, const std::string&) mutable {
    const bool sync = call == Call::sync || call == Call::sync_directory;
    return ExplorerStorage::Fault{sync && --left == 0 ? EIO : 0, 0};
  };
  static_cast<void>(live_client_->flush());
  disk.on_call = nullptr;
  live_client_->calls_fail = false;
  for (std::uint64_t i = random_.below(6); i != 0 && !done(); --i) {
    live_client_->now.us += 200'000;
    append_some();
    if (random_.one_in(3)) static_cast<void>(live_client_->flush());
    if (random_.one_in(3)) live_client_->maintain();
    if (random_.one_in(3)) live_client_->make_room(20'000, live_client_->history.end());
    work_on_job();
  }
  if (!done()) cut_for_real();
}

void CrashExplorer::kill_in_a_call() {
  LogClient& client = *live_client_;
  client.storage().on_call = [left = random_.below(6)](Call, const std::string&) mutable {
    if (left-- == 0) throw ProcessKilled{};
    return ExplorerStorage::Fault{};
  };
  try {
    while (!done()) {
      append_some();
      if (random_.one_in(2)) static_cast<void>(client.flush());
      if (random_.one_in(2))
        static_cast<void>(client.commit(random_.below(client.history.messages.size() + 1)));
      client.maintain();
    }
  } catch (const ProcessKilled&) {
    restart(Ending::kill);
  }
  client.storage().on_call = nullptr;
}

void CrashExplorer::restart(Ending ending) {
  live_client_->died_opening = live_client_->log() == nullptr && ending == Ending::kill;
  live_client_->storage().on_call = nullptr;
  if (options_.encrypted && random_.one_in(4)) live_client_->options.ciphers = newer_keys_.get();
  live_client_->open(ending);
}

void CrashExplorer::cut_for_real() {
  LogClient& client = *live_client_;
  client.note_first();
  client.close();
  ExplorerStorage& before = *live_disks_[live_];
  live_ = 1 - live_;
  ExplorerStorage& after = *live_disks_[live_];
  const std::vector<CutAtom> atoms = before.atoms();
  Cut cut(atoms.size(), 0);
  if (!atoms.empty()) choose_cut(random_, atoms, cut);
  after.on_step = nullptr;
  after.become(before, atoms, cut);
  before.on_step = nullptr;
  client.move_to(after);
  watch(after, client, 0, 1);
  restart(Ending::power_cut);
}

}  // namespace lightq::test
