/// Compares an embedded queue with a plain model under random operations: appends, drops, closes, kills and
/// power cuts. Every message that can be read must be the one appended at its offset.
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "queue/engine.hpp"
#include "queue/queue_support.hpp"
#include "queue/reader_state.hpp"
#include "support/faulty_storage.hpp"
#include "support/random.hpp"

namespace lightq::test {
namespace {

/// The expected state of a named cursor.
struct ModelCursor {
  Offset committed;
  // Offsets that a power cut may leave: the last flushed commit and each later one.
  std::set<std::uint64_t> maybe;
  log::TableCursor* open = nullptr;
};

class QueueModel {
 public:
  QueueModel(Random& random, std::string directory, const QueueOptions& options)
      : random_(random), directory_(std::move(directory)), options_(options) {
    open();
  }

  void step() {
    const std::uint64_t choice = random_.below(1000);
    if (choice < 450) {
      append_one();
    } else if (choice < 600) {
      append_batch();
    } else if (choice < 800) {
      read_on();
    } else if (choice < 900) {
      commit();
    } else if (choice < 920) {
      rewind();
    } else if (choice < 940) {
      new_or_removed_cursor();
    } else if (choice < 960) {
      flush();
    } else if (choice < 975) {
      trim();
    } else if (choice < 985) {
      engine_->maintain();
      check_first();
    } else if (choice < 988) {
      check_everything();
    } else {
      end_and_open();
    }
  }
  void check_everything() {
    check_first();
    std::uint64_t at = engine_->first_offset().value;
    queue::ReaderState reader(*engine_);
    reader.place({at});
    for (;;) {
      const auto found = reader.find_message();
      if (!found) {
        ASSERT_EQ(ErrorCode::corrupt, found.error().code) << found.error().text();
        for (; at < reader.position().value; ++at) ASSERT_TRUE(lost_.contains(at)) << found.error().text();
        continue;
      }
      if (!*found) break;
      const QueuedMessage message = reader.take_message();
      // Messages that were reported as lost are skipped without another error.
      for (; at < message.offset.value; ++at) ASSERT_TRUE(lost_.contains(at)) << at << " was passed over";
      ASSERT_EQ(at, message.offset.value);
      check_message(message);
      ++at;
    }
    for (; at < next(); ++at) ASSERT_TRUE(lost_.contains(at)) << at << " is not at the end";
  }
  [[nodiscard]] std::uint64_t power_cuts() const { return power_cuts_; }
  [[nodiscard]] std::uint64_t kills() const { return kills_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_.size(); }

 private:
  [[nodiscard]] std::uint64_t next() const { return texts_.size(); }

  std::string new_text() {
    const std::size_t bytes = random_.one_in(60) ? random_.below(9000) : random_.below(120);
    return text_of(bytes, random_.below(1'000'000'000));
  }

  void appended(const Result<Offset>& offset, std::vector<std::string> texts) {
    if (!offset) {
      const bool full = options_.overflow == Overflow::reject && options_.capacity_messages != 0;
      ASSERT_TRUE(full && offset.error().code == ErrorCode::limit_reached) << offset.error().text();
    } else {
      ASSERT_EQ(next(), offset->value);
      for (auto& text : texts) texts_.push_back(std::move(text));
    }
    ASSERT_EQ(next(), engine_->next_offset().value);
    check_first();
    if (options_.flush.each_append) {
      ASSERT_EQ(next(), engine_->durable_offset().value);
    }
  }
  void append_one() {
    const std::string text = new_text();
    appended(engine_->enqueue(as_byte_view(text)), {text});
  }
  void append_batch() {
    BatchBuilder builder;
    std::vector<std::string> texts;
    for (std::uint64_t i = random_.between(1, 20); i != 0; --i) {
      texts.push_back(new_text());
      builder.add(as_byte_view(texts.back()));
    }
    appended(engine_->append(builder.finish()), texts);
  }

  void check_message(const QueuedMessage& message) {
    const std::uint64_t offset = message.offset.value;
    ASSERT_LT(offset, next());
    ASSERT_EQ(texts_[offset], message.text()) << offset;
  }
  // Reads with one of several readers. They keep their positions while everything else happens.
  void read_on() {
    const std::size_t which = random_.below(readers_.size());
    if (readers_[which] == nullptr || random_.one_in(10)) {
      readers_[which] = std::make_unique<queue::ReaderState>(*engine_);
      readers_[which]->place({random_.between(engine_->first_offset().value, next())});
    }
    queue::ReaderState& reader = *readers_[which];
    const Offset before = reader.position();
    if (random_.one_in(3)) {
      const auto some = reader.take(random_.between(1, 50));
      if (!some) return check_damage(before, reader.position(), some.error());
      for (const QueuedMessage& message : *some) check_message(message);
      return;
    }
    if (random_.one_in(5)) {
      const Offset last = before + random_.below(100);
      const auto some = reader.range(before, last);
      if (!some) return check_damage(before, reader.position(), some.error());
      for (const QueuedMessage& message : *some) {
        ASSERT_LT(message.offset, last);
        check_message(message);
      }
      return;
    }
    for (std::uint64_t i = random_.below(30); i != 0; --i) {
      const Offset here = reader.position();
      const auto found = reader.find_message();
      if (!found) return check_damage(here, reader.position(), found.error());
      if (!*found) return;
      check_message(reader.take_message());
    }
  }
  void check_damage(Offset from, Offset to, const Error& error) {
    ASSERT_EQ(ErrorCode::corrupt, error.code) << error.text();
    ASSERT_LT(from, to);
    bool any = false;
    for (std::uint64_t at = from.value; at < to.value; ++at) any = any || lost_.contains(at);
    ASSERT_TRUE(any) << error.text();
  }

  [[nodiscard]] Offset kept_offset() { return {random_.between(engine_->first_offset().value, next())}; }
  ModelCursor* any_cursor() {
    if (cursors_.empty()) return nullptr;
    auto at = cursors_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.below(cursors_.size())));
    ModelCursor& cursor = at->second;
    if (cursor.open == nullptr) {
      const auto taken = engine_->take_cursor(at->first, Start::next());
      EXPECT_TRUE(taken.ok()) << taken.error().text();
      if (!taken) return nullptr;
      cursor.open = *taken;
    }
    EXPECT_EQ(cursor.committed, cursor.open->committed());
    return &cursor;
  }
  void commit_at(ModelCursor& cursor, Offset offset) {
    cursor.open->commit(offset);
    cursor.committed = offset;
    cursor.maybe.insert(offset.value);
    engine_->committed(*cursor.open);
    check_first();
  }
  void commit() {
    ModelCursor* cursor = any_cursor();
    if (cursor == nullptr) return;
    const std::uint64_t from = std::max(cursor->committed, engine_->first_offset()).value;
    commit_at(*cursor, {std::min(next(), from + random_.below(80))});
  }
  void rewind() {
    if (ModelCursor* cursor = any_cursor()) commit_at(*cursor, kept_offset());
  }
  void new_or_removed_cursor() {
    const std::string name = "cursor" + std::to_string(random_.below(4));
    const auto known = cursors_.find(name);
    if (known == cursors_.end()) {
      const Offset at = kept_offset();
      const auto taken = engine_->take_cursor(name, Start::at(at));
      ASSERT_TRUE(taken.ok()) << taken.error().text();
      ASSERT_EQ(at, (*taken)->committed());
      cursors_[name] = {at, {at.value}, *taken};
      return;
    }
    if (known->second.open != nullptr) engine_->give_back(*known->second.open);
    ASSERT_TRUE(engine_->remove_cursor(name).ok());
    cursors_.erase(known);
    check_first();
  }

  void flush() {
    const auto flushed = engine_->flush();
    ASSERT_TRUE(flushed.ok()) << flushed.error().text();
    ASSERT_EQ(next(), engine_->durable_offset().value);
    for (auto& [name, cursor] : cursors_) cursor.maybe = {cursor.committed.value};
  }
  void trim() {
    const Offset before = kept_offset();
    trimmed_ = std::max(trimmed_, before);
    const auto trimmed = engine_->trim(before);
    ASSERT_TRUE(trimmed.ok()) << trimmed.error().text();
    check_first();
  }
  // Checks that first_offset rises only past messages that may be dropped: those that were trimmed, committed
  // by all cursors, or beyond the capacity or retention.
  void check_first() {
    Offset allowed = trimmed_;
    if (options_.overflow == Overflow::drop_oldest && options_.capacity_messages != 0) allowed = {next()};
    if (options_.retention_messages != 0 && cursors_.empty()) allowed = {next()};
    std::uint64_t least = ~std::uint64_t{0};
    for (const auto& [name, cursor] : cursors_) least = std::min(least, cursor.committed.value);
    if (!cursors_.empty()) allowed = std::max(allowed, Offset{least});
    while (lost_.contains(allowed.value)) allowed = allowed + 1;
    dropped_ = std::max(dropped_, engine_->first_offset());
    if (first_seen_ < engine_->first_offset()) {
      ASSERT_LE(engine_->first_offset(), allowed);
      first_seen_ = engine_->first_offset();
    }
  }

  // --- Ending and opening again ---
  void end_and_open() {
    for (auto& reader : readers_) reader.reset();
    const std::uint64_t how = random_.below(10);
    durable_ = engine_->durable_offset();
    if (how < 4) {
      const auto closed = engine_->close();
      ASSERT_TRUE(closed.ok()) << closed.error().text();
      for (auto& [name, cursor] : cursors_) cursor.maybe = {cursor.committed.value};
      durable_ = {next()};
      forget();
      open();
      ASSERT_TRUE(engine_->recovery().clean || last_file_has_lost_its_header());
      ASSERT_EQ(0U, engine_->recovery().scanned_bytes);
    } else if (how < 7) {
      ++kills_;
      kill();
      open();
    } else {
      ++power_cuts_;
      kill();
      // Out of three: 0 lets no sector survive, 3 lets all survive.
      const std::uint64_t survive = random_.below(4);
      if (random_.one_in(3)) storage_.write_back([&] { return random_.one_in(2); });
      storage_.power_cut([&] { return random_.below(3) < survive; });
      power_was_cut_ = true;
      open();
      power_was_cut_ = false;
    }
    check_everything();
  }
  // Returns true if a power cut destroyed the header of the last file, and nothing was appended since. The
  // queue then has no file in which to record that it was closed.
  [[nodiscard]] bool last_file_has_lost_its_header() const {
    const auto& damaged = engine_->recovery().damaged;
    return !damaged.empty() && damaged.back().begin_position == 0 && damaged.back().next.value == next();
  }
  // Keeps the files as the process left them: discards all writes of the engine's destructor.
  void kill() {
    std::map<std::string, std::vector<std::byte>> left;
    for (const std::string& path : storage_.paths()) left[path] = storage_.bytes_of(path);
    storage_.on_call = [](FaultyStorage::Call, const std::string&) { return FaultyStorage::Fault{EIO, 0}; };
    forget();
    storage_.on_call = nullptr;
    for (const auto& [path, bytes] : left) storage_.bytes_of(path) = bytes;
  }
  void forget() {
    for (auto& [name, cursor] : cursors_) cursor.open = nullptr;
    engine_.reset();
  }
  void open() {
    auto opened = queue::Engine::open(directory_, options_, storage_);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    engine_ = std::move(*opened);
    if (power_was_cut_) {
      adopt_what_is_left();
    } else {
      ASSERT_EQ(next(), engine_->next_offset().value);
      // Dropped messages may be visible again if their file had not been retired yet.
      first_seen_ = std::min(first_seen_, engine_->first_offset());
    }
    check_cursors();
    check_first();
  }
  void adopt_what_is_left() {
    const std::uint64_t left = engine_->next_offset().value;
    ASSERT_LE(durable_.value, left) << "durable messages are lost";
    ASSERT_LE(left, next()) << "messages that were never appended";
    texts_.resize(left);
    lost_.erase(lost_.lower_bound(left), lost_.end());
    for (const DamagedMessages& damaged : engine_->recovery().damaged) {
      for (std::uint64_t at = damaged.first.value; at < damaged.next.value; ++at) {
        // A dropped file is never synced, so it may be visible again and damaged.
        const bool may_be = lost_.contains(at) || Offset{at} < dropped_;
        ASSERT_TRUE(may_be || durable_.value <= at) << "a durable message is damaged: " << damaged.file;
        lost_.insert(at);
      }
    }
    first_seen_ = engine_->first_offset();
    trimmed_ = std::min(trimmed_, Offset{left});
    dropped_ = std::min(dropped_, Offset{left});
  }
  void check_cursors() {
    std::map<std::string, Offset> there;
    for (const CursorState& cursor : engine_->stats().cursors) there[cursor.name] = cursor.committed;
    ASSERT_EQ(cursors_.size(), there.size());
    for (auto& [name, cursor] : cursors_) {
      ASSERT_TRUE(there.contains(name)) << name;
      const Offset found = there[name];
      if (!power_was_cut_) {
        ASSERT_EQ(cursor.committed, found) << name;
        continue;
      }
      bool one_of_them = false;
      for (const std::uint64_t maybe : cursor.maybe) one_of_them |= std::min(maybe, next()) == found.value;
      ASSERT_TRUE(one_of_them) << name << " is at " << found.value;
      cursor.committed = found;
      cursor.maybe = {found.value};
    }
  }

  Random& random_;
  const std::string directory_;
  const QueueOptions options_;
  FaultyStorage storage_;
  std::unique_ptr<queue::Engine> engine_;
  std::vector<std::unique_ptr<queue::ReaderState>> readers_{3};
  std::vector<std::string> texts_;  // by offset, beginning at 0
  std::set<std::uint64_t> lost_;    // messages in the middle that a power cut destroyed; all were reported
  std::map<std::string, ModelCursor> cursors_;
  Offset durable_;
  Offset trimmed_;
  Offset dropped_;  // the highest first offset so far
  Offset first_seen_;
  bool power_was_cut_ = false;
  std::uint64_t power_cuts_ = 0;
  std::uint64_t kills_ = 0;
};

struct Setting {
  const char* name;
  QueueOptions options;
};

std::vector<Setting> settings() {
  QueueOptions base;
  base.segment_bytes = 4 * limits::KiB;
  auto none = base;
  auto larger = base;
  larger.segment_bytes = 40'000;
  larger.drop_committed = false;
  larger.retention_messages = 300;
  auto bytes = base;
  bytes.flush = FlushPolicy::every_bytes(20'000);
  auto numbers = base;
  numbers.flush = FlushPolicy::every_messages(50);
  numbers.segment_messages_max = 30;
  numbers.capacity_messages = 500;
  numbers.overflow = Overflow::drop_oldest;
  auto each = base;
  each.flush = FlushPolicy::every_append();
  each.capacity_messages = 500;
  each.overflow = Overflow::reject;
  auto small_none = none;
  small_none.segment_messages_max = 7;
  small_none.capacity_messages = 300;
  small_none.overflow = Overflow::drop_oldest;
  small_none.recycled_files_max = 1;
  return {{"none", none},         {"none_larger", larger},
          {"every_bytes", bytes}, {"every_messages", numbers},
          {"each_append", each},  {"none_small", small_none}};
}

class QueueModelTest : public QueueTest, public testing::WithParamInterface<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Settings, QueueModelTest, testing::Range(std::size_t{0}, settings().size()),
                         [](const auto& param) { return settings()[param.param].name; });

// Runs over a million steps in all, also under the sanitizers. LIGHTQ_STEPS=1000000 runs more.
TEST_P(QueueModelTest, MatchesAPlainModel) {
  const char* given = std::getenv("LIGHTQ_STEPS");
  const std::uint64_t steps = given != nullptr ? std::strtoull(given, nullptr, 10) : 200'000;
  constexpr std::uint64_t each = 1000;
  std::uint64_t kills = 0;
  std::uint64_t cuts = 0;
  for (std::uint64_t run = 0; run * each < steps; ++run) {
    Random random(static_cast<int>(run));
    std::filesystem::remove_all(directory);
    QueueModel model(random, directory, settings()[GetParam()].options);
    for (std::uint64_t i = 0; i < each && !HasFailure(); ++i) model.step();
    if (!HasFailure()) model.check_everything();
    kills += model.kills();
    cuts += model.power_cuts();
    if (HasFailure()) FAIL() << "in run " << run;
  }
  std::cout << steps << " operations, " << kills << " kills, " << cuts << " power cuts\n";
}

}  // namespace
}  // namespace lightq::test
