/// `lightq log verify`: reads a whole log and reports damage. Layer: cli.
#include <cstddef>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/logs/log_directory.hpp"
#include "client/logs/log_keys.hpp"
#include "client/logs/log_report.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"
#include "log/storage/posix_storage.hpp"
#include "log/tools/inspect.hpp"

namespace lightq::cli {
namespace {

constexpr std::size_t findings_per_file_max = 1000;  // the most that are printed; all are counted

/// One run of the command.
class Verify final : public log::LogVisitor {
 public:
  explicit Verify(const Common& common) : common_(common), progress_(common.quiet) {}

  bool on_batch(const log::ScannedBatch& batch, const BatchView& /*view*/) override {
    messages_ += distance(batch.base, batch.end);
    bytes_ += batch.total_bytes;
    if (progress_.due()) progress_.show(format_messages(messages_) + ", " + format_size(bytes_) + " sound");
    return goes_on();
  }

  bool on_finding(const log::Finding& finding) override {
    const bool repeats = ++findings_of_file_ > findings_per_file_max;
    if (common_.json) {
      if (!repeats) findings_.add(json_of(finding));
    } else if (!repeats) {
      pending_ += (finding.is_damage() ? "  damage: " : "  note: ") + finding.text() + "\n";
    }
    return goes_on();
  }

  bool on_summary(const log::SegmentSummary& summary) override {
    progress_.clear();
    if (common_.json) {
      files_.add(json_of(summary));
    } else {
      open_ = out_.write(line_of(summary) + "\n") && open_;
    }
    print_pending();
    return goes_on();
  }

  // A JSON document describes one pass only. Lines that were printed stay.
  bool on_restart() override {
    files_ = {};
    findings_ = {};
    progress_.clear();
    if (!common_.json)
      open_ = out_.write("The log has dropped all of these files in the meantime. Its files now:\n") && open_;
    return goes_on();
  }

  /// Prints the result. `keyed`: there were keys to decrypt batches with.
  int end(const std::string& directory, const log::InspectTotals& totals, bool keyed) {
    progress_.clear();
    if (interrupted()) {
      out_.flush();
      say("interrupted: the remaining files were not read");
      return exit_failure;
    }
    print_pending();
    out_.write(common_.json ? document(directory, totals) : sentence(totals, keyed));
    return out_.end() && totals.damages == 0 ? exit_ok : exit_failure;
  }

 private:
  [[nodiscard]] bool goes_on() const { return open_ && !interrupted(); }

  void print_pending() {
    if (findings_of_file_ > findings_per_file_max && !common_.json)
      pending_ += "  … " + format_count(findings_of_file_ - findings_per_file_max) + " more\n";
    findings_of_file_ = 0;
    open_ = out_.write(pending_) && open_;
    pending_.clear();
  }

  static std::string sentence(const log::InspectTotals& totals, bool keyed) {
    std::string text = totals.damages == 0 ? "clean: " : "DAMAGED: ";
    text += format_messages(totals.messages) + " in " + format_count(totals.segments) +
            " segments, offsets " + std::to_string(totals.first_offset.value) + " up to " +
            std::to_string(totals.next_offset.value);
    if (totals.damages != 0)
      text += "; " + format_count(totals.damages) + " damaged parts, at least " +
              format_messages(totals.lost_messages) + " cannot be read";
    if (totals.gap_messages != 0)
      text += "; " + format_messages(totals.gap_messages) + " missing since a repair";
    if (totals.encrypted_batches != 0) {
      const std::uint64_t unread = totals.encrypted_batches - totals.decrypted_batches;
      text +=
          "; " + format_count(totals.encrypted_batches) + " encrypted batches" +
          (unread == 0 ? ", all decrypted and checked" : ", not decrypted: give --key-file to check them");
    }
    if (keyed && totals.batches != 0 && totals.encrypted_batches == 0) text += "; no batch is encrypted";
    if (totals.torn_bytes != 0) text += "; a torn tail of " + format_size(totals.torn_bytes);
    return text + "\n";
  }

  std::string document(const std::string& directory, const log::InspectTotals& totals) const {
    return JsonObject()
               .add("cmd", "log verify")
               .add_bytes("directory", directory)
               .add("status", totals.damages == 0 ? "clean" : "damaged")
               .add("segments", totals.segments)
               .add("bytes", totals.bytes)
               .add("batches", totals.batches)
               .add("messages", totals.messages)
               .add("lost_messages", totals.lost_messages)
               .add("gap_messages", totals.gap_messages)
               .add("torn_bytes", totals.torn_bytes)
               .add("damages", totals.damages)
               .add("encrypted_batches", totals.encrypted_batches)
               .add("decrypted_batches", totals.decrypted_batches)
               .add("cursors", totals.cursors)
               .add("producers", totals.producers)
               .add("first_offset", totals.first_offset.value)
               .add("next_offset", totals.next_offset.value)
               .add_raw("files", files_.text())
               .add_raw("findings", findings_.text())
               .text() +
           "\n";
  }

  const Common& common_;
  Output out_;
  Progress progress_;
  JsonArray files_;
  JsonArray findings_;
  std::string pending_;
  std::size_t findings_of_file_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  bool open_ = true;
};

}  // namespace

int run_log_verify(const Common& common, const LogVerify& verify) {
  const auto directory = find_log(common, verify.directory);
  const auto keys = read_key_file(verify.key_file);
  if (!directory || !keys) {
    say_error("invalid_argument", directory ? keys.error().text() : directory.error().text());
    return exit_usage;
  }
  log::PosixStorage storage;
  Verify run(common);
  log::InspectOptions options;
  options.with_cursors = true;
  options.with_producers = true;
  options.with_indexes = true;
  options.ciphers = keys->get();
  const auto totals = log::inspect_log(*directory, storage, options, run);
  if (totals) return run.end(*directory, *totals, options.ciphers != nullptr);
  say_error(to_word(totals.error().code), totals.error().text());
  return exit_usage;
}

}  // namespace lightq::cli
