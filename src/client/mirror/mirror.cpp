/// `lightq mirror`: copies a topic of another broker into this one. Layer: cli.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/crc32c.hpp>
#include <lightq/consumer.hpp>
#include <lightq/discovery.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/mirror/mirror_state.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using namespace std::chrono_literals;
using MirrorClock = std::chrono::steady_clock;

constexpr auto mirror_wait = 200ms;   // between looks at signals and at the end
constexpr auto mirror_attempt = 30s;  // for opening both topics, and for the last confirms
constexpr auto mirror_trouble = 2s;   // without a connection, before that is told

/// The sums for the report at the end.
struct MirrorTotals {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;  ///< the source dropped them before they were copied
  std::uint64_t dropped_headers = 0;
  std::uint64_t next_offset = 0;  ///< of the source: the next message to copy
};

/// Returns the file of a mirror that was not named: in the user's state directory.
std::string usual_state_file(const Common& common, const Mirror& mirror) {
  const std::string home = environment_value("HOME");
  const std::string state = environment_value("XDG_STATE_HOME");
  const std::string key = mirror.from + "\n" + mirror.from_data_dir + "\n" + mirror.source_topic() + "\n" +
                          common.broker + "\n" + common.data_dir + "\n" + mirror.topic;
  char name[9];
  std::snprintf(name, sizeof name, "%08x", crc32c(std::as_bytes(std::span(key))));
  return (state.empty() ? home + "/.local/state" : state) + "/lightq/mirrors/" + mirror.topic + "-" + name +
         ".json";
}

/// One run of the command.
class MirrorRun {
 public:
  MirrorRun(const Common& common, const Mirror& mirror, std::string state_file, Client source, Client target)
      : common_(common),
        mirror_(mirror),
        state_file_(std::move(state_file)),
        source_(std::move(source)),
        target_(std::move(target)),
        progress_(common.quiet) {}
  MirrorRun(const MirrorRun&) = delete;
  MirrorRun& operator=(const MirrorRun&) = delete;

  int go() {
    Result<void> done = open_target();
    if (done) done = find_place();
    if (done) done = open_source();
    if (done) done = find_end();
    if (done) done = copy_all();
    const Result<void> confirmed = producer_ ? producer_->flush(mirror_attempt) : Result<void>();
    progress_.clear();
    if (producer_) (void)producer_->close(1s);
    if (done && !confirmed) done = confirmed;
    if (!done) {
      tell_end();
      return fail(done.error(), failing_topic_);
    }
    return report();
  }

  [[nodiscard]] const MirrorTotals& totals() const { return totals_; }

 private:
  /// Opens the target as the producer of the earlier run, so that messages of
  /// that run on their way are stored or refused before this one counts.
  Result<void> open_target() {
    auto loaded = load_mirror_state(state_file_);
    if (!loaded) return loaded.error();
    is_resumed_ = loaded->has_value() && !mirror_.begin;
    if (is_resumed_) state_ = **loaded;
    ProducerOptions options;
    options.name = "lightq mirror";
    options.level = mirror_.confirm;
    options.identity = state_.producer;
    if (is_resumed_) ++options.identity.epoch;
    options.identity_secret = state_.secret;
    options.memory_bytes_max = limits::message_bytes_max_max;
    failing_topic_ = mirror_.topic;
    Result<Producer> producer = target_.producer(mirror_.topic, std::move(options));
    if (!producer) return producer.error();
    producer_.emplace(std::move(*producer));
    if (auto opened = producer_->wait_open(mirror_attempt); !opened) return opened;
    if (is_resumed_) return check_known();
    state_.producer = producer_->opened()->producer;
    return {};
  }

  /// Finds the next message of the source.
  Result<void> find_place() {
    const session::ProduceOpened& opened = *producer_->opened();
    sequence_ = first_sequence_ = opened.expected;
    if (is_resumed_) {
      const auto place = state_.places.offset_of(sequence_);
      if (!place && !state_.places.points().empty())
        return Error{
            ErrorCode::io_error,
            "the topic has lost messages that the mirror had stored: say with --begin which message of "
            "the source is next"};
      from_ = place ? From::offset({*place}) : From::first();
      state_.places.cut_from(sequence_);
      if (place) state_.places.note(sequence_, *place);
      is_placed_ = place.has_value();
    } else {
      from_ = mirror_.begin.value_or(From::first());
    }
    state_.producer = opened.producer;
    state_.secret = opened.secret;
    totals_.next_offset = from_.value;
    return {};
  }

  Result<void> open_source() {
    failing_topic_ = mirror_.source_topic();
    Result<Consumer> consumer =
        source_.consumer(failing_topic_, {.mode = ConsumeMode::own,
                                          .from = from_,
                                          .incarnation = is_placed_ ? state_.incarnation : 0,
                                          .acknowledgement = Acknowledgement::automatic,
                                          .name = "lightq mirror"});
    if (!consumer) return consumer.error();
    consumer_.emplace(std::move(*consumer));
    if (auto opened = consumer_->wait_open(mirror_attempt); !opened) return opened;
    const session::ConsumeOpened& opened = *consumer_->opened();
    const std::uint64_t wanted = is_placed_ ? from_.value : opened.next;
    if (opened.next < wanted)
      return Error{ErrorCode::io_error,
                   "message " + std::to_string(wanted) +
                       " of the source would be next, but its log ends at " + std::to_string(opened.next) +
                       ": it was created anew or restored. Say with --begin which message is next"};
    if (wanted < opened.next) note_lost(wanted, opened.next);
    totals_.next_offset = opened.next;
    if (!is_placed_) state_.places.note(sequence_, opened.next);
    state_.incarnation = opened.incarnation;
    return save();
  }

  /// With --until-end, finds out where the source ends now.
  Result<void> find_end() {
    if (!mirror_.until_end) return {};
    const Result<TopicStats> stats = source_.stats(mirror_.source_topic());
    if (!stats) return stats.error();
    end_ = stats->next_offset;
    return {};
  }

  Result<void> copy_all() {
    while (!interrupted() && !is_at_end()) {
      Result<std::optional<DeliveredBatch>> batch = consumer_->receive_batch(mirror_wait);
      failing_topic_ = mirror_.source_topic();
      if (!batch) return batch.error();
      if (*batch) {
        if (auto copied = copy(**batch); !copied) return copied;
      } else {
        if (auto idle = while_idle(); !idle) return idle;
      }
      if (progress_.due())
        progress_.show(format_messages(totals_.messages) + ", " + format_size(totals_.bytes));
    }
    return {};
  }

  [[nodiscard]] bool is_at_end() const { return end_ && *end_ <= totals_.next_offset; }

  /// Waits for confirms, and looks for the end: the last messages may have expired, so none follows.
  Result<void> while_idle() {
    failing_topic_ = mirror_.topic;
    if (auto served = producer_->flush(mirror_wait); !served && served.error().code != ErrorCode::timeout)
      return served;
    if (auto known = check_known(); !known) return known;
    tell_of_trouble();
    if (!end_ || !consumer_->connected()) return {};
    failing_topic_ = mirror_.source_topic();
    if (!reader_) {
      Result<Reader> reader = source_.reader(mirror_.source_topic(), {.name = "lightq mirror"});
      if (!reader) return reader.error();
      reader_.emplace(std::move(*reader));
    }
    bool is_any = false;
    const auto next = reader_->read(
        {{totals_.next_offset}, {*end_}}, limits::MiB,
        [&is_any](const Delivered& message) { is_any = is_any || !message.expired(); }, mirror_attempt);
    if (!next) return next.error();
    if (!is_any) totals_.next_offset = std::max(totals_.next_offset, next->value);
    return {};
  }

  /// Fails if the target's broker has forgotten this producer. The client then takes a new id by itself, or
  /// is in doubt about messages that are not confirmed.
  [[nodiscard]] Result<void> check_known() const {
    const auto& opened = producer_->opened();
    const bool is_known = !opened || opened->producer.id == state_.producer.id;
    if (is_known && producer_->state() != SessionState::in_doubt) return {};
    return Error{
        ErrorCode::closed,
        "the broker has forgotten this mirror, so messages may be stored or not: say with --begin which "
        "message of the source is next"};
  }

  void tell_of_trouble() {
    const bool is_well = consumer_->connected() && producer_->state() == SessionState::open;
    if (is_well) well_ = MirrorClock::now();
    if (is_well) is_told_ = false;
    if (is_told_ || common_.quiet || MirrorClock::now() - well_ < mirror_trouble) return;
    is_told_ = true;
    const bool is_source = !consumer_->connected();
    say(std::string("waiting: the broker of the ") + (is_source ? "source" : "copy") +
        " cannot be reached (" + (is_source ? consumer_->last_error() : producer_->last_error()).message +
        ")");
  }

  Result<void> copy(DeliveredBatch& batch) {
    failing_topic_ = mirror_.topic;
    while (!batch.empty() && !is_at_end()) {
      if (interrupted()) return {};
      const Delivered message = batch.take();
      const std::uint64_t offset = message.offset.value;
      if (offset < totals_.next_offset)
        return Error{ErrorCode::io_error, "the source has gone back from message " +
                                              std::to_string(totals_.next_offset) + " to " +
                                              std::to_string(offset) + ": it was created anew or restored"};
      if (message.lost != 0) note_lost(offset - std::min(offset, message.lost), offset);
      if (auto placed = note_place(offset); !placed) return placed;
      if (auto sent = send(message); !sent) return sent;
      ++sequence_;
      ++totals_.messages;
      totals_.bytes += message.payload.size();
      totals_.next_offset = offset + 1;
    }
    return {};
  }

  /// Saves which message the next number is, unless that follows from the one before.
  Result<void> note_place(std::uint64_t offset) {
    if (!state_.places.note(sequence_, offset)) return {};
    if (state_.places.is_full()) {
      if (auto flushed = producer_->flush(mirror_attempt); !flushed) return flushed;
    }
    state_.places.forget_before(first_sequence_ + producer_->confirmed());
    return save();
  }

  Result<void> save() { return save_mirror_state(state_file_, state_); }

  Result<void> send(const Delivered& message) {
    headers_.clear();
    for (const Header& header : message.headers()) {
      if (header.name.starts_with(dead_header_prefix)) {
        ++totals_.dropped_headers;
      } else {
        headers_.push_back(header);
      }
    }
    const Timestamp time = message.producer_time().us != 0 ? message.producer_time() : message.time;
    const Attributes attributes{.key = message.key(), .headers = headers_, .time = time};
    while (true) {
      const auto sent = producer_->send(message.text(), attributes);
      if (sent) return {};
      if (sent.error().code == ErrorCode::timeout && !interrupted()) {
        if (auto known = check_known(); !known) return known;
        tell_of_trouble();
        continue;
      }
      return Error{sent.error().code,
                   "message " + std::to_string(message.offset.value) +
                       " of the source cannot be stored: " + sent.error().message,
                   sent.error().system_error};
    }
  }

  void note_lost(std::uint64_t begin, std::uint64_t end) {
    totals_.lost += end - begin;
    if (!common_.quiet)
      say("the source dropped messages " + std::to_string(begin) + " to " + std::to_string(end - 1) +
          " before they were copied");
  }

  void tell_end() const {
    if (common_.quiet || !producer_) return;
    say(format_messages(producer_->confirmed()) + " copied; the next run continues there");
  }

  int report() {
    if (totals_.dropped_headers > 0 && !common_.quiet)
      say(format_count(totals_.dropped_headers) + " headers lightq-dead-... of dead letters were left out");
    Output out;
    if (common_.json) {
      out.write(JsonObject()
                    .add("cmd", "mirror")
                    .add("status", "ok")
                    .add("topic", mirror_.topic)
                    .add("source_topic", mirror_.source_topic())
                    .add("messages", totals_.messages)
                    .add("bytes", totals_.bytes)
                    .add("lost", totals_.lost)
                    .add("dropped_headers", totals_.dropped_headers)
                    .add("next_offset", totals_.next_offset)
                    .text() +
                "\n");
    } else if (!common_.quiet) {
      say(format_messages(totals_.messages) + ", " + format_size(totals_.bytes) + " copied; message " +
          std::to_string(totals_.next_offset) + " of the source is next");
    }
    return out.end() && totals_.lost == 0 ? exit_ok : exit_failure;
  }

  const Common& common_;
  const Mirror& mirror_;
  const std::string state_file_;
  Client source_;
  Client target_;
  Progress progress_;
  MirrorState state_;
  std::optional<Producer> producer_;
  std::optional<Consumer> consumer_;
  std::optional<Reader> reader_;  // made when the consumer is idle, to find the end
  session::Place from_;
  bool is_resumed_ = false;           // an earlier run has left its state
  bool is_placed_ = false;            // `from_` is an offset where an earlier run has ended
  std::optional<std::uint64_t> end_;  // of the source, with --until-end
  std::uint64_t first_sequence_ = 0;  // of this run
  std::uint64_t sequence_ = 0;        // of the next message
  std::vector<Header> headers_;
  MirrorTotals totals_;
  std::string failing_topic_;
  MirrorClock::time_point well_ = MirrorClock::now();
  bool is_told_ = false;
};

/// Returns the connection to the source. Its passwords are its own: those of the target go to no other
/// broker.
Common connection_to_source(const Common& common, const Mirror& mirror) {
  Common source;
  source.broker = mirror.from;
  source.user = mirror.from_user;
  source.password_file = mirror.from_password_file;
  source.server_key = mirror.from_server_key;
  source.data_dir = mirror.from_data_dir;
  source.client_key_file = common.client_key_file;
  source.request_timeout = common.request_timeout;
  source.insecure = common.insecure;
  source.quiet = common.quiet;
  return source;
}

}  // namespace

int run_mirror(const Common& common, const Mirror& mirror) {
  constexpr mode_t others = 077;  // the state has the producer's secret
  umask(others);
  Result<Client> source = open_client(connection_to_source(common, mirror));
  if (!source) return fail(source.error(), mirror.source_topic());
  Result<Client> target = open_client(common);
  if (!target) return fail(target.error(), mirror.topic);
  const std::string file = mirror.state_file.empty() ? usual_state_file(common, mirror) : mirror.state_file;
  MirrorRun run(common, mirror, file, std::move(*source), std::move(*target));
  return run.go();
}

}  // namespace lightq::cli
