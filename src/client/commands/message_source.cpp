/// The messages of `lightq produce`: lines of files, or generated ones. Layer: cli.
#include "client/commands/message_source.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include <lightq/base/limits.hpp>

#include "client/terminal.hpp"

namespace lightq::cli {
namespace {

class Lines final : public MessageSource {
 public:
  /// `line_end`: nothing for whole files.
  Lines(std::vector<std::string> files, std::uint64_t count, std::optional<char> line_end)
      : files_(std::move(files)), line_end_(line_end), left_(count) {
    if (files_.empty()) files_.emplace_back("-");
    bounded_ = count > 0;
  }
  ~Lines() override { close_file(); }

  Result<bool> next() override {
    if (bounded_ && left_ == 0) return false;
    line_.clear();
    line_bytes_ = 0;
    while (true) {
      const auto rest = std::string_view(buffer_).substr(at_);
      const std::size_t end = end_of_line(rest);
      add(rest.substr(0, end));
      if (end != std::string_view::npos) {
        at_ += end + 1;
        return found();
      }
      partial_ = partial_ || !rest.empty();
      const Result<bool> more = refill();
      if (!more) return more;
      if (*more) continue;
      return partial_ ? found() : Result<bool>(false);
    }
  }
  void keep_at_most(std::uint64_t bytes) override {
    kept_max_ = std::min<std::uint64_t>(bytes, limits::message_bytes_max_max);
  }
  [[nodiscard]] std::string_view message() const override { return line_; }
  [[nodiscard]] std::uint64_t message_bytes() const override { return line_bytes_; }
  [[nodiscard]] int awaited() const override {
    const bool has_line = end_of_line(std::string_view(buffer_).substr(at_)) != std::string::npos;
    return has_line || (bounded_ && left_ == 0) ? -1 : descriptor_;
  }

 private:
  [[nodiscard]] std::size_t end_of_line(std::string_view text) const {
    return line_end_ ? text.find(*line_end_) : std::string_view::npos;
  }
  void add(std::string_view part) {
    line_bytes_ += part.size();
    line_ += part.substr(0, kept_max_ - std::min<std::uint64_t>(kept_max_, line_.size()));
  }
  bool found() {
    partial_ = false;
    --left_;
    return true;
  }

  /// Reads more bytes. Returns false at the end of a file with an unfinished last line, and at the end of all
  /// files.
  Result<bool> refill() {
    constexpr std::size_t read_bytes = 256 * 1024;
    at_ = 0;
    while (!interrupted()) {
      if (descriptor_ < 0) {
        buffer_.clear();
        if (file_ == files_.size()) return false;
        if (Result<void> opened = open_file(); !opened) return opened.error();
        if (descriptor_ < 0) break;  // a signal arrived
      }
      buffer_.resize(read_bytes);
      const ssize_t got = ::read(descriptor_, buffer_.data(), buffer_.size());
      const int fault = errno;
      buffer_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (got > 0) return true;
      if (got < 0 && fault == EAGAIN) await_input();
      if (got < 0 && (fault == EINTR || fault == EAGAIN)) continue;
      if (got < 0) return Error{ErrorCode::io_error, "cannot read '" + files_[file_] + "'", fault};
      close_file();
      ++file_;
      if (!line_end_) partial_ = !interrupted();  // an empty file is an empty message
      if (partial_) return false;
    }
    buffer_.clear();
    partial_ = false;  // a line that a signal cut off is not a message
    return false;
  }

  /// Waits for input from a nonblocking descriptor; another program may have made standard input nonblocking.
  /// Waits briefly, so that the caller notices signals.
  void await_input() const {
    pollfd input{descriptor_, POLLIN, 0};
    (void)::poll(&input, 1, 200);
  }

  Result<void> open_file() {
    const std::string& name = files_[file_];
    do {  // opening a FIFO waits for a writer
      descriptor_ = name == "-" ? STDIN_FILENO : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    } while (descriptor_ < 0 && errno == EINTR && !interrupted());
    if (descriptor_ < 0 && errno != EINTR)
      return Error{ErrorCode::io_error, "cannot open '" + name + "'", errno};
    return {};
  }
  void close_file() {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
    descriptor_ = -1;
  }

  std::vector<std::string> files_;
  std::optional<char> line_end_;
  std::size_t file_ = 0;
  int descriptor_ = -1;
  std::string buffer_;
  std::size_t at_ = 0;
  std::string line_;
  std::uint64_t line_bytes_ = 0;
  std::uint64_t kept_max_ = limits::message_bytes_max_max;
  bool partial_ = false;
  bool bounded_ = false;
  std::uint64_t left_;
};

class Generated final : public MessageSource {
 public:
  Generated(std::uint64_t count, std::uint64_t size_bytes)
      : text_(size_bytes, '.'), left_(count), bounded_(count > 0) {}
  Result<bool> next() override {
    if ((bounded_ && left_ == 0) || interrupted()) return false;
    --left_;
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, number_++).ptr;
    const auto length = std::min<std::size_t>(static_cast<std::size_t>(end - digits), text_.size());
    std::copy(digits, digits + length, text_.begin());
    return true;
  }
  [[nodiscard]] std::string_view message() const override { return text_; }

 private:
  std::string text_;
  std::uint64_t left_;
  bool bounded_;
  std::uint64_t number_ = 0;
};

}  // namespace

std::unique_ptr<MessageSource> lines_of(std::vector<std::string> files, std::uint64_t count, char line_end) {
  return std::make_unique<Lines>(std::move(files), count, line_end);
}

std::unique_ptr<MessageSource> whole_files(std::vector<std::string> files, std::uint64_t count) {
  return std::make_unique<Lines>(std::move(files), count, std::nullopt);
}

std::unique_ptr<MessageSource> generated(std::uint64_t count, std::uint64_t size_bytes) {
  return std::make_unique<Generated>(count, size_bytes);
}

}  // namespace lightq::cli
