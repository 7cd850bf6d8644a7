/// Makes the n-th call of an operation fail, for every n until the operation completes.
#include "explorer/failing_calls.hpp"

#include <array>
#include <cerrno>

namespace lightq::test {

namespace {

using Call = ExplorerStorage::Call;

constexpr std::array<const char*, 4> fate_names = {"EIO", "ENOSPC", "a short write", "SIGKILL"};

void append(LogClient& client, std::size_t times, std::size_t bytes) {
  for (; times != 0 && client.log() != nullptr; --times) {
    client.now.us += 10'000;
    static_cast<void>(client.append({bytes}));
  }
}

void work(LogClient& client) {
  client.now.us += 2'000'000;
  if (!client.take_job()) return;
  client.run_job();
  client.finish_job();
}

/// Fills four files. The first is retired into the pool.
void fill_and_drop(LogClient& client) {
  append(client, 5, 3000);
  static_cast<void>(client.flush());
  client.make_room(10'000, {2});
  work(client);
}

}  // namespace

std::vector<FailingCalls::Operation> FailingCalls::operations() {
  const auto some = [](LogClient& client) { append(client, 2, 500); };
  const auto full = [](LogClient& client) { append(client, 1, 3900); };
  return {
      {"the first append", [](LogClient&) {}, [](LogClient& client) { append(client, 1, 100); }},
      {"an append", some, [](LogClient& client) { append(client, 1, 700); }},
      {"an append that rolls", full, [](LogClient& client) { append(client, 1, 700); }},
      {"an append that takes a prepared file",
       [](LogClient& client) {
         append(client, 1, 3000);
         work(client);
       },
       [](LogClient& client) { append(client, 1, 3000); }},
      {"an append that recycles", fill_and_drop, [](LogClient& client) { append(client, 1, 3000); }},
      {"a flush", some, [](LogClient& client) { static_cast<void>(client.flush()); }},
      {"a flush that seals", [](LogClient& client) { append(client, 3, 3000); },
       [](LogClient& client) { static_cast<void>(client.flush()); }},
      {"a job that syncs and prepares", [](LogClient& client) { append(client, 1, 3000); }, work},
      {"a job that retires",
       [](LogClient& client) {
         append(client, 5, 3000);
         client.make_room(10'000, {3});
       },
       work},
      {"making room in the only file", [](LogClient& client) { append(client, 1, 3900); },
       [](LogClient& client) {
         client.make_room(10'000, {100});
         work(client);
       }},
      {"a first commit", some, [](LogClient& client) { static_cast<void>(client.commit(1)); }},
      {"a third commit",
       [](LogClient& client) {
         append(client, 4, 100);
         static_cast<void>(client.commit(1));
         static_cast<void>(client.commit(2));
       },
       [](LogClient& client) { static_cast<void>(client.commit(3)); }},
      {"opening", [](LogClient& client) { append(client, 4, 1500); },
       [](LogClient& client) { client.open(Ending::kill); }},
  };
}

FailingCallsResult FailingCalls::run() {
  for (const Operation& operation : operations()) {
    for (const CallFate fate :
         {CallFate::io_error, CallFate::no_space, CallFate::short_write, CallFate::kill}) {
      for (std::uint64_t n = 0; !result_.violation && fail_call(operation, fate, n); ++n) {
      }
    }
  }
  return result_;
}

// Returns true if the operation made an n-th call, which then failed.
bool FailingCalls::fail_call(const Operation& operation, CallFate fate, std::uint64_t n) {
  ExplorerWorld world;
  Payloads payloads;
  ExplorerStorage disk(world);
  static_cast<void>(disk.make_directory("/topics"));
  disk.settle();
  LogClient client(disk, payloads);
  client.options.capacity_bytes = 20'000;
  client.open(Ending::kill);
  operation.prepare(client);
  sync_failed_ = false;
  if (!run_failing(client, operation, fate, n)) return false;
  ++result_.cases;
  go_on(client, fate == CallFate::kill);
  if (client.violation) {
    result_.violation = *client.violation + " (" + operation.name + ", call " + std::to_string(n) + ": " +
                        fate_names[static_cast<std::size_t>(fate)] + ", seed " + std::to_string(seed_) + ")";
  }
  return true;
}

bool FailingCalls::run_failing(LogClient& client, const Operation& operation, CallFate fate,
                               std::uint64_t n) {
  ExplorerStorage& disk = client.storage();
  bool failed = false;
  // A file that cannot be read stays unreadable during the operation, whichever of its bytes are read.
  std::string unreadable;
  disk.on_call = [&, left = n](Call call, const std::string& path) mutable {
    if (call == Call::read && path == unreadable) return ExplorerStorage::Fault{EIO, 0};
    if (fate == CallFate::short_write && call != Call::write) return ExplorerStorage::Fault{};
    if (fate == CallFate::no_space && call != Call::write && call != Call::allocate)
      return ExplorerStorage::Fault{};
    if (left-- != 0) return ExplorerStorage::Fault{};
    failed = true;
    if (fate == CallFate::kill) throw ProcessKilled{};
    if (fate == CallFate::short_write) return ExplorerStorage::Fault{0, 1 + random_.below(100)};
    if (call == Call::read) unreadable = path;
    sync_failed_ = sync_failed_ || call == Call::sync || call == Call::sync_directory;
    return ExplorerStorage::Fault{fate == CallFate::no_space ? ENOSPC : EIO, 0};
  };
  client.calls_fail = true;
  try {
    operation.run(client);
  } catch (const ProcessKilled&) {
  }
  disk.on_call = nullptr;
  client.calls_fail = false;
  return failed;
}

// Checks the log after the failure. The disk no longer fails.
void FailingCalls::go_on(LogClient& client, bool killed) {
  if (killed || client.log() == nullptr) client.open(Ending::kill);
  if (client.violation) return;
  cut_power(client, true);
  if (client.violation) return;
  if (client.log()->recovery().clean()) {
    client.compare(Ending::kill);
  } else {
    client.open(Ending::kill);  // messages that could not be read before are readable now
  }
  if (client.violation) return;
  client.make_room(4000, client.history.end());
  if (client.append({300}) != log::AppendOutcome::appended && !client.violation) {
    client.violation = "the log takes no more messages: " + client.log()->last_error().text();
  }
  if (!client.flush() && !sync_failed_ && !client.violation) {
    client.violation = "a flush fails for good: " + client.log()->last_error().text();
  }
  work(client);
  if (!client.violation) client.compare(Ending::kill);
  cut_power(client, false);
  // The data of a failed sync exists only in memory now. A process that starts after a kill would take it for
  // durable, so there is no kill after a failed sync.
  if (!client.violation && !sync_failed_) client.open(Ending::kill);
}

// Opens copies of the disk: after a kill only (if `kill_first`), and after several power cuts. In the first
// cut nothing unsynced survives, in the others mixtures do.
void FailingCalls::cut_power(LogClient& client, bool kill_first) {
  ExplorerStorage& disk = client.storage();
  client.note_first();
  const std::vector<CutAtom> atoms = disk.atoms();
  ExplorerWorld& world = disk.world();
  Payloads payloads = client.payloads();
  for (int i = kill_first ? 0 : 1; i < 8 && !client.violation; ++i) {
    Cut cut;
    for (const CutAtom& atom : atoms) {
      const std::uint64_t version = i == 0 ? atom.versions - 1 : i == 1 ? 0 : random_.below(atom.versions);
      cut.push_back(static_cast<std::uint8_t>(version));
    }
    ExplorerStorage copy(world);
    copy.become(disk, atoms, cut);
    LogClient after(copy, payloads);
    after.options = client.options;
    after.history = client.history;
    after.died_opening = true;
    after.open(i == 0 ? Ending::kill : Ending::power_cut);
    ++result_.states;
    client.violation = after.violation;
  }
}

}  // namespace lightq::test
