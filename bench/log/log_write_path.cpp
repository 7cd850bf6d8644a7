/// Measures bare system calls, stores and checksums on this machine's disk, one by one. The results decide
/// how a log should write and read. Prints medians of a few rounds, without a verdict. Layer: bench.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <lightq/base/crc32c.hpp>

#include "log/raw_file.hpp"
#include "support/machine.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace lightq::bench;
using Bytes = std::span<const std::byte>;

constexpr std::size_t file_bytes = 64 << 20;
constexpr std::size_t chunk_bytes = 64 << 10;
constexpr std::size_t pages = file_bytes / page_bytes;
constexpr int rounds = 5;

/// Values by name, in the order of the first appearance.
class Results {
 public:
  void add(const std::string& name, const char* unit, double value) {
    auto [place, is_new] = values_.try_emplace(name);
    if (is_new) order_.emplace_back(name, unit);
    place->second.push_back(value);
  }
  void print() const {
    for (const auto& [name, unit] : order_) {
      const Summary all = summarize(values_.at(name));
      std::printf("%-88s %10.2f (%.2f-%.2f) %s\n", name.c_str(), all.median, all.min, all.max, unit);
    }
  }

 private:
  std::map<std::string, std::vector<double>> values_;
  std::vector<std::pair<std::string, const char*>> order_;
};

Results results;
std::string directory;

std::vector<std::byte> noise(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  std::uint64_t state = 88172645463325252U;
  for (std::byte& byte : made) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<std::byte>(state);
  }
  return made;
}

const std::vector<std::byte> chunk = noise(chunk_bytes);
const std::vector<std::byte> source = noise(8 << 20);

std::uint64_t time_of(const std::function<void()>& work) {
  const std::uint64_t before = now_ns();
  work();
  return now_ns() - before;
}

void record_per(const std::string& name, std::size_t count, const char* unit,
                const std::function<void()>& work) {
  results.add(name, unit, static_cast<double>(time_of(work)) / static_cast<double>(count));
}

enum class Kind { fresh, recycled, recycled_dirty, recycled_cold };
constexpr std::pair<Kind, const char*> kinds[] = {
    {Kind::fresh, "fresh fallocated file"},
    {Kind::recycled, "recycled file, pages in memory, clean"},
    {Kind::recycled_dirty, "recycled file, pages in memory, dirty"},
    {Kind::recycled_cold, "recycled file, pages not in memory"}};

std::unique_ptr<RawFile> make_file(Kind kind) {
  auto file = std::make_unique<RawFile>(directory + "/file", file_bytes);
  if (kind == Kind::fresh) return file;
  file->write_all_of_it(chunk);
  if (kind == Kind::recycled_cold) file->drop_from_memory();
  if (kind == Kind::recycled_dirty) {
    for (std::size_t at = 0; at < file_bytes; at += chunk_bytes) file->write_at(chunk, at);
  }
  return file;
}

constexpr int read_write = PROT_READ | PROT_WRITE;

void store_per_page(const RawMapping& mapping) {
  for (std::size_t at = 0; at < mapping.size(); at += page_bytes) {
    *reinterpret_cast<volatile std::uint64_t*>(mapping.data() + at) = at;
  }
}

void copy_all(const RawMapping& mapping) {
  for (std::size_t at = 0; at < mapping.size(); at += chunk_bytes) {
    std::memcpy(mapping.data() + at, source.data() + at % source.size(), chunk_bytes);
  }
}

constexpr std::size_t message_bytes = 128;
constexpr std::size_t record_size = message_bytes + 4;
constexpr std::size_t records = file_bytes / record_size;
volatile std::uint32_t crc_sink;

enum class Checksum { none, each_record, each_64k };

/// Packs the messages of `source` with their lengths. The checksum covers each record after it was written,
/// or 64 KiB at a time.
void append_records(std::byte* to, Checksum checksum) {
  std::uint32_t crc = 0;
  std::size_t unchecked = 0;
  const std::byte* from = source.data();
  for (std::size_t i = 0, at = 0; i < records; ++i, at += record_size) {
    const std::uint32_t length = message_bytes;
    std::memcpy(to + at, &length, sizeof length);
    std::memcpy(to + at + 4, from, message_bytes);
    from += message_bytes;
    if (from == source.data() + source.size()) from = source.data();
    if (checksum == Checksum::each_record) crc = lightq::crc32c(Bytes{to + at, record_size}, crc);
    if (checksum == Checksum::each_64k && at + record_size - unchecked >= chunk_bytes) {
      crc = lightq::crc32c(Bytes{to + unchecked, at + record_size - unchecked});
      unchecked = at + record_size;
    }
  }
  crc_sink = crc;
}

void measure_stores(Kind kind, const std::string& words) {
  {
    const auto file = make_file(kind);
    const RawMapping mapping(file->fd(), file_bytes, read_write);
    record_per("first store per 4 KiB page, " + words, pages, "ns/page", [&] { store_per_page(mapping); });
    record_per("second store per page (page is mapped and dirty), " + words, pages, "ns/page",
               [&] { store_per_page(mapping); });
    file->sync();
    record_per("store per page after fdatasync (write-protected), " + words, pages, "ns/page",
               [&] { store_per_page(mapping); });
  }
  {
    const auto file = make_file(kind);
    const RawMapping mapping(file->fd(), file_bytes, read_write);
    record_per("MADV_POPULATE_WRITE, " + words, pages, "ns/page",
               [&] { mapping.advise(MADV_POPULATE_WRITE); });
    record_per("first store per page after MADV_POPULATE_WRITE, " + words, pages, "ns/page",
               [&] { store_per_page(mapping); });
  }
}

void measure_copies(Kind kind, const std::string& words) {
  {
    const auto file = make_file(kind);
    record_per("pwrite of 64 KiB, " + words, file_bytes / chunk_bytes, "ns/64 KiB", [&] {
      for (std::size_t at = 0; at < file_bytes; at += chunk_bytes)
        file->write_at(Bytes{source.data() + at % source.size(), chunk_bytes}, at);
    });
  }
  {
    const auto file = make_file(kind);
    const RawMapping mapping(file->fd(), file_bytes, read_write);
    record_per("memcpy of 64 KiB into a new mapping, " + words, file_bytes / chunk_bytes, "ns/64 KiB",
               [&] { copy_all(mapping); });
    record_per("memcpy of 64 KiB into a touched mapping, " + words, file_bytes / chunk_bytes, "ns/64 KiB",
               [&] { copy_all(mapping); });
  }
}

void measure_messages(Kind kind, const std::string& words) {
  const std::pair<Checksum, const char*> checks[] = {{Checksum::none, "no CRC"},
                                                     {Checksum::each_record, "CRC of each 132 B"},
                                                     {Checksum::each_64k, "CRC of 64 KiB at a time"}};
  for (const auto& [checksum, check_words] : checks) {
    const std::string what = std::string("128 B message: memcpy + ") + check_words + ", ";
    const auto file = make_file(kind);
    const RawMapping mapping(file->fd(), file_bytes, read_write);
    const auto append = [&] { append_records(mapping.data(), checksum); };
    record_per(what + "new mapping, " + words, records, "ns/message", append);
    record_per(what + "touched mapping, " + words, records, "ns/message", append);
  }
  const auto file = make_file(kind);
  const RawMapping mapping(file->fd(), file_bytes, read_write);
  mapping.advise(MADV_POPULATE_WRITE);
  record_per(std::string("128 B message: memcpy + CRC of 64 KiB at a time, prefaulted mapping, ") + words,
             records, "ns/message", [&] { append_records(mapping.data(), Checksum::each_64k); });
}

std::uint64_t sum_words(Bytes bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    sum += word;
  }
  return sum;
}

volatile std::uint64_t sum_sink;

void measure_reading() {
  const auto file = make_file(Kind::recycled);
  std::vector<std::byte> buffer(chunk_bytes);
  const auto scan = [&](const RawMapping& mapping) { sum_sink = sum_words({mapping.data(), file_bytes}); };
  {
    const RawMapping mapping(file->fd(), file_bytes, PROT_READ);
    record_per("scan of 64 MiB, sum of words, new read-only mapping", file_bytes >> 20, "ns/MiB",
               [&] { scan(mapping); });
    record_per("scan of 64 MiB, sum of words, touched read-only mapping", file_bytes >> 20, "ns/MiB",
               [&] { scan(mapping); });
  }
  {
    const RawMapping mapping(file->fd(), file_bytes, PROT_READ);
    record_per("MADV_POPULATE_READ of 64 MiB", file_bytes >> 20, "ns/MiB",
               [&] { mapping.advise(MADV_POPULATE_READ); });
  }
  record_per("scan of 64 MiB, sum of words, pread of 64 KiB", file_bytes >> 20, "ns/MiB", [&] {
    for (std::size_t at = 0; at < file_bytes; at += chunk_bytes) {
      require(::pread(file->fd(), buffer.data(), chunk_bytes, static_cast<off_t>(at)) > 0, "cannot read");
      sum_sink = sum_words(buffer);
    }
  });
}

void measure_checksums() {
  std::vector<std::byte> to(chunk_bytes);
  constexpr int repeats = 2000;
  record_per("copy of 64 KiB, then CRC of the copy", repeats, "ns/64 KiB", [&] {
    for (int i = 0; i < repeats; ++i) {
      std::memcpy(to.data(), source.data() + (static_cast<std::size_t>(i) % 128) * chunk_bytes, chunk_bytes);
      crc_sink = lightq::crc32c(to);
    }
  });
  record_per("copy and CRC of 64 KiB, 4 KiB at a time", repeats, "ns/64 KiB", [&] {
    for (int i = 0; i < repeats; ++i) {
      const std::byte* from = source.data() + (static_cast<std::size_t>(i) % 128) * chunk_bytes;
      std::uint32_t crc = 0;
      for (std::size_t at = 0; at < chunk_bytes; at += 4096) {
        std::memcpy(to.data() + at, from + at, 4096);
        crc = lightq::crc32c(Bytes{to.data() + at, 4096}, crc);
      }
      crc_sink = crc;
    }
  });
  record_per("copy and CRC of 64 KiB, 128 B at a time", repeats, "ns/64 KiB", [&] {
    for (int i = 0; i < repeats; ++i) {
      const std::byte* from = source.data() + (static_cast<std::size_t>(i) % 128) * chunk_bytes;
      std::uint32_t crc = 0;
      for (std::size_t at = 0; at < chunk_bytes; at += 128) {
        std::memcpy(to.data() + at, from + at, 128);
        crc = lightq::crc32c(Bytes{to.data() + at, 128}, crc);
      }
      crc_sink = crc;
    }
  });
  record_per("copy of 64 KiB alone", repeats, "ns/64 KiB", [&] {
    for (int i = 0; i < repeats; ++i)
      std::memcpy(to.data(), source.data() + (static_cast<std::size_t>(i) % 128) * chunk_bytes, chunk_bytes);
  });
  record_per("CRC of 64 KiB alone, in cache", repeats, "ns/64 KiB", [&] {
    for (int i = 0; i < repeats; ++i) crc_sink = lightq::crc32c(to);
  });
}

void measure_syncs(Kind kind, const std::string& words) {
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{64 << 10}, std::size_t{1 << 20}}) {
    const std::string size = std::to_string(bytes >> 10) + " KiB, ";
    const auto file = make_file(kind);
    const RawMapping mapping(file->fd(), file_bytes, read_write);
    std::size_t at = 0;
    for (int i = 0; i < 8; ++i, at += bytes) {
      file->write_at(Bytes{source.data(), bytes}, at);
      results.add("fdatasync after pwrite of " + size + words, "us",
                  static_cast<double>(time_of([&] { file->sync(); })) / 1e3);
    }
    for (int i = 0; i < 8; ++i, at += bytes) {
      std::memcpy(mapping.data() + at, source.data(), bytes);
      results.add("fdatasync after stores to " + size + words, "us",
                  static_cast<double>(time_of([&] { file->sync(); })) / 1e3);
    }
    for (int i = 0; i < 8; ++i, at += bytes) {
      std::memcpy(mapping.data() + at, source.data(), bytes);
      results.add("msync after stores to " + size + words, "us",
                  static_cast<double>(time_of(
                      [&] { require(::msync(mapping.data() + at, bytes, MS_SYNC) == 0, "cannot msync"); })) /
                      1e3);
    }
  }
}

/// Appends 1 KiB 100,000 times a second, while another thread calls fdatasync every 10 ms.
void measure_tail(bool mapped) {
  const auto file = make_file(Kind::recycled);
  const RawMapping mapping(file->fd(), file_bytes, read_write);
  mapping.advise(MADV_POPULATE_WRITE);
  std::atomic<bool> done{false};
  std::jthread syncer([&] {
    while (!done) {
      file->sync();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  std::vector<double> took;
  const std::uint64_t begin = now_ns();
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t due = begin + i * 10'000;
    while (now_ns() < due) {
    }
    const std::size_t at = i * 1024 % file_bytes;
    if (mapped) {
      std::memcpy(mapping.data() + at, source.data(), 1024);
    } else {
      file->write_at(Bytes{source.data(), 1024}, at);
    }
    took.push_back(static_cast<double>(now_ns() - due) / 1e3);
  }
  done = true;
  const std::string way = mapped ? "stores to a mapping" : "pwrite";
  results.add("1 KiB at 100 k/s by " + way + ", fdatasync each 10 ms, p50 (from due)", "us",
              percentile(took, 0.5));
  results.add("1 KiB at 100 k/s by " + way + ", fdatasync each 10 ms, p99 (from due)", "us",
              percentile(took, 0.99));
  results.add("1 KiB at 100 k/s by " + way + ", fdatasync each 10 ms, p99.99 (from due)", "us",
              percentile(took, 0.9999));
}

void measure_all() {
  const TempDir scratch;
  directory = scratch.path().string();
  for (int round = 0; round < rounds; ++round) {
    for (const auto& [kind, words] : kinds) measure_stores(kind, words);
    for (const auto& [kind, words] : kinds) measure_copies(kind, words);
    for (const Kind kind : {Kind::fresh, Kind::recycled})
      measure_messages(kind, kinds[static_cast<int>(kind)].second);
    measure_checksums();
    measure_reading();
    std::fprintf(stderr, "round %d of %d\n", round + 1, rounds);
  }
  for (const Kind kind : {Kind::fresh, Kind::recycled})
    measure_syncs(kind, kinds[static_cast<int>(kind)].second);
  for (int i = 0; i < 2; ++i) {
    measure_tail(true);
    measure_tail(false);
  }
}

}  // namespace

int main() {
  try {
    measure_all();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "lightq_bench_log_write_path: %s\n", problem.what());
    return 1;
  }
  std::printf("%s, %s\n", today().c_str(), machine_description().c_str());
  results.print();
  return 0;
}
