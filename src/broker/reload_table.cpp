/// Compares settings with those in force, one by one. Layer: broker.
#include "broker/reload_table.hpp"

#include "broker/value_text.hpp"

namespace lightq::broker {

namespace {

template <auto member>
constexpr ReloadRow row(std::string_view name, Effect effect) {
  return {name, effect, [](const Config& one, const Config& other) { return one.*member == other.*member; },
          [](const Config& from, Config& to) { to.*member = from.*member; },
          [](const Config& config) { return value_text(config.*member); }};
}

using enum Effect;
constexpr ReloadRow rows[] = {
    row<&Config::data_dir>("data_dir", restart),
    row<&Config::control_uri>("control", restart),
    row<&Config::http_uri>("http", restart),
    row<&Config::http_hosts>("http_hosts", restart),
    row<&Config::http_connections_max>("http_connections_max", restart),
    row<&Config::metrics_topics_max>("metrics_topics_max", restart),
    row<&Config::bind_host>("bind", restart),
    row<&Config::advertise_host>("advertise", restart),
    row<&Config::ports>("ports", restart),
    row<&Config::log_level>("log_level", at_once),
    row<&Config::log_file>("log_file", restart),
    row<&Config::log_file_bytes>("log_file_bytes", restart),
    row<&Config::audit_log>("audit_log", restart),
    row<&Config::audit_log_bytes>("audit_log_bytes", restart),
    row<&Config::message_bytes_max>("message_bytes_max", restart),
    row<&Config::min_free_bytes>("min_free_bytes", restart),
    row<&Config::disk_bytes_max>("disk_bytes_max", restart),
    row<&Config::flush_interval>("flush_interval_ms", restart),
    row<&Config::endpoint_idle>("endpoint_idle_ms", restart),
    row<&Config::port_rest>("port_quarantine_ms", restart),
    row<&Config::session_heartbeat>("session_heartbeat_ms", restart),
    row<&Config::ticket_lifetime>("ticket_ms", restart),
    row<&Config::open_topics>("open_topics", restart),
    row<&Config::encrypt>("encrypt", restart),
    row<&Config::allowed_client_keys>("allowed_client_keys", at_once_if_encrypt_stays),
    row<&Config::insecure>("insecure", restart),
    row<&Config::core_dumps>("core_dumps", restart),
    row<&Config::tls_certificate>("tls_certificate", at_once_if_encrypt_stays),
    row<&Config::tls_key>("tls_key", at_once_if_encrypt_stays),
    row<&Config::storage_key_file>("storage_key_file", restart),
    row<&Config::storage_key_command>("storage_key_command", restart),
    row<&Config::stop_deadline>("stop_deadline_ms", restart),
    row<&Config::handshakes_max>("handshakes_max", restart),
    row<&Config::accepts_per_second>("accepts_per_second", restart),
    row<&Config::handshake_time>("handshake_ms", restart),
    row<&Config::requests_per_second>("requests_per_second", at_once),
    row<&Config::connections_per_user>("connections_per_user", at_once),
    row<&Config::topics_max>("topics_max", at_once),
    row<&Config::endpoints_max>("endpoints_max", restart),
    row<&Config::endpoints_per_topic_max>("endpoints_per_topic_max", restart),
    row<&Config::connections_per_endpoint_max>("connections_per_endpoint_max", restart),
    row<&Config::groups_per_topic_max>("groups_per_topic_max", restart),
    row<&Config::session_channels_max>("session_channels_max", restart),
    row<&Config::session_reads_max>("session_reads_max", restart),
    row<&Config::read_bytes_max>("read_bytes_max", restart),
    row<&Config::shared_bytes_total>("shared_bytes_total", restart),
    row<&Config::in_flight_messages_max>("in_flight_messages_max", restart),
    row<&Config::outstanding_ranges_max>("outstanding_ranges_max", restart),
    row<&Config::group_state_bytes_max>("group_state_bytes_max", restart),
    row<&Config::redelivery_ms_max>("redelivery_ms_max", restart),
    row<&Config::processing_timeout_ms>("processing_timeout_ms", restart),
    row<&Config::producers_max>("producers_max", restart),
    row<&Config::client_keys_per_topic_max>("client_keys_per_topic_max", restart),
    row<&Config::users_max>("users_max", at_once),
    row<&Config::rights_per_user_max>("rights_per_user_max", at_once),
    row<&Config::credentials_remembered_max>("credentials_remembered_max", at_once),
    row<&Config::request_bytes_max>("request_bytes_max", restart),
    row<&Config::requests_waiting_max>("requests_waiting_max", restart),
    row<&Config::control_connections_max>("control_connections_max", at_once),
    row<&Config::answers_unread_bytes_max>("answers_unread_bytes_max", at_once),
    row<&Config::answers_unread_bytes_total>("answers_unread_bytes_total", at_once),
    row<&Config::unfinished_bytes_total>("unfinished_bytes_total", restart),
    row<&Config::ring_bytes_max>("ring_bytes_max", at_once),
    row<&Config::memory_bytes_max>("memory_bytes_max", at_once),
    row<&Config::decrypted_bytes_total>("decrypted_bytes_total", restart),
    row<&Config::reactors>("reactors", restart),
    row<&Config::ipc_dir>("ipc_dir", restart),
    row<&Config::admin_password_file>("admin_password_file", restart),
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::span<const ReloadRow> reload_rows() {
  return rows;
}

ReloadPlan plan_reload(const Config& in_force, const Config& read) {
  ReloadPlan plan{in_force, {}, {}};
  const bool encrypt_stays = in_force.encrypt == read.encrypt;
  for (const ReloadRow& each : rows) {
    if (each.is_same(in_force, read)) continue;
    const bool at_once =
        each.effect == Effect::at_once || (each.effect == Effect::at_once_if_encrypt_stays && encrypt_stays);
    (at_once ? plan.changed : plan.needs_restart).emplace_back(each.name);
    if (at_once) each.copy(read, plan.config);
  }
  if (in_force.topic_templates != read.topic_templates) plan.changed.emplace_back("topics");
  plan.config.topic_templates = read.topic_templates;
  return plan;
}

void take_reloadable(const Config& from, Config& to) {
  for (const ReloadRow& each : rows) {
    if (each.effect != Effect::restart) each.copy(from, to);
  }
  to.topic_templates = from.topic_templates;
}

std::string reload_text(const protocol::ReloadReply& reply) {
  std::string text =
      reply.changed.empty() ? "reload: nothing has changed" : "reload: changed: " + joined(reply.changed);
  if (!reply.needs_restart.empty()) text += "; needs a restart: " + joined(reply.needs_restart);
  return text;
}

}  // namespace lightq::broker
