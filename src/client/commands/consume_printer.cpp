/// Prints messages, progress and the summary of `lightq consume`. Layer: cli.
#include "client/commands/consume_printer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "client/commands/message_format.hpp"
#include "client/units.hpp"

namespace lightq::cli {

ConsumePrinter::ConsumePrinter(const Common& common, const Consume& consume)
    : common_(common),
      consume_(consume),
      // messages on a terminal show the progress themselves
      progress_(common.quiet || isatty(STDOUT_FILENO) == 1),
      wanted_(consume.count),
      pattern_(consume.pattern.empty() ? std::nullopt : MessageTemplate::parse(consume.pattern)) {
  if (consume.force) out_.keep_controls();
}

void ConsumePrinter::print(const LoggedMessage& message) {
  line_.clear();
  if (pattern_) {
    pattern_->append(line_, message);
  } else {
    append_message(line_, consume_.topic, message.payload, consume_.format, message.attributes);
  }
  bytes_ += message.payload.size();
  ++printed_;
  waiting_.push_back(message.payload.size());
  open_ = out_.write(line_) && open_;
  if (is_flushed()) waiting_.clear();
  if ((printed_ & 0xff) == 0) show_progress();
}

bool ConsumePrinter::flush() {
  open_ = out_.flush() && open_;
  if (open_) waiting_.clear();
  return open_;
}

void ConsumePrinter::show_progress() {
  if (progress_.due()) progress_.show(format_messages(printed_) + ", " + format_size(bytes_));
}

void ConsumePrinter::tell_of_pause(const TopicStats& stats) {
  const std::string group = consume_.group.empty() && consume_.mode == Mode::pull
                                ? std::string(protocol::default_group)
                                : consume_.group;
  const bool is_group_paused = std::ranges::any_of(
      stats.groups, [&](const GroupStats& other) { return other.group == group && other.paused; });
  if (common_.quiet || !(stats.paused || is_group_paused) || std::exchange(told_of_pause_, true)) return;
  say((stats.paused ? "" : "group '" + group + "' of ") + "topic '" + stats.topic +
      "' is paused; waiting until it is resumed");
}

void ConsumePrinter::summarize() {
  progress_.clear();
  if (common_.quiet) return;
  const std::uint64_t unprinted = std::min<std::uint64_t>(out_.unwritten(), printed_);
  const std::size_t without = std::min<std::size_t>(unprinted, waiting_.size());
  const std::uint64_t bytes = bytes_ - std::accumulate(waiting_.end() - static_cast<std::ptrdiff_t>(without),
                                                       waiting_.end(), std::uint64_t{0});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  say(format_messages(printed_ - unprinted) + ", " + format_size(bytes) + " in " + format_seconds(seconds));
}

int ConsumePrinter::verdict() const {
  const bool in_vain = printed_ < wanted_ && !interrupted() && open_;
  if (in_vain)
    say("only " + format_count(printed_) + " of " + format_count(wanted_) + " messages were received");
  return out_.failed() || in_vain ? exit_failure : exit_ok;
}

}  // namespace lightq::cli
