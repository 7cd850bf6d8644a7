/// The command `mirror`. Included only by command_line.cpp, like command_options.hpp. Layer: cli.
#pragma once

#include <memory>

#include "client/parser/command_options.hpp"
#include "client/parser/message_options.hpp"
#include "client/parser/verb.hpp"

namespace lightq::cli {

inline void add_mirror(CLI::App* app, Parsed& parsed) {
  auto mirror = std::make_shared<Mirror>();
  CLI::App* const verb = add_verb(
      app, parsed, "mirror", "copy a topic of another broker into this one, with its new messages",
      "  lightq mirror orders --from tcp://HOST:5000 --from-user ann --from-password-file ann.txt\n"
      "  lightq mirror orders --from tcp://HOST:5000 --until-end --json\n\n"
      "Payload, key, headers, producer's time and order stay; offsets are new. After an interruption, also "
      "by\n"
      "kill -9, the same command continues behind the last stored message, and stores none twice. Messages\n"
      "that the source dropped before they were copied are counted, and make the exit code 1.");
  topic_argument(verb, mirror->topic);
  text_option(verb, "--from", mirror->from, "control URI of the source's broker", "URI")->required();
  text_option(verb, "--from-topic", mirror->from_topic, "the source's name, if it has another one", "TOPIC");
  text_option(verb, "--from-user", mirror->from_user, "user at the source", "NAME");
  text_option(verb, "--from-password-file", mirror->from_password_file, "file with that user's password",
              "FILE");
  text_option(verb, "--from-server-key", mirror->from_server_key,
              "public key of the source's broker, if it encrypts", "KEY");
  text_option(verb, "--from-data-dir", mirror->from_data_dir,
              "data directory of the source's broker, if it runs on this machine", "DIR");
  place_option(verb, "--begin", mirror->begin,
               "begin anew, with this message of the source; may store messages twice");
  flag(verb, "--until-end", mirror->until_end, "end with the last message that the source has now");
  text_option(verb, "--state", mirror->state_file,
              "file that says where to continue (one in ~/.local/state/lightq/mirrors)", "FILE");
  word_option<session::ConfirmLevel>(
      verb, "--confirm", mirror->confirm,
      {{"received", session::ConfirmLevel::received}, {"flushed", session::ConfirmLevel::flushed}},
      "confirm a message when it is in the log (received) or on disk (flushed, default of durable topics)");
  verb->callback([&parsed, mirror] {
    parsed.command = [&parsed, mirror] { return run_mirror(parsed.common, *mirror); };
  });
}

}  // namespace lightq::cli
