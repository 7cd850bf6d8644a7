/// `lightq doctor`: looks for faults of a broker and its machine, and says how to mend them. Layer: cli.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <lightq/base/shown_text.hpp>
#include <lightq/discovery.hpp>
#include <lightq/version.hpp>

#include "client/doctor/finding.hpp"
#include "client/doctor/machine_checks.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/text/wrapped_text.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

constexpr std::uint16_t control_port = 5000;  // see default_control_uri

const char* word_of(Severity severity) {
  return severity == Severity::ok ? "ok" : severity == Severity::warning ? "warning" : "fault";
}

void check_versions(Findings& to, const std::string& broker) {
  const std::string own(version_text);
  if (broker == own)
    to.push_back({Severity::ok, "versions", "this program and the broker are version " + own});
  else
    to.push_back({Severity::warning, "versions", "this program is version " + own + ", the broker " + broker,
                  "restart the broker after an upgrade, or upgrade the other program"});
}

void check_topics(Findings& to, const std::vector<TopicStats>& topics) {
  for (const TopicStats& topic : topics) {
    if (!topic.blocked_by.empty())
      to.push_back({Severity::warning, "topics",
                    "producers of topic '" + topic.topic + "' wait for " + topic.blocked_by,
                    "lightq stats " + topic.topic + " shows the group; consume, purge, or remove it"});
    if (topic.corrupt > 0)
      to.push_back({Severity::fault, "topics",
                    "topic '" + topic.topic + "' has lost " + format_messages(topic.corrupt) + " to damage",
                    "lightq log verify on the topic's directory, then  lightq log repair"});
  }
}

void check_broker_stats(Findings& to, const BrokerStats& stats) {
  for (const auto& [limit, refused] : stats.limits_reached)
    if (refused > 0)
      to.push_back({Severity::warning, "limits",
                    "the broker's limit " + limit + " has refused " + format_count(refused) + " times",
                    "raise it:  lightq broker --help  describes it"});
  if (stats.insecure && !stats.encrypted)
    to.push_back({Severity::warning, "network", "other machines reach this broker without encryption",
                  "run it with --encrypt"});
}

/// Asks the broker. Returns false if none answers.
bool check_broker(Findings& to, const Common& common) {
  Common patient = common;
  patient.request_timeout = std::min(common.request_timeout, Timeout(2000));
  Result<Client> client = open_client(patient);
  if (!client) {
    const bool is_wrong = client.error().code == ErrorCode::invalid_argument;
    to.push_back({is_wrong ? Severity::fault : Severity::warning, "broker", client.error().text(),
                  is_wrong ? "mend the settings of the connection:  lightq help connection"
                           : "start it:  lightq broker      or name another:  --broker URI"});
    return false;
  }
  const Result<std::string> version = client->version();
  if (!version) {
    to.push_back({Severity::warning, "broker", version.error().text(), "start it:  lightq broker"});
    return false;
  }
  to.push_back({Severity::ok, "broker", "the broker at " + client->uri() + " answers"});
  check_versions(to, *version);
  if (const Result<BrokerStats> stats = client->stats(); stats)
    check_broker_stats(to, *stats);
  else
    to.push_back({Severity::warning, "broker",
                  "its statistics are not for this user: " + stats.error().message,
                  "run  lightq doctor  as an administrator"});
  if (const auto topics = client->stats_of_all(); topics) check_topics(to, *topics);
  return true;
}

/// Returns the data directory of a broker on this machine: one with a running broker, else the usual one.
std::filesystem::path find_data_directory(const std::string& chosen) {
  const auto directories = data_directories(chosen);
  for (const std::filesystem::path& directory : directories) {
    std::error_code fault;
    if (std::filesystem::exists(directory / "broker.json", fault)) return directory;
  }
  return directories.empty() ? std::filesystem::path(".") : directories.front();
}

std::string text_of(const Findings& findings) {
  std::string text;
  const std::size_t columns = output_columns();
  constexpr std::size_t margin = 9;
  for (const Finding& finding : findings) {
    std::string word = word_of(finding.severity);
    word.resize(margin, ' ');
    const auto add = [&](const std::string& sentence) {
      std::string shown;
      append_escaping_controls(shown, sentence);
      text += wrapped(shown, columns, margin, margin) + "\n";
    };
    text += word;
    add(finding.check + ": " + finding.text);
    if (finding.mend.empty()) continue;
    text += std::string(margin, ' ');
    add("mend: " + finding.mend);
  }
  return text;
}

std::string document_of(const Findings& findings) {
  JsonArray list;
  for (const Finding& finding : findings)
    list.add(JsonObject()
                 .add("severity", word_of(finding.severity))
                 .add("check", finding.check)
                 .add_bytes("text", finding.text)
                 .add_bytes("mend", finding.mend)
                 .text());
  return JsonObject().add("cmd", "doctor").add("status", "ok").add_raw("findings", list.text()).text() + "\n";
}

/// Returns the findings by severity; those of one severity in the order of the checks.
Findings worst_first(const Findings& findings) {
  Findings sorted;
  for (const Severity severity : {Severity::fault, Severity::warning, Severity::ok})
    std::ranges::copy_if(findings, std::back_inserter(sorted),
                         [severity](const Finding& finding) { return finding.severity == severity; });
  return sorted;
}

}  // namespace

int run_doctor(const Common& common) {
  Findings findings;
  const bool answers = check_broker(findings, common);
  const std::filesystem::path directory = find_data_directory(common.data_dir);
  const auto running = lightq::detail::read_running_broker(directory);
  const bool is_here = answers && running && *running && (*running)->pid > 0;
  check_descriptors(findings, is_here ? "/proc/" + std::to_string((*running)->pid) + "/limits" : "");
  check_disk(findings, directory);
  check_modes(findings, directory);
  check_former_key(findings, directory);
  check_clock(findings);
  if (!answers) check_port(findings, control_port);
  findings = worst_first(findings);
  Output out;
  out.write(common.json ? document_of(findings) : text_of(findings));
  const bool has_fault = !findings.empty() && findings.front().severity == Severity::fault;
  return out.end() && !has_fault ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
