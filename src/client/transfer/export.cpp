/// `lightq export`: writes a topic's messages as JSON, one a line. Layer: cli.
#include <algorithm>
#include <cstdint>
#include <string>

#include <lightq/reader.hpp>

#include "client/invocation.hpp"
#include "client/message_template.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using namespace std::chrono_literals;

/// One run of the command. It holds about a MiB of messages at a time, however large the topic is.
class ExportRun {
 public:
  ExportRun(const Common& common, const Export& asked)
      : common_(common), asked_(asked), progress_(common.quiet) {}

  int go(Client& client) {
    const Result<TopicStats> stats = client.stats(asked_.topic);
    if (!stats) return fail(stats.error(), asked_.topic);
    Result<Reader> reader = client.reader(asked_.topic, {.name = "lightq export"});
    if (!reader) return fail(reader.error(), asked_.topic);
    Offset at{std::max(asked_.from.value_or(stats->first_offset), stats->first_offset)};
    const Offset end{std::min(asked_.until.value_or(stats->next_offset), stats->next_offset)};
    next_ = at;
    while (at < end && open_ && !interrupted() && !is_enough()) {
      const Result<Offset> next =
          reader->read({at, end}, limits::MiB, [this](const Delivered& message) { print(message); }, 30s);
      if (!next) {
        tell_end();
        return fail(next.error(), asked_.topic);
      }
      if (*next == at) break;
      at = *next;
      if (!is_enough() && open_) next_ = at;
      if (progress_.due()) progress_.show(format_messages(messages_) + ", " + format_size(bytes_));
    }
    const bool is_written = out_.end();
    tell_end();
    return is_written && !out_.failed() ? exit_ok : exit_failure;
  }

 private:
  [[nodiscard]] bool is_enough() const { return asked_.count != 0 && messages_ >= asked_.count; }

  void print(const Delivered& message) {
    if (!open_ || is_enough()) return;
    line_.clear();
    format_.append(line_, {message.offset, message.time, message.text(), message.attributes()});
    lost_ += message.lost;
    open_ = out_.write(line_);
    if (!open_) return;
    ++messages_;
    bytes_ += message.text().size();
    next_ = message.offset + 1;
  }

  void tell_end() {
    progress_.clear();
    if (common_.quiet) return;
    if (lost_ > 0) say(format_messages(lost_) + " between them were dropped or cannot be read");
    say(format_messages(messages_) + ", " + format_size(bytes_) + "; to continue, add  --from " +
        std::to_string(next_.value));
  }

  const Common& common_;
  const Export& asked_;
  const MessageTemplate format_ = *MessageTemplate::parse("json");
  Progress progress_;
  Output out_;
  std::string line_;
  Offset next_;  // the first message that was not written
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t lost_ = 0;
  bool open_ = true;
};

}  // namespace

int run_export(const Common& common, const Export& asked) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  ExportRun run(common, asked);
  return run.go(*client);
}

}  // namespace lightq::cli
