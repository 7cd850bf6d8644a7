/// GET /healthz and /readyz. Layer: http.
#include "http/resources/health_resource.hpp"

#include <string>
#include <utility>

#include <lightq/protocol/json_fields.hpp>

#include "http/problem.hpp"
#include "metrics/process_metrics.hpp"

namespace lightq::broker {

namespace {

constexpr const char* fine = "ok";

std::string counted(std::size_t many, const char* what) {
  return std::to_string(many) + " " + what;
}

std::string words_of(const Standstill& found) {
  std::string words;
  const auto add = [&](std::size_t many, const char* what) {
    if (many == 0) return;
    if (!words.empty()) words += "; ";
    words += counted(many, what);
  };
  add(found.groups, "groups have ready messages and free consumers, and deliver nothing");
  add(found.flushes, "topics do not become durable");
  add(found.on_disk, "topics wait for the disk");
  return words.empty() ? fine : words;
}

std::string words_of(const ProbeResult& probe, std::uint64_t free_bytes_min) {
  if (probe.free_bytes >= free_bytes_min) return fine;
  return "the disk has " + std::to_string(probe.free_bytes / limits::MiB) +
         " MiB left, and appends wait below " + std::to_string(free_bytes_min / limits::MiB) + " MiB";
}

std::string words_of(const ProcessUse& use) {
  if (use.open_descriptors + limits::descriptors_reserved_for_files <= use.descriptors_max) return fine;
  return counted(use.open_descriptors, "file descriptors are open, of ") +
         std::to_string(use.descriptors_max);
}

}  // namespace

/// One check while its parts arrive. Each part has words: `ok`, or the fault.
struct HealthResource::Check {
  std::optional<std::string> append;
  std::optional<std::string> disk;
  std::optional<std::string> topics;
  [[nodiscard]] bool is_complete() const { return append && topics; }
};

HealthResource::HealthResource(Parts parts)
    : parts_(std::move(parts)), pages_(parts_.loop, parts_.gate), watch_(parts_.flushes, parts_.stall) {}

void HealthResource::add_to(Router& router) {
  router.add("GET", "/healthz", [](const HttpExchange& exchange) { exchange.reply({.body = "ok\n"}); });
  router.add("GET", "/readyz", [this](HttpExchange exchange) { ready(std::move(exchange)); });
}

void HealthResource::ready(HttpExchange exchange) {
  if (last_ && HttpLoop::Clock::now() - last_at_ < parts_.again) return exchange.reply(*last_);
  waiting_.push_back(std::move(exchange.reply));
  if (check_ == nullptr) begin();
}

void HealthResource::begin() {
  const auto check = std::make_shared<Check>();
  check_ = check;
  parts_.loop.after(parts_.longest, [this, check] { finish(check); });
  watch_.begin(HttpLoop::Clock::now());
  ask_topics(check);
  parts_.probe([this, check](Result<ProbeResult> probed) {
    parts_.loop.post([this, check, probed = std::move(probed)] {
      check->append = probed ? fine : probed.error().text();
      if (probed) check->disk = words_of(*probed, parts_.free_bytes_min);
      if (check->is_complete()) finish(check);
    });
  });
}

void HealthResource::ask_topics(const std::shared_ptr<Check>& check) {
  const auto receive = [this, check](const Result<const StatsPage*>& page) {
    if (check_ != check) return;  // too late
    if (!page) {
      check->topics = page.error().text();
    } else if (*page == nullptr) {
      check->topics = words_of(watch_.finish());
    } else {
      for (const protocol::TopicStats& topic : (*page)->topics) watch_.see(topic);
    }
    if (check->is_complete()) finish(check);
  };
  const bool posted = parts_.gate.as_broker([this, receive](Operations& operations) {
    Asker broker;
    broker.kind = Asker::Kind::administrator;
    pages_.read(operations, broker, {}, receive);
  });
  if (!posted) check->topics = "the control thread has too much to do";
}

/// Answers all that wait, with the results of the check so far.
void HealthResource::finish(const std::shared_ptr<Check>& check) {
  if (check_ != check) return;
  check_.reset();
  const std::string late = "no answer within " + std::to_string(parts_.longest.count()) + " ms";
  const std::pair<const char*, std::string> parts[] = {
      {"append", check->append.value_or(late)},
      {"disk", check->disk.value_or("not known")},
      {"topics", check->topics.value_or(late)},
      {"descriptors", words_of(process_use())},
  };
  protocol::detail::OrderedJson checks;
  bool is_ready = true;
  for (const auto& [name, words] : parts) {
    checks[name] = words;
    is_ready &= words == fine;
  }
  const protocol::detail::OrderedJson document{{"ready", is_ready}, {"checks", std::move(checks)}};
  last_ = HttpResponse{.status = is_ready ? 200U : 503U,
                       .content_type = "application/json",
                       .body = protocol::detail::dump(document) + "\n"};
  last_at_ = HttpLoop::Clock::now();
  for (const HttpReply& reply : std::exchange(waiting_, {})) reply(*last_);
}

}  // namespace lightq::broker
