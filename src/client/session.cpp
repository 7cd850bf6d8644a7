/// Opens a command's client, and explains its errors. Layer: cli.
#include "client/session.hpp"

#include <lightq/base/shown_text.hpp>
#include <lightq/base/shown_uri.hpp>
#include <lightq/discovery.hpp>

#include "client/password_prompt.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {
namespace {

/// Returns a user's name and password. The password comes from `file`, or from `given`, the value of
/// `variable`. Returns empty credentials if no name is given.
Result<Credentials> credentials(const std::string& name, const std::string& file, const char* variable,
                                Secret given) {
  if (name.empty() && !file.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "--password-file needs the user of the password: give --user NAME"};
  }
  if (name.empty()) return Credentials{};
  if (!file.empty()) {
    Result<Secret> password = read_password(file, variable);
    if (!password) return password.error();
    return Credentials{name, std::move(*password)};
  }
  if (!given.empty()) return Credentials{name, std::move(given)};
  return Error{
      ErrorCode::invalid_argument,
      "user '" + shown_user(name) + "' needs a password: give a file that contains it, or set " + variable};
}

}  // namespace

Result<Client> open_client(const Common& given) {
  const Result<Common> with_named = with_context(given);
  if (!with_named) return with_named.error();
  const Common& common = *with_named;
  Secret user_password = common.secrets->take("LIGHTQ_PASSWORD");
  Secret admin_password = common.secrets->take("LIGHTQ_ADMIN_PASSWORD");
  ClientOptions options;
  options.data_dir = common.data_dir;
  options.server_key = common.server_key;
  options.client_key_file = common.client_key_file;
  options.insecure = common.insecure;
  options.request_timeout = common.request_timeout;
  Result<Credentials> user =
      credentials(common.user, common.password_file, "LIGHTQ_PASSWORD", std::move(user_password));
  if (!user) return user.error();
  options.user = std::move(*user);
  const std::string name = common.admin_user.empty() ? std::string(default_admin_user_id) : common.admin_user;
  const bool password_given = !common.admin_password_file.empty() || !admin_password.empty();
  if (password_given) {
    Result<Credentials> admin =
        credentials(name, common.admin_password_file, "LIGHTQ_ADMIN_PASSWORD", std::move(admin_password));
    if (!admin) return admin.error();
    options.admin = std::move(*admin);
  } else {
    options.admin.user_id = common.admin_user;  // of this machine's broker; admin.json has the password
  }
  Result<Client> client = Client::connect(common.broker, std::move(options));
  const bool other_admin = client && !common.admin_user.empty() && client->options().admin.user_id != name;
  if (client && client->exposed() && client->options().insecure) {
    say("insecure: passwords, tickets and messages go to " + client->uri() +
        " unencrypted; give --server-key if the broker encrypts");
  }
  if (!other_admin) return client;
  return Error{ErrorCode::invalid_argument,
               "administrator '" + shown_user(name) +
                   "' needs a password: give --admin-password-file, or set LIGHTQ_ADMIN_PASSWORD"};
}

int fail(const Error& error, const std::string& topic) {
  std::string sentence;
  append_escaping_controls(sentence,
                           error.text());  // a broker's text must not look like a line of this program
  const auto mentions = [&](const std::string& words) { return sentence.find(words) != std::string::npos; };
  if (!topic.empty() && !mentions("'" + topic + "'") && !mentions("topic " + topic + " ")) {
    sentence = "topic '" + topic + "': " + sentence;
  }
  switch (error.code) {
    case ErrorCode::topic_not_found:
      sentence += topic.empty() ? "" : "\n  create it:  lightq topic create " + topic;
      break;
    case ErrorCode::unauthorized_access:
      if (!mentions("no credentials were given")) break;  // a password was given
      sentence +=
          "\n  give --user and --password-file (or LIGHTQ_USER, LIGHTQ_PASSWORD). On the broker's machine "
          "its admin.json is used automatically if this user can read it and --data-dir is right";
      break;
    case ErrorCode::timeout:
    case ErrorCode::io_error:
      if (sentence.starts_with("no answer to ping") || sentence.starts_with("no broker listens at")) {
        sentence += "\n  is it running?  lightq broker      elsewhere?  --broker tcp://HOST:PORT";
      }
      break;
    default: break;
  }
  say_error(to_word(error.code), sentence);
  return error.code == ErrorCode::invalid_argument ? exit_usage : exit_failure;
}

bool Reconnector::is_passing(const Error& error) {
  return error.code == ErrorCode::timeout || error.code == ErrorCode::busy ||
         error.code == ErrorCode::shutting_down || error.code == ErrorCode::limit_reached;
}

}  // namespace lightq::cli
