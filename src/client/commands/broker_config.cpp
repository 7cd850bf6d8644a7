/// `lightq broker --check-config|--print-config`. Layer: cli.
#include <cstddef>
#include <string>
#include <string_view>

#include <lightq/base/shown_text.hpp>

#include "base/config_report.hpp"
#include "client/commands/broker_config.hpp"
#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {

namespace {

/// Returns the value as a basic string of TOML. It has the escapes of JSON, and one for DEL. Bytes that are
/// not UTF-8 become escapes as text; no file can have them.
std::string toml_string(std::string_view value) {
  std::string text(value);
  if (!is_utf8(value)) append_escaping_controls(text = {}, value);
  std::string escaped;
  append_escaped(escaped, text);
  for (std::size_t at = 0; (at = escaped.find('\x7f', at)) != std::string::npos;)
    escaped.replace(at, 1, "\\u007f");
  return "\"" + escaped + "\"";
}

/// Returns the source without line ends, which would end the comment.
std::string shown_source(std::string_view source) {
  std::string shown;
  append_escaping_controls(shown, source);
  return shown;
}

std::string toml_line(const broker::ConfigValue& one) {
  if (one.is_secret) return "# " + one.name + ": secret, not shown  # " + shown_source(one.source) + "\n";
  if (!one.value) return "# " + one.name + ": not set\n";
  return one.name + " = " + (one.is_text ? toml_string(*one.value) : *one.value) + "  # " +
         shown_source(one.source) + "\n";
}

std::string toml_text(const broker::ConfigReport& report) {
  std::string text;
  std::string table;
  for (const broker::ConfigValue& one : report.values) {
    if (one.table != table) text += "\n[topics." + toml_string(one.table) + "]\n";
    table = one.table;
    text += toml_line(one);
  }
  return text;
}

std::string json_text(const broker::ConfigReport& report) {
  JsonArray settings;
  for (const broker::ConfigValue& one : report.values) {
    JsonObject setting;
    if (!one.table.empty()) setting.add("topics", one.table);
    setting.add("name", one.name);
    if (one.value && one.is_text)
      setting.add_bytes("value", *one.value);
    else
      setting.add_raw("value", one.value.value_or("null"));
    if (one.is_secret) setting.add("secret", true);
    settings.add(setting.add_bytes("source", one.source).text());
  }
  return R"({"cmd":"broker","status":"ok","settings":)" + settings.text() + "}\n";
}

}  // namespace

int run_broker_config(const broker::ConfigReport& report, ConfigOutput output, bool json) {
  for (const Error& fault : report.faults) say_error(to_word(fault.code), fault.text());
  if (!report.faults.empty())
    return report.faults.front().code == ErrorCode::invalid_argument ? exit_usage : exit_failure;
  Output out;
  if (output == ConfigOutput::values)
    out.write(json ? json_text(report) : toml_text(report));
  else
    out.write(json ? "{\"cmd\":\"broker\",\"status\":\"ok\"}\n" : "the configuration is valid\n");
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace lightq::cli
