/// Tests a cursor table against the promises it made, under random commits, flushes, creations, removals,
/// kills, failing calls and power cuts. Other tests flip every bit of a table, and kill a real process.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <thread>

#include "log/saved_state/cursor_table.hpp"
#include "log/storage/posix_storage.hpp"
#include "support/faulty_storage.hpp"
#include "support/random.hpp"
#include "support/temp_dir.hpp"

namespace lightq::log {
namespace {

using test::FaultyStorage;

constexpr std::uint64_t incarnation = 77;
const std::string directory = "/queue";
const std::string path = "/queue/cursors.table";

/// The offsets at which a cursor may stand: its commits in order, beginning with the last one that was
/// flushed.
struct Promise {
  std::vector<std::uint64_t> commits;  // the first one is durable
  std::uint64_t delivered = 0;
  bool surely_there = true;  // false: create or remove failed, so the cursor may exist or not
};

class CursorTableCrashTest : public testing::TestWithParam<int> {
 protected:
  void reopen() {
    table.reset();
    auto opened = CursorTable::open(storage, directory, incarnation);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    table = std::move(*opened);
    ASSERT_TRUE(table->damaged().empty()) << table->damaged()[0].error.text();
  }

  /// Checks that the table has only promised cursors at promised offsets, and all promised cursors.
  void check(bool power_was_cut) {
    std::map<std::string, ListedCursor> found;
    for (const auto& cursor : table->list()) found[cursor.name] = cursor;
    for (const auto& [name, cursor] : found) ASSERT_TRUE(promises.contains(name)) << name << " was invented";
    for (auto& [name, promise] : promises) {
      const auto cursor = found.find(name);
      ASSERT_TRUE(cursor != found.end() || !promise.surely_there) << name << " is forgotten";
      if (cursor == found.end()) continue;
      const std::uint64_t committed = cursor->second.committed.value;
      const auto place = std::ranges::find(promise.commits, committed);
      ASSERT_NE(place, promise.commits.end())
          << name << " at " << committed << ", not one of " << testing::PrintToString(promise.commits);
      ASSERT_GE(cursor->second.delivered, cursor->second.committed);
      if (!power_was_cut && promise.surely_there) {
        ASSERT_EQ(place + 1, promise.commits.end()) << name << " at " << committed;
        ASSERT_EQ(cursor->second.delivered.value, std::max(promise.delivered, committed)) << name;
      }
      // Commits after the one found are lost for good. Earlier ones may become visible again until the next
      // flush.
      if (power_was_cut) promise.commits.erase(place + 1, promise.commits.end());
      promise.delivered = cursor->second.delivered.value;
      (**table->find(name)).note_delivered(cursor->second.delivered);
    }
    if (power_was_cut) resolve();
  }

  /// Makes the present set of cursors certain: those that exist now stay, the others are gone. Called after a
  /// power cut, and when the disk has confirmed the content of the table.
  void resolve() {
    std::erase_if(promises, [&](const auto& entry) { return *table->find(entry.first) == nullptr; });
    for (auto& [name, promise] : promises) {
      if (promise.surely_there) continue;
      const std::uint64_t committed = (**table->find(name)).committed().value;
      std::erase(promise.commits, committed);
      promise.commits.push_back(committed);
      promise.surely_there = true;
    }
  }

  void kill() {
    reopen();
    if (!HasFatalFailure()) check(false);
  }

  void power_cut() {
    table.reset();
    const std::uint64_t share = random.below(4);
    storage.power_cut([&] { return share == 0 || (share != 1 && random.one_in(2)); });
    tear_live_sectors();
    reopen();
    if (!HasFatalFailure()) check(true);
  }

  /// Tears both live copies of random cursors, as a writeback in the middle of commits does.
  void tear_live_sectors() {
    auto& bytes = storage.bytes_of(path);
    for (std::uint64_t block = cursor_table_header_bytes; block < bytes.size(); block += cursor_block_bytes) {
      if (!random.one_in(3)) continue;
      const std::size_t begin = random.below(2) * cursor_copy_bytes;
      const std::size_t end = random.one_in(2) ? 2 * cursor_copy_bytes : begin + random.below(8);
      for (std::size_t at = begin; at < end; ++at) bytes[block + at] ^= random.bytes(1)[0];
    }
    ASSERT_TRUE((*storage.open(path, OpenMode::read_write))->sync().ok());  // so that it is on disk
  }

  void arm_fault() {
    storage.on_call = [this, left = random.below(12)](FaultyStorage::Call call, const std::string&) mutable {
      if (call == FaultyStorage::Call::read || call == FaultyStorage::Call::map ||
          call == FaultyStorage::Call::open || left-- != 0) {
        return FaultyStorage::Fault{};
      }
      left = random.below(12);
      if (call == FaultyStorage::Call::write && random.one_in(2))
        return FaultyStorage::Fault{0, 1 + random.below(60)};
      return FaultyStorage::Fault{random.one_in(2) ? EIO : ENOSPC, 0};
    };
  }

  std::string any_name() { return "c" + std::to_string(random.below(12)); }

  void commit() {
    auto found = table->find(any_name());
    ASSERT_TRUE(found.ok());
    if (*found == nullptr) return;
    Promise& promise = promises[(*found)->name()];
    const std::uint64_t offset = random.below(1'000'000'000);
    (*found)->commit({offset});
    promise.commits.push_back(offset);
    if (random.one_in(3)) {
      promise.delivered = offset + random.below(10);
      (*found)->note_delivered({promise.delivered});
    }
  }

  void create() {
    const std::string name = any_name();
    const std::uint64_t offset = random.below(1'000'000'000);
    const bool is_there = *table->find(name) != nullptr;
    if (const auto created = table->create(name, {offset})) {
      ASSERT_FALSE(is_there);
      promises[name] = {{offset}, offset, true};
      resolve();
    } else if (!is_there) {
      Promise& promise = promises[name];
      promise.commits.push_back(offset);
      promise.surely_there = false;
    }
  }

  void remove() {
    const std::string name = any_name();
    if (*table->find(name) == nullptr) return;
    if (table->remove(name)) {
      promises.erase(name);
      resolve();
    } else {
      promises[name].surely_there = false;
    }
  }

  void flush() {
    if (!table->flush()) return;
    resolve();
    for (auto& [name, promise] : promises) promise.commits = {promise.commits.back()};
  }

  void step(bool faults) {
    if (faults && random.one_in(20)) arm_fault();
    switch (random.below(24)) {
      case 0: create(); break;
      case 1: remove(); break;
      case 2:
      case 3: flush(); break;
      case 4: storage.write_back([this] { return random.one_in(3); }); break;
      case 5:
        storage.on_call = nullptr;
        kill();
        break;
      case 6:
        storage.on_call = nullptr;
        power_cut();
        break;
      default: commit();
    }
  }

  void run(bool faults) {
    auto made = CursorTable::make(storage, directory, incarnation);
    ASSERT_TRUE(made.ok());
    table = std::move(*made);
    for (int i = 0; i < 4000 && !HasFatalFailure(); ++i) step(faults);
  }

  test::Random random{GetParam()};
  FaultyStorage storage;
  std::unique_ptr<CursorTable> table;
  std::map<std::string, Promise> promises;
};

TEST_P(CursorTableCrashTest, KeepsItsPromises) {
  run(false);
}
TEST_P(CursorTableCrashTest, KeepsItsPromisesWhenCallsFail) {
  run(true);
}
INSTANTIATE_TEST_SUITE_P(Seeds, CursorTableCrashTest, testing::Range(0, 12));

/// Flips each bit of a table in turn, and checks that every cursor still stands at one of its `allowed`
/// offsets.
void expect_no_bit_misleads(FaultyStorage& storage,
                            const std::map<std::string, std::vector<Offset>>& allowed) {
  const auto good = storage.bytes_of(path);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    storage.bytes_of(path)[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto opened = CursorTable::open(storage, directory, incarnation);
    if (opened) {
      for (const auto& [name, offsets] : allowed) {
        const auto found = (*opened)->find(name);
        if (!found) continue;
        ASSERT_NE(*found, nullptr) << name << " is forgotten, bit " << bit;
        const auto place = std::ranges::find(offsets, (*found)->committed());
        ASSERT_NE(place, offsets.end()) << name << ", bit " << bit;
        ASSERT_TRUE(place == offsets.begin() || !(*opened)->passed_over().empty()) << bit;
        ASSERT_LE((*found)->delivered().value, 205U) << bit;
      }
      const auto nobody = (*opened)->find("nobody");
      ASSERT_TRUE(!nobody.ok() || *nobody == nullptr);
      ASSERT_LE((*opened)->list().size(), allowed.size());
    } else {
      ASSERT_LT(bit / 8, cursor_table_header_bytes);
      ASSERT_TRUE(opened.error().code == ErrorCode::corrupt ||
                  opened.error().code == ErrorCode::foreign_format);
    }
    storage.bytes_of(path)[bit / 8] = good[bit / 8];
  }
}

TEST(CursorTableBits, FlippedBitsAreHarmlessAfterAFlushAndDetectedBefore) {
  FaultyStorage storage;
  {
    auto table = CursorTable::make(storage, directory, incarnation);
    ASSERT_TRUE(table.ok());
    for (const char* name : {"removed", "a", "b"}) ASSERT_TRUE((*table)->create(name, {7}).ok());
    ASSERT_TRUE((*table)->remove("removed").ok());
    for (const char* name : {"a", "b"}) {
      (**(*table)->find(name)).commit({100});
      (**(*table)->find(name)).commit({200});
      (**(*table)->find(name)).note_delivered({205});
    }
    ASSERT_TRUE((*table)->flush().ok());
  }
  storage.bytes_of(path).resize(cursor_block_position(3));
  expect_no_bit_misleads(storage, {{"a", {{200}}}, {"b", {{200}}}});
  if (testing::Test::HasFatalFailure()) return;
  {
    auto table = CursorTable::open(storage, directory, incarnation);
    ASSERT_TRUE(table.ok());
    (**(*table)->find("a")).commit({150});
  }
  storage.bytes_of(path).resize(cursor_block_position(3));
  expect_no_bit_misleads(storage, {{"a", {{150}, {200}}}, {"b", {{200}}}});
}

TEST(CursorTableThreads, CommitFlushListAndChangeAtOnce) {
  constexpr std::uint64_t commits = 30'000;
  const test::TempDir dir;
  PosixStorage storage;
  {
    auto table = CursorTable::make(storage, dir.path(), incarnation);
    ASSERT_TRUE(table.ok()) << table.error().text();
    std::atomic<int> running = 2;
    std::vector<std::thread> threads;
    for (const char* name : {"a", "b"}) {
      auto created = (*table)->create(name, {0});
      ASSERT_TRUE(created.ok());
      threads.emplace_back([cursor = *created, &running] {
        for (std::uint64_t i = 1; i <= commits; ++i) {
          cursor->note_delivered({i + 1});
          cursor->commit({i});
        }
        --running;
      });
    }
    threads.emplace_back([&] {
      while (running != 0) ASSERT_TRUE((*table)->flush().ok());
    });
    threads.emplace_back([&] {
      while (running != 0) {
        ASSERT_TRUE((*table)->create("passing", {1}).ok());
        ASSERT_TRUE((*table)->remove("passing").ok());
      }
    });
    std::map<std::string, Offset> seen;
    while (running != 0) {
      for (const auto& cursor : (*table)->list()) {
        ASSERT_LE(cursor.committed, cursor.delivered);
        if (cursor.name == "passing") continue;
        ASSERT_LE(seen[cursor.name], cursor.committed);
        seen[cursor.name] = cursor.committed;
      }
    }
    for (auto& thread : threads) thread.join();
  }
  auto table = CursorTable::open(storage, dir.path(), incarnation);
  ASSERT_TRUE(table.ok()) << table.error().text();
  EXPECT_TRUE((*table)->damaged().empty());
  for (const char* name : {"a", "b"}) EXPECT_EQ((**(*table)->find(name)).committed(), Offset{commits});
}

/// Commits and flushes until the process is killed. Reports the last commit begun and the last one done.
struct Progress {
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> done;
};

[[noreturn]] void commit_until_killed(const std::string& directory_path, Progress& progress) {
  PosixStorage storage;
  auto table = CursorTable::open(storage, directory_path, incarnation);
  if (!table) _exit(1);
  const auto cursor = (*table)->find("c");
  if (!cursor || *cursor == nullptr) _exit(2);
  for (std::uint64_t i = (*cursor)->committed().value + 1;; ++i) {
    progress.begun = i;
    (*cursor)->commit({i});
    progress.done = i;
    if (i % 1000 == 0 && !(*table)->flush()) _exit(3);
  }
}

TEST(CursorTableKill, LosesNoCommitOfAKilledProcess) {
  test::Random random;
  const test::TempDir dir;
  PosixStorage storage;
  {
    auto table = CursorTable::make(storage, dir.path(), incarnation);
    ASSERT_TRUE(table.ok());
    ASSERT_TRUE((*table)->create("c", {0}).ok());
  }
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& progress = *new (shared) Progress();
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t until = progress.done + 1 + random.below(4000);
    const pid_t child = fork();
    ASSERT_NE(child, -1);
    if (child == 0) commit_until_killed(dir.path(), progress);
    int status = 0;
    while (progress.done < until && waitpid(child, &status, WNOHANG) == 0) std::this_thread::yield();
    ::kill(child, SIGKILL);
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << WEXITSTATUS(status);
    auto table = CursorTable::open(storage, dir.path(), incarnation);
    ASSERT_TRUE(table.ok()) << table.error().text();
    const Offset committed = (**(*table)->find("c")).committed();
    ASSERT_GE(committed.value, progress.done.load());
    ASSERT_LE(committed.value, progress.begun.load());
    ASSERT_LE((*table)->passed_over().size(), 1U) << "a kill tears one copy at most";
  }
  munmap(shared, sizeof(Progress));
}

}  // namespace
}  // namespace lightq::log
