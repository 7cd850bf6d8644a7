/// `lightq import`: publishes messages that `lightq export` has written. Layer: cli.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/commands/produce.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/transfer/import_line.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

/// Reads a message from each line. Counts the lines, so that an error names its line and a later run can
/// continue.
class ImportSource final : public MessageSource {
 public:
  ImportSource(const Import& asked, std::unique_ptr<MessageSource> lines)
      : asked_(asked), lines_(std::move(lines)) {}

  Result<bool> next() override {
    while (true) {
      const Result<bool> more = lines_->next();
      if (!more || !*more) return more;
      if (line_++ < asked_.skip_lines) continue;
      if (auto fault = read_line()) return *std::move(fault);
      return true;
    }
  }
  [[nodiscard]] int awaited() const override { return lines_->awaited(); }
  /// An escaped byte of JSON takes up to six bytes of a line, a byte of base64 less than two.
  void keep_at_most(std::uint64_t bytes) override {
    payload_max_ = bytes;
    line_max_ = std::min<std::uint64_t>(6 * bytes + limits::MiB, limits::message_bytes_max_max);
    lines_->keep_at_most(line_max_);
  }
  [[nodiscard]] std::string_view message() const override { return message_.payload; }
  [[nodiscard]] const Attributes* attributes() const override { return &attributes_; }
  void confirmed(std::uint64_t messages) override { confirmed_ = messages; }

  /// Returns how many lines of the input are done: skipped, or confirmed by the broker.
  [[nodiscard]] std::uint64_t done_lines() const { return std::min(line_, asked_.skip_lines) + confirmed_; }
  [[nodiscard]] std::uint64_t line() const { return line_; }
  [[nodiscard]] std::uint64_t dropped_headers() const { return dropped_headers_; }

 private:
  /// Reads the current line. Returns why it is no message; nothing if it is one.
  std::optional<Error> read_line() {
    const auto fault = [this](ErrorCode code, const std::string& why) {
      return Error{code, "line " + std::to_string(line_) + ": " + why};
    };
    if (lines_->is_too_long())
      return fault(ErrorCode::too_large, "it has " + format_count(lines_->message_bytes()) +
                                             " bytes, more than a message of the broker can need");
    Result<ImportedMessage> read = parse_import_line(lines_->message(), line_max_);
    if (!read) return fault(read.error().code, read.error().message);
    message_ = std::move(*read);
    if (message_.payload.size() > payload_max_)
      return fault(ErrorCode::too_large, "the payload has " + format_count(message_.payload.size()) +
                                             " bytes, more than the broker's message_bytes_max of " +
                                             format_count(payload_max_));
    headers_.clear();
    for (const auto& [name, value] : message_.headers) headers_.push_back({name, value});
    attributes_ = {.key = message_.key, .headers = headers_, .time = message_.producer_time};
    if (const Result<void> checked = attributes_.check_for_producer(); !checked)
      return fault(ErrorCode::invalid_request, checked.error().message);
    dropped_headers_ += message_.dropped_headers;
    return std::nullopt;
  }

  const Import& asked_;
  std::unique_ptr<MessageSource> lines_;
  ImportedMessage message_;
  std::vector<Header> headers_;
  Attributes attributes_;
  std::uint64_t payload_max_ = limits::message_bytes_max_max;
  std::uint64_t line_max_ = limits::message_bytes_max_max;
  std::uint64_t line_ = 0;  // of the current message, from 1
  std::uint64_t confirmed_ = 0;
  std::uint64_t dropped_headers_ = 0;
};

/// Reads all lines, and sends nothing.
int check_only(const Common& common, const Import& import, ImportSource& source) {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  while (!interrupted()) {
    const Result<bool> more = source.next();
    if (!more) return fail(more.error(), import.topic);
    if (!*more) break;
    ++messages;
    bytes += source.message().size();
  }
  if (interrupted()) return exit_failure;
  if (!common.json) {
    if (!common.quiet) say(format_messages(messages) + ", " + format_size(bytes) + ": all lines are valid");
    return exit_ok;
  }
  Output out;
  out.write(JsonObject()
                .add("cmd", "import")
                .add("status", "ok")
                .add("topic", import.topic)
                .add("preview", true)
                .add("messages", messages)
                .add("bytes", bytes)
                .text() +
            "\n");
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace

int run_import(const Common& common, const Import& import) {
  ImportSource source(import, lines_of(import.files, 0));
  if (import.preview) return check_only(common, import, source);
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  Produce produce;
  produce.cmd = "import";
  produce.topic = import.topic;
  produce.confirm = import.confirm;
  produce.timeout = import.timeout;
  produce.retry_refused = true;
  const int code = produce_confirmed(common, produce, std::move(*client), source);
  if (source.dropped_headers() > 0 && !common.quiet)
    say(format_count(source.dropped_headers()) + " headers lightq-dead-... of dead letters were left out");
  const bool is_whole = code == exit_ok && !interrupted();
  if (!is_whole && source.done_lines() > 0 && !common.quiet)
    say("to continue without storing messages twice, add  --skip-lines " +
        std::to_string(source.done_lines()));
  return code;
}

}  // namespace lightq::cli
