/// The flags of `lightq context`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "client/parser/command_options.hpp"

namespace lightq::cli {

inline constexpr std::array<std::string_view, 4> context_verbs = {"add", "use", "list", "remove"};

/// Adds the verbs of `context`. `add(name, help, examples)` makes a verb with the flags that all verbs have.
template <typename Add>
void add_context_verbs(Parsed& parsed, Add&& add) {
  using Run = int (*)(const Common&, const std::string&);
  const auto verb = [&](const char* name, Run run, const char* help, const char* examples) {
    auto context = std::make_shared<std::string>();
    CLI::App* const made = add(name, help, examples);
    made->add_option("name", *context, "the context's name")->required()->type_name("CONTEXT");
    made->callback([&parsed, context, run] {
      parsed.command = [&parsed, context, run] { return run(parsed.common, *context); };
    });
  };
  verb("add", run_context_add,
       "keep the flags of the connection under a name; replaces a context of this name",
       "  lightq context add prod --broker tcp://HOST:5000 --user ann --password-file ann.txt\n"
       "  lightq context add here --data-dir ./data");
  verb("use", run_context_use,
       "make commands use this context if no flag or variable names a broker; '': none",
       "  lightq context use prod\n  lightq context use ''");
  verb("remove", run_context_remove, "forget a context", "  lightq context remove prod");
  CLI::App* const list = add("list", "list all contexts, and which one is used", "  lightq context list");
  list->callback([&parsed] { parsed.command = [&parsed] { return run_context_list(parsed.common); }; });
}

}  // namespace lightq::cli
