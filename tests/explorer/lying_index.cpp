/// Replaces an index by wrong ones and reads with them.
#include "explorer/lying_index.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "log/format/segment_index_file.hpp"
#include "queue/clock.hpp"
#include "queue/engine.hpp"
#include "queue/reader_state.hpp"
#include "support/explorer_storage.hpp"

namespace lightq::test {

namespace {

using Entries = std::vector<log::IndexedBatch>;

constexpr std::uint64_t per_batch = 100;
constexpr std::uint64_t batches = 150;  // more than a segment

std::string text_of(std::uint64_t offset) {
  return "message " + std::to_string(offset) + " of the queue";
}

class LyingIndex {
 public:
  std::optional<std::string> run(std::uint64_t& cases);

 private:
  void fill();
  void tell(const std::function<void(Entries&)>& lie);
  void put(const std::vector<std::byte>& bytes);
  void read(bool thoroughly);
  void read_from(queue::ReaderState& reader, std::uint64_t offset);
  void look_up(queue::Engine& engine, Timestamp time);
  void complain(const std::string& what) {
    if (!violation_) violation_ = what;
  }

  ExplorerWorld world_;
  ExplorerStorage disk_{world_};
  QueueOptions options_;
  std::vector<Timestamp> times_;  // of each batch
  std::string path_;              // of the first segment's index
  log::IndexedSegment segment_;
  Entries entries_;
  std::vector<std::byte> sound_;
  std::uint64_t cases_ = 0;
  std::optional<std::string> violation_;
};

void LyingIndex::fill() {
  static_cast<void>(disk_.make_directory("/queues"));
  options_.segment_bytes = 256 * limits::KiB;
  options_.flush = FlushPolicy::every_bytes(64 * limits::KiB);
  auto engine = queue::Engine::open("/queues/1", options_, disk_, log::DirectoryLock{}).value_or_throw();
  Timestamp now{1'000'000'000};
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    now.us += batch % 7 == 3 ? -15'000 : 10'000;  // the clock is set back at every seventh batch
    queue::test_now = now;
    times_.push_back(now);
    BatchBuilder builder;
    for (std::uint64_t i = 0; i < per_batch; ++i) {
      builder.add(as_byte_view(text_of(batch * per_batch + i)));
    }
    engine->append(builder.finish()).value_or_throw();
  }
  engine->close().value_or_throw();
  const auto first = engine->node_of({0});
  segment_ = {first->header().epoch, first->header().incarnation, first->first_offset(),
              first->end_offset(),   first->end_position(),       first->header().batch_mask};
  path_ = log::segment_index_path(*first);
  const auto file = disk_.open(first->path(), log::OpenMode::read_only);
  const auto index = log::SegmentIndexFile::rebuild(**file, segment_);
  entries_.assign(index->entries().begin(), index->entries().end());
  sound_ = log::SegmentIndexFile::encode(segment_, *index);
  if (entries_.size() < 4 || first->next() == nullptr) complain("the queue is too small");
}

void LyingIndex::put(const std::vector<std::byte>& bytes) {
  if (!disk_.exists(path_)) static_cast<void>(disk_.open(path_, log::OpenMode::create));
  disk_.resize(path_, bytes.size());
  std::copy(bytes.begin(), bytes.end(), disk_.bytes_of(path_).begin());
}

// Writes an index with changed entries and a correct checksum. The index's header stays the same.
void LyingIndex::tell(const std::function<void(Entries&)>& lie) {
  Entries entries = entries_;
  lie(entries);
  std::vector<std::byte> bytes = sound_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::byte* to = bytes.data() + 64 + i * 24;
    store_little_endian(to, entries[i].offset.value);
    store_little_endian(to + 8, entries[i].position);
    store_little_endian(to + 16, entries[i].newest.us);
  }
  store_little_endian(bytes.data() + 12, crc32c(ByteView(bytes).subspan(16)));
  put(bytes);
  read(true);
}

void LyingIndex::read_from(queue::ReaderState& reader, std::uint64_t offset) {
  reader.place({offset});
  const auto found = reader.find_message();
  if (!found) return complain("a read at " + std::to_string(offset) + ": " + found.error().text());
  if (!*found) return complain("nothing is read at " + std::to_string(offset));
  const QueuedMessage message = reader.message();
  const bool right = message.offset.value == offset && message.text() == text_of(offset);
  if (!right) complain("another message is read at offset " + std::to_string(offset));
}

void LyingIndex::look_up(queue::Engine& engine, Timestamp time) {
  const auto found = engine.resolve(Start::at(time));
  if (!found) return complain("a time is not found: " + found.error().text());
  const auto first = std::find_if(times_.begin(), times_.end(), [&](Timestamp at) { return time <= at; });
  const auto expected = static_cast<std::uint64_t>(first - times_.begin()) * per_batch;
  if (found->value != expected) {
    complain("a time is looked for: given was offset " + std::to_string(found->value) + ", not " +
             std::to_string(expected));
  }
}

// Opens the queue and reads single messages. If `thoroughly`, reads from end to end first, because a segment
// that was checked once is not checked again.
void LyingIndex::read(bool thoroughly) {
  ++cases_;
  const auto opened = queue::Engine::open("/queues/1", options_, disk_, log::DirectoryLock{});
  if (!opened) return complain("the queue does not open: " + opened.error().text());
  queue::Engine& engine = **opened;
  queue::ReaderState reader(engine);
  if (thoroughly) {
    std::uint64_t expected = 0;
    for (auto some = reader.take(1000); some && !some->empty(); some = reader.take(1000)) {
      for (const QueuedMessage& message : *some) {
        if (as_text(message.payload) != text_of(expected++)) return complain("the log itself is wrong");
      }
    }
    if (expected != batches * per_batch) return complain("the log itself ends early");
  }
  const std::uint64_t step = thoroughly ? per_batch / 2 + 3 : 1301;
  for (std::uint64_t offset = 0; offset < batches * per_batch && !violation_; offset += step) {
    read_from(reader, offset);
  }
  for (std::size_t i = 0; i < times_.size() && !violation_; i += thoroughly ? 1 : 31) {
    look_up(engine, times_[i]);
  }
}

std::optional<std::string> LyingIndex::run(std::uint64_t& cases) {
  fill();
  put(sound_);
  read(true);
  // The changed entries have the position of another batch, the offset of another batch, or a time before all
  // batches.
  const auto batch_bytes = violation_ ? 0
                                      : (entries_[1].position - entries_[0].position) /
                                            (distance(entries_[0].offset, entries_[1].offset) / per_batch);
  const auto each = [&](const std::function<void(log::IndexedBatch&)>& change) {
    if (violation_) return;
    tell([&](Entries& entries) { std::for_each(entries.begin(), entries.end(), change); });
  };
  each([&](log::IndexedBatch& entry) { entry.position += batch_bytes; });
  each([](log::IndexedBatch& entry) { entry.offset = entry.offset + per_batch; });
  each([](log::IndexedBatch& entry) { entry.offset = entry.offset + 7; });
  each([](log::IndexedBatch& entry) { entry.position += 1; });
  each([](log::IndexedBatch& entry) { entry.newest = log::SegmentIndex::before_all; });
  for (std::size_t bit = 0; bit < 8 * sound_.size() && !violation_; ++bit) {
    std::vector<std::byte> bytes = sound_;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    put(bytes);
    read(false);
  }
  queue::test_now = {};
  cases += cases_;
  return violation_;
}

}  // namespace

std::optional<std::string> read_by_lying_indexes(std::uint64_t& cases) {
  return LyingIndex().run(cases);
}

}  // namespace lightq::test
