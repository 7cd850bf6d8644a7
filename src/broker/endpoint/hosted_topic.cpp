/// Layer: endpoint.
#include "broker/endpoint/hosted_topic.hpp"

#include <algorithm>
#include <utility>

namespace lightq::broker {

namespace {

constexpr std::uint64_t ticks_per_second = 10;
constexpr std::int64_t cursor_save_interval_us = 1'000'000;
constexpr std::int64_t write_again_interval_us = 1'000'000;
constexpr std::int64_t loss_report_interval_us = 5'000'000;
// Long enough for a ring to notice that it is idle and give its memory back.
constexpr std::int64_t ticks_after_activity_us = 15'000'000;

std::string group_cursor_name() {
  return "group:" + std::string(protocol::default_group);
}

}  // namespace

HostedTopic::HostedTopic(ReactorContext& context, Ticker& ticker, TopicDefinition definition,
                         TopicStorage storage)
    : context_(context),
      ticker_(ticker),
      storage_(std::move(storage)),
      topic_(std::move(definition), std::move(storage_.log), context.now()),
      endpoints_(context, topic_, *this, *this),
      batch_bytes_target_(topic_.batch_bytes_target()),
      last_active_(context.now()) {
  if (const auto stored = storage_.stored_cursor(group_cursor_name())) {
    const Offset end = topic_.log().next_offset();
    if (*stored > end) {
      context_.sink.warn("topic " + this->definition().name.text() + ": its group had come to message " +
                         std::to_string(stored->value) + ", but the log ends at " +
                         std::to_string(end.value) + "; the group goes on there");
    }
    topic_.restore_group(*stored);
  }
}

HostedTopic::~HostedTopic() {
  context_.loop.cancel_soon(*this);
  context_.loop.cancel(retention_timer_);
}

Result<void> HostedTopic::reopen(const EndpointRecord& record) {
  return endpoints_.reopen(record, storage_.stored_cursor(EndpointSet::subscriber_cursor_name(record.id)));
}

Result<void> HostedTopic::delete_group(const std::string& group) {
  const std::string where = "topic " + definition().name.text();
  if (group != protocol::default_group || !topic_.has_group()) {
    return Error{ErrorCode::group_not_found, where + " has no group " + group};
  }
  if (topic_.pullers() > 0) {
    return Error{ErrorCode::group_in_use, where + ", group " + group + ": " +
                                              std::to_string(topic_.pullers()) + " consumers are connected"};
  }
  topic_.delete_group();
  resume_held();
  want_ticks();
  return {};
}

protocol::TopicStats HostedTopic::stats() {
  auto stats = topic_.stats();
  endpoints_.add_stats(stats);
  return stats;
}

PublishOutcome HostedTopic::publish(BatchBuilder& batch) {
  const Timestamp now = context_.now();
  const auto outcome = topic_.publish(batch, now);
  if (outcome != PublishOutcome::accepted && topic_.held_by_disk() && !std::exchange(warned_of_disk_, true)) {
    const char* what = outcome == PublishOutcome::held ? "producers are held back" : "messages are rejected";
    context_.sink.error("topic " + definition().name.text() + ": " + what +
                        ", the log cannot be written: " + topic_.log().last_error().text());
  }
  if (outcome == PublishOutcome::accepted && std::exchange(warned_of_disk_, false)) {
    context_.sink.info("topic " + definition().name.text() + ": the log can be written again");
  }
  return outcome;
}

void HostedTopic::inlet_held() {
  held_ = true;
  topic_.set_producers_held(true);
  want_ticks();
}

void HostedTopic::resume_held() {
  if (!held_) return;
  held_ = !endpoints_.resume_inlets();
  topic_.set_producers_held(held_);
  context_.loop.call_soon(*this);  // what they published is to be handed out
}

void HostedTopic::consumers_changed() {
  resume_held();  // `direct` reads while somebody is connected
  context_.loop.call_soon(*this);
  want_ticks();
}

void HostedTopic::begin_stop() {
  stopping_ = true;
  endpoints_.stop_accepting();
}

void HostedTopic::pump() {
  if (stopping_) return;
  const auto pumped = topic_.pump();
  if (pumped.more) context_.loop.call_soon(*this);
  if (pumped.progress) resume_held();
  last_active_ = context_.now();
  if (storage_.write_behind != nullptr) maintain(last_active_);
  start_disk_job(last_active_);
  want_ticks();
}

void HostedTopic::want_ticks() {
  if (std::exchange(ticking_, true)) return;
  ticker_.tick_wanted(*this);
}

bool HostedTopic::tick() {
  if (stopping_) return ticking_ = false;
  const Timestamp now = context_.now();
  maintain(now);
  resume_held();
  if (held_) endpoints_.tend_held(++ticks_ % ticks_per_second == 0);
  start_disk_job(now);
  save_cursors(now);
  report_losses(now);
  ticking_ = held_ || jobs_out_ > 0 || unsaved() || topic_.log().wants_disk_work() ||
             now.us - last_active_.us < ticks_after_activity_us;
  if (!ticking_) {
    endpoints_.release_idle_memory();
    arm_retention();
  }
  return ticking_;
}

void HostedTopic::maintain(Timestamp now) {
  if (storage_.write_behind == nullptr) return topic_.log().maintain(now);
  if (writing_behind_fails_ && now < write_again_ && write_again_.us - now.us <= write_again_interval_us)
    return;
  const Offset written_before = storage_.write_behind->written_offset();
  topic_.log().maintain(now);
  look_after_writing_behind(written_before, now);
  // What is to be written behind is written a piece at a turn, so that other topics get theirs.
  if (storage_.write_behind->more_to_write()) context_.loop.call_soon(*this);
}

/// Messages that stay in memory for a second, without any being written, are more than lateness: the operator
/// is told, and the disk is tried now and then only, since a try that fails may be slow.
void HostedTopic::look_after_writing_behind(Offset written_before, Timestamp now) {
  const Offset written = storage_.write_behind->written_offset();
  const bool all_written = written == topic_.log().next_offset();
  const std::string where = "topic " + definition().name.text() + ": ";
  if (all_written || written != written_before) {
    behind_since_ = all_written ? Timestamp{} : now;
    if (std::exchange(writing_behind_fails_, false))
      context_.sink.info(where + "it is written to the disk again");
    return;
  }
  if (behind_since_ == Timestamp{} || now < behind_since_) behind_since_ = now;
  if (now.us - behind_since_.us < write_again_interval_us) return;
  write_again_ = {now.us + write_again_interval_us};
  if (std::exchange(writing_behind_fails_, true)) return;
  context_.sink.error(
      where + "its messages stay in memory, the disk cannot be written: " + topic_.log().last_error().text());
}

/// Something waits to be written: memory's messages of a queue_file topic, or cursors that could not be.
bool HostedTopic::unsaved() const {
  const bool behind = storage_.write_behind != nullptr &&
                      storage_.write_behind->written_offset() < topic_.log().next_offset();
  return behind || cursors_failed_;
}

/// Old messages go even if nothing else happens: a tick now and then sees to it.
void HostedTopic::arm_retention() {
  const auto retention_ms = definition().settings.retention_ms;
  if (retention_ms == 0 || topic_.log().stored_bytes() == 0) return;
  const auto wait = std::chrono::milliseconds(std::clamp<std::uint64_t>(retention_ms / 4, 1'000, 60'000));
  context_.loop.cancel(retention_timer_);
  retention_timer_ = context_.loop.at(EventLoop::Clock::now() + wait, [this] { want_ticks(); });
}

void HostedTopic::start_disk_job(Timestamp now) {
  if (log_job_out_) return;
  auto job = topic_.log().take_disk_job(now);
  if (job == nullptr) return;
  log_job_out_ = true;
  submit(std::move(job));
}

std::vector<log::NamedCursor> HostedTopic::cursors() const {
  auto cursors = endpoints_.subscriber_cursors();
  if (const auto committed = topic_.group_committed()) cursors.push_back({group_cursor_name(), *committed});
  return cursors;
}

void HostedTopic::save_cursors(Timestamp now) {
  if (!storage_.keeps_cursors() || cursor_job_out_ || now.us - cursors_saved_.us < cursor_save_interval_us)
    return;
  auto current = cursors();
  cursors_saved_ = now;
  if (current == saved_cursors_ && !cursors_failed_) return;
  saved_cursors_ = std::move(current);
  cursor_job_out_ = true;
  submit(storage_.save_cursors(saved_cursors_));
}

void HostedTopic::submit(std::unique_ptr<log::DiskJob> job) {
  ++jobs_out_;
  context_.disk.submit(std::move(job), [this, &loop = context_.loop](std::unique_ptr<log::DiskJob> ran) {
    // Shared only because a std::function must be copyable.
    std::shared_ptr<log::DiskJob> shared = std::move(ran);
    loop.post_answer([this, shared] { job_done(*shared); });
  });
}

void HostedTopic::job_done(log::DiskJob& job) {
  job.finish();
  --jobs_out_;
  if (const auto* const save = dynamic_cast<CursorSaveJob*>(&job); save != nullptr) {
    cursor_job_out_ = false;
    cursors_failed_ = !save->result().ok();
    if (cursors_failed_) {
      context_.sink.error("topic " + definition().name.text() +
                          ": its cursors: " + save->result().error().text());
    }
  } else {
    log_job_out_ = false;
  }
  if (jobs_out_ > 0) return;
  if (when_idle_) when_idle_();
}

/// At most a line of each kind every few seconds, however many messages it is about.
void HostedTopic::report_losses(Timestamp now) {
  if (now.us - losses_reported_.us < loss_report_interval_us) return;
  const auto stats = topic_.stats();
  const std::string where = "topic " + definition().name.text() + ": ";
  if (stats.corrupt > damaged_reported_) {
    context_.sink.error(where + std::to_string(stats.corrupt - damaged_reported_) +
                        " messages cannot be read and were passed over: " + topic_.log().last_error().text());
  }
  if (stats.refused > refused_reported_) {
    context_.sink.warn(where + std::to_string(stats.refused - refused_reported_) +
                       " messages were refused: of several parts, or too large (message_bytes_max is " +
                       std::to_string(message_bytes_max()) + ")");
  }
  damaged_reported_ = stats.corrupt;
  refused_reported_ = stats.refused;
  losses_reported_ = now;
}

void HostedTopic::flush_for_stop() {
  if (auto flushed = topic_.log().close(); !flushed) {
    context_.sink.error("topic " + definition().name.text() + ": flush: " + flushed.error().text());
  }
  if (!storage_.keeps_cursors()) return;
  const auto job = storage_.save_cursors(cursors());
  job->run();
  if (!job->result()) {
    context_.sink.error("topic " + definition().name.text() +
                        ": its cursors: " + job->result().error().text());
  }
}

}  // namespace lightq::broker
