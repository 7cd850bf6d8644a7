/// Suite `log`: batches beside the bare call that writes them, and reading beside a plain scan. Layer: bench.
#include <algorithm>

#include "log/log_suite.hpp"
#include "log/raw_file.hpp"

namespace lightq::bench {
namespace {

constexpr std::uint64_t segment_bytes = 64 * MiB;
constexpr std::uint64_t segments = 4;
constexpr std::size_t packed_bytes = 64 * 1024;
constexpr std::uint64_t burst_bytes = 32 * MiB;  // below the unsynced bytes at which a writer must wait

/// Returns batches of just under 64 KiB, together larger than the processor's second-level cache.
std::vector<std::unique_ptr<BatchBuilder>> packed_batches(std::size_t message_bytes) {
  std::vector<std::unique_ptr<BatchBuilder>> batches;
  NumberedMessages messages(message_bytes);
  std::uint64_t number = 0;
  for (int i = 0; i < 64; ++i) {
    auto batch = std::make_unique<BatchBuilder>();
    while (batch->size_bytes() + record_bytes(message_bytes) <= packed_bytes)
      batch->add(messages.at(number++));
    batches.push_back(std::move(batch));
  }
  return batches;
}

/// Returns the GB/s of `work(i)` for batches of `batch_bytes`, in bursts. Does not measure `between`, which
/// runs between bursts.
template <typename Work, typename Between>
double rate_of(std::uint64_t bytes, std::size_t batch_bytes, Work&& work, Between&& between) {
  const std::uint64_t count = bytes / batch_bytes;
  const std::uint64_t burst = burst_bytes / batch_bytes;
  std::uint64_t took = 0;
  for (std::uint64_t i = 0; i < count;) {
    const std::uint64_t end = std::min(count, i + burst);
    const std::uint64_t begin = now_ns();
    for (; i < end; ++i) work(i);
    took += now_ns() - begin;
    between();
    throw_if_stopped();
  }
  return static_cast<double>(count * batch_bytes) / static_cast<double>(took);
}

struct BareCall {
  std::string key;
  std::string title;
  std::string reference_name;
  FlushPolicy flush;
  bool mapped = false;
};

/// A file that pwrite has filled before the measurement, as a recycled file was. If the measured call stores
/// into a mapping, all pages of the mapping are present.
class BareFile {
 public:
  BareFile(const std::string& path, const std::vector<std::vector<std::byte>>& batches, std::size_t first,
           bool mapped)
      : batches_(batches),
        batch_bytes_(batches.front().size()),
        first_(first),
        mapped_(mapped),
        file_(path, segments * segment_bytes),
        mapping_(file_.fd(), file_.size(), PROT_READ | PROT_WRITE),
        places_((file_.size() - first) / batch_bytes_) {
    for (std::uint64_t i = 0; i < places_; ++i) file_.write_at(batches_[i % batches_.size()], position(i));
    file_.sync();
    if (mapped_) mapping_.advise(MADV_POPULATE_WRITE);
  }

  double rate(std::uint64_t bytes) {
    return rate_of(
        bytes, batch_bytes_, [&](std::uint64_t i) { write(batches_[i % batches_.size()], position(i)); },
        [&] {
          if (!mapped_) file_.sync();
        });
  }

 private:
  [[nodiscard]] std::size_t position(std::uint64_t i) const { return first_ + i % places_ * batch_bytes_; }
  void write(ByteView batch, std::size_t at) {
    if (mapped_) {
      std::memcpy(mapping_.data() + at, batch.data(), batch.size());
    } else {
      file_.write_at(batch, at);
    }
  }

  const std::vector<std::vector<std::byte>>& batches_;
  const std::size_t batch_bytes_;
  const std::size_t first_;
  const bool mapped_;
  RawFile file_;
  RawMapping mapping_;
  const std::uint64_t places_;
};

void compare_batches(LogSuite& suite, const BareCall& call) {
  const Scratch scratch;
  QueueOptions options = recycling_options(segment_bytes, segments);
  options.flush = call.flush;
  // The reference maps its whole file. Our queue maps as many bytes, and also the next segment and the
  // segments that wait to be recycled.
  options.mapped_bytes_max *= 2;
  Queue queue = Queue::open(scratch.path("ours"), options).value_or_throw();
  const auto batches = packed_batches(128);
  const std::size_t batch_bytes = batches.front()->size_bytes();
  std::vector<std::vector<std::byte>> copies;
  for (const auto& batch : batches) {
    const auto packed = batch->finish();
    copies.emplace_back(packed.begin(), packed.end());
  }
  const std::uint64_t total = suite.options().amount(2 * segments * segment_bytes);
  const auto ours = [&] {
    return rate_of(
        total, batch_bytes,
        [&](std::uint64_t i) {
          const Result<Offset> appended = queue.enqueue(*batches[i % batches.size()]);
          if (!appended) throw std::runtime_error(appended.error().text());
        },
        [&] {
          if (!call.mapped) queue.flush().value_or_throw();
        });
  };
  // It starts behind a header page, as in a segment.
  BareFile bare(scratch.path("reference"), copies, page_bytes, call.mapped);
  BareFile from_zero(scratch.path("from-zero"), copies, 0, call.mapped);
  for (int i = 0; i < 2; ++i) ours();  // use every segment once
  std::vector<double> our_rates;
  std::vector<double> bare_rates;
  std::vector<double> from_zero_rates;
  suite.alternate(
      suite.options().rounds(), ours,
      [&] {
        from_zero_rates.push_back(from_zero.rate(total));
        return bare.rate(total);
      },
      our_rates, bare_rates);
  from_zero_rates.erase(from_zero_rates.begin());  // the warm-up's value
  suite.add(compare("batch_append_" + call.key, call.title, "GB/s", Better::more, our_rates,
                    call.reference_name, bare_rates),
            0.8);
  suite.add(compare("batch_append_" + call.key + "_vs_aligned", call.title, "GB/s", Better::more, our_rates,
                    call.reference_name + ", from position 0", from_zero_rates),
            0);
}

}  // namespace

void measure_against_bare_calls(LogSuite& suite) {
  // The queue never reaches this limit. It has the code path of a queue that syncs, but no sync is measured.
  compare_batches(suite,
                  {"pwrite", "batches of 64 KB appended, written by pwrite", "pwrite into a recycled file",
                   FlushPolicy::every_bytes(std::uint64_t{1} << 60), false});
  compare_batches(suite, {"mapped", "batches of 64 KB appended, flush `none`",
                          "memcpy into a touched mapping", FlushPolicy::none(), true});
}

}  // namespace lightq::bench
