/// `lightq ping` and `lightq version`. Layer: cli.
#include <lightq/base/shown_text.hpp>
#include <lightq/version.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/session.hpp"
#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {

int run_ping(const Common& common) {
  Result<Client> client = open_client(common);
  if (!client) return fail(client.error());
  const auto began = std::chrono::steady_clock::now();
  if (const Result<void> answered = client->ping(); !answered) return fail(answered.error());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  Output out;
  if (common.json) {
    out.write("{\"cmd\":\"ping\",\"status\":\"ok\",\"seconds\":" + std::to_string(seconds) + "}\n");
  } else {
    out.write("ok: " + client->uri() + " answers in " + format_seconds(seconds) + "\n");
  }
  return out.end() ? exit_ok : exit_failure;
}

int run_version(const Common& common) {
  Common patient = common;
  patient.request_timeout = std::min(common.request_timeout, Timeout(500));
  std::string broker;
  std::string uri;
  Result<Client> client = open_client(patient);
  if (client) {
    uri = client->uri();
    if (Result<std::string> version = client->version(); version) broker = *version;
  } else if (client.error().code == ErrorCode::invalid_argument) {
    return fail(client.error());
  }
  Output out;
  std::string shown;
  append_escaping_controls(shown, broker);
  if (common.json) {
    JsonObject reply;
    reply.add("cmd", "version").add("status", "ok").add("version", version_text);
    broker.empty() ? reply.add_raw("broker", "null") : reply.add("broker", shown);
    out.write(reply.text() + "\n");
    return out.end() ? exit_ok : exit_failure;
  }
  out.write("lightq " + std::string(version_text) + "\n");
  if (!broker.empty()) out.write("broker " + shown + " at " + uri + "\n");
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
