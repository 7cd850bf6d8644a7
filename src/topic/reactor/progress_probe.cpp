/// Finds out whether bytes still become durable. Layer: topic.
#include "topic/reactor/progress_probe.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/disk_full.hpp>

#include "log/log.hpp"

namespace lightq::broker {

namespace {

constexpr const char* file_name = "progress.probe";
constexpr char content[] = "lightq\n";

Error probe_failed(const char* what, int number) {
  return {write_error_code(number), std::string("the disk: cannot ") + what, number};
}

/// Makes a few bytes durable in the directory. Thread: `run` on the disk's.
class ProbeJob final : public log::DiskJob {
 public:
  explicit ProbeJob(const std::filesystem::path& directory)
      : path_((directory / file_name).string()), directory_(directory.string()) {}

  void run() override { result_ = probe(); }
  void finish() override {}
  [[nodiscard]] const Result<ProbeResult>& result() const { return result_; }

 private:
  [[nodiscard]] Result<ProbeResult> probe() const {
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return probe_failed("make a file", errno);
    const int failed = write_to(file);
    close(file);
    unlink(path_.c_str());
    if (failed != 0) return probe_failed("write and sync a file", failed);
    struct statvfs disk{};
    if (statvfs(directory_.c_str(), &disk) != 0) return probe_failed("ask for its free space", errno);
    return ProbeResult{.free_bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize};
  }
  static int write_to(int file) {
    constexpr std::size_t length = sizeof content - 1;
    const ssize_t written = write(file, content, length);
    if (written != static_cast<ssize_t>(length)) return written < 0 ? errno : ENOSPC;
    return fdatasync(file) == 0 ? 0 : errno;
  }

  const std::string path_;
  const std::string directory_;
  Result<ProbeResult> result_{ProbeResult{}};
};

}  // namespace

/// One probe of all reactors. Thread: any, by its lock.
struct ProgressProbe::Round {
  Done done;
  std::mutex mutex;
  std::size_t missing = 0;
  std::optional<Error> failed;
  ProbeResult result;

  [[nodiscard]] bool is_over() {
    const std::lock_guard lock(mutex);
    return missing == 0;
  }
  void put(const Result<ProbeResult>& from) {
    {
      const std::lock_guard lock(mutex);
      if (from) {
        result = *from;
      } else {
        failed = from.error();
      }
      if (--missing > 0) return;
    }
    if (failed) return done(*failed);
    done(result);
  }
};

ProgressProbe::ProgressProbe(std::vector<ReactorContext*> reactors, std::filesystem::path directory)
    : reactors_(std::move(reactors)), directory_(std::move(directory)) {}

void ProgressProbe::run(const Done& done) {
  if (last_ != nullptr && !last_->is_over())
    return done(Error{ErrorCode::timeout, "an earlier probe of the disk has not ended"});
  const auto round = std::make_shared<Round>();
  round->done = done;
  round->missing = reactors_.size();
  last_ = round;
  for (ReactorContext* const reactor : reactors_) {
    EventLoop* const loop = &reactor->loop;
    const bool posted = loop->post([round, loop, &disk = reactor->disk, directory = directory_] {
      disk.submit(std::make_unique<ProbeJob>(directory), [round, loop](std::unique_ptr<log::DiskJob> ran) {
        loop->post_answer([round, result = static_cast<ProbeJob&>(*ran).result()] { round->put(result); });
      });
    });
    if (!posted) round->put(Error{ErrorCode::busy, "a reactor has too many tasks"});
  }
}

}  // namespace lightq::broker
