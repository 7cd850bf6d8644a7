/// `lightq peek`: prints messages by their offsets, without changing a group or cursor. Layer: cli.
#include <algorithm>

#include <lightq/reader.hpp>

#include "client/invocation.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using namespace std::chrono_literals;

/// Returns the first offset to print. With `newest`, that is the first of the last `count` messages.
std::uint64_t begin_of(const Peek& peek, const TopicStats& stats) {
  const std::uint64_t newest = stats.next_offset - std::min(stats.next_offset, peek.count);
  const std::uint64_t asked = peek.newest ? newest : peek.from.value_or(stats.first_offset);
  return std::max(asked, stats.first_offset);
}

class PeekRun {
 public:
  PeekRun(const Peek& peek, MessageTemplate format) : peek_(peek), format_(std::move(format)) {
    if (peek.force) out_.keep_controls();
  }

  int go(Client& client) {
    const Result<TopicStats> stats = client.stats(peek_.topic);
    if (!stats) return fail(stats.error(), peek_.topic);
    Result<Reader> reader = client.reader(peek_.topic, {.name = "lightq peek"});
    if (!reader) return fail(reader.error(), peek_.topic);
    Offset at{begin_of(peek_, *stats)};
    const Offset end{at.value +
                     std::min(peek_.count, stats->next_offset - std::min(at.value, stats->next_offset))};
    while (at < end && open_ && !interrupted()) {
      const Result<Offset> next =
          reader->read({at, end}, bytes_at_once, [this](const Delivered& message) { print(message); }, 30s);
      if (!next) return fail(next.error(), peek_.topic);
      if (*next == at) break;
      at = *next;
    }
    if (expired_ > 0) say(format_messages(expired_) + " of them have expired");
    if (lost_ > 0) say(format_messages(lost_) + " between them were dropped or cannot be read");
    return out_.end() ? exit_ok : exit_failure;
  }

 private:
  static constexpr std::uint64_t bytes_at_once = limits::MiB;

  void print(const Delivered& message) {
    line_.clear();
    format_.append(line_, {message.offset, message.time, message.text(), message.attributes()});
    lost_ += message.lost;
    expired_ += message.expired() ? 1 : 0;
    open_ = open_ && out_.write(line_);
  }

  const Peek& peek_;
  const MessageTemplate format_;
  Output out_;
  std::string line_;
  std::uint64_t lost_ = 0;
  std::uint64_t expired_ = 0;
  bool open_ = true;
};

}  // namespace

int run_peek(const Common& common, const Peek& peek) {
  auto format = MessageTemplate::parse(common.json ? "json" : peek.format);
  if (!format) {
    say_error("invalid_argument", "'" + peek.format + "' is not a format");
    return exit_usage;
  }
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  PeekRun run(peek, std::move(*format));
  return run.go(*client);
}

}  // namespace lightq::cli
