/// Prints progress, explanations and the summary of `lightq produce`. Layer: cli.
#include "client/commands/produce_report.hpp"

#include <cstddef>

#include "client/units.hpp"

namespace lightq::cli {

void ProduceReport::sent(std::size_t bytes) {
  ++messages_;
  bytes_ += bytes;
  explained_ = false;
  if ((messages_ & 0xff) == 0 || produce_.rate > 0) show_progress();
}

void ProduceReport::turned_down_unsent(const std::string& why) {
  if (++unsent_ == 1) why_unsent_ = why;
  explained_ = false;
}

void ProduceReport::refused(std::uint64_t messages, const Error& why) {
  if (refused_ == 0) why_refused_ = why;
  refused_ += messages;
}

ProduceReport::Clock::time_point ProduceReport::due() const {
  if (produce_.rate == 0) return started_;
  const double seconds = static_cast<double>(messages_ + unsent_) / static_cast<double>(produce_.rate);
  return started_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void ProduceReport::explain(const std::string& why) {
  if (explained_ || common_.quiet) return;
  explained_ = true;
  say("waiting: " + why);
}

std::string ProduceReport::why_stalled(Client& client) const {
  const std::string nothing_now = "topic '" + produce_.topic + "' accepts no messages now";
  const Result<TopicStats> stats = client.stats(produce_.topic);
  if (!stats || stats->blocked_by.empty()) return nothing_now;
  return nothing_now + " (blocked by " + stats->blocked_by + ")";
}

Error ProduceReport::gave_up(Clock::duration waited, const std::string& why) {
  const double seconds = std::chrono::duration<double>(waited).count();
  return {ErrorCode::timeout, "gave up after " + format_seconds(seconds) + ": " + why};
}

Error ProduceReport::not_kept(std::uint64_t messages) const {
  return {ErrorCode::too_large, format_messages(messages) + (messages == 1 ? " was" : " were") +
                                    " refused (too large) or rejected (log full); see lightq stats " +
                                    produce_.topic};
}

std::optional<Error> ProduceReport::turned_down() const {
  const auto were = [](std::uint64_t messages) {
    return format_messages(messages) + (messages == 1 ? " was " : " were ");
  };
  if (unsent_ + refused_ == 0) return std::nullopt;
  std::string sentence;
  if (unsent_ > 0) sentence = were(unsent_) + "not sent: " + why_unsent_;
  if (refused_ > 0)
    sentence +=
        (sentence.empty() ? "" : "; ") + were(refused_) + "refused by the broker: " + why_refused_.message;
  return Error{unsent_ > 0 ? ErrorCode::too_large : why_refused_.code, sentence};
}

void ProduceReport::show_progress() {
  if (!progress_.due()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  progress_.show(format_messages(messages_) + ", " + format_size(bytes_) + ", " +
                 format_rate(static_cast<double>(messages_) / seconds));
}

void ProduceReport::summarize(std::optional<std::uint64_t> received, const std::string& where) {
  progress_.clear();
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  if (common_.json) {
    Output out;
    const bool is_whole = unsent_ + refused_ == 0 && (!received || *received == messages_);
    out.write("{\"cmd\":\"" + produce_.cmd + "\",\"status\":\"" + std::string(is_whole ? "ok" : "error") +
              "\",\"topic\":\"" + produce_.topic + "\",\"sent\":" + std::to_string(messages_) +
              ",\"received\":" + (received ? std::to_string(*received) : "null") +
              ",\"bytes\":" + std::to_string(bytes_) + ",\"seconds\":" + std::to_string(seconds) + "}\n");
  } else if (!common_.quiet) {
    say(format_messages(messages_) + (messages_ > 0 && received == messages_ ? where : " sent") + ", " +
        format_size(bytes_) + " in " + format_seconds(seconds) + " (" +
        format_rate(static_cast<double>(messages_) / seconds) + ")");
  }
}

}  // namespace lightq::cli
