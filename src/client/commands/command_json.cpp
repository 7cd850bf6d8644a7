/// The table of commands, and the shells' scripts, as JSON. Layer: cli.
#include "client/commands/command_json.hpp"

#include <vector>

#include "client/help/shell_script.hpp"
#include "client/json_text.hpp"

namespace lightq::cli {
namespace {

std::string list_of(const std::vector<std::string>& texts) {
  JsonArray list;
  for (const std::string& text : texts) {
    std::string quoted = "\"";
    append_escaped(quoted, text);
    list.add(quoted + "\"");
  }
  return list.text();
}

std::string document_of(const ArgumentEntry& argument) {
  return JsonObject()
      .add("value", argument.value)
      .add("help", argument.help)
      .add("required", argument.required)
      .add("repeats", argument.repeats)
      .text();
}

std::string document_of(const FlagEntry& flag) {
  return JsonObject()
      .add_raw("names", list_of(flag.names))
      .add("value", flag.value)
      .add("help", flag.help)
      .add("variable", flag.variable)
      .add("required", flag.required)
      .add("repeats", flag.repeats)
      .text();
}

std::string document_of(const CommandEntry& command) {
  JsonArray arguments;
  for (const ArgumentEntry& each : command.arguments) arguments.add(document_of(each));
  JsonArray flags;
  for (const FlagEntry& each : command.flags) flags.add(document_of(each));
  JsonArray commands;
  for (const CommandEntry& each : command.commands) commands.add(document_of(each));
  return JsonObject()
      .add("words", command.words)
      .add_raw("aliases", list_of(command.aliases))
      .add("help", command.help)
      .add_raw("arguments", arguments.text())
      .add_raw("flags", flags.text())
      .add_raw("commands", commands.text())
      .text();
}

}  // namespace

std::string commands_document(const CommandEntry& program, std::string_view command) {
  JsonArray commands;
  for (const CommandEntry& each : program.commands)
    if (command.empty() || each.name() == command) commands.add(document_of(each));
  return JsonObject().add("cmd", "man").add("status", "ok").add_raw("commands", commands.text()).text() +
         "\n";
}

std::string script_document(std::string_view shell) {
  return JsonObject()
             .add("cmd", "completion")
             .add("status", "ok")
             .add("shell", shell)
             .add("script", shell_script(shell))
             .text() +
         "\n";
}

}  // namespace lightq::cli
