/// Named brokers, in a file of the user. Layer: cli.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// How to reach a broker. It has no password, only the name of a file with it.
struct Context {
  std::string broker;           ///< control URI
  std::string user;             ///< empty: none
  std::string password_file;    ///< of the user
  std::string server_key;       ///< the broker's public key
  std::string client_key_file;  ///< this client's key
  std::string data_dir;         ///< of a broker on this machine
};

/// All named brokers, and the one in use.
struct Contexts {
  std::string current;  ///< empty: none
  std::map<std::string, Context> named;
};

/// Returns `$XDG_CONFIG_HOME/lightq/contexts.json`, or that in `~/.config`; empty if there is no home.
std::filesystem::path contexts_path();

/// Returns the content of the file; nothing if it is not such JSON. Ignores texts with names that it does not
/// know.
std::optional<Contexts> parse_contexts(std::string_view text);

/// Returns the text of the file.
std::string contexts_text(const Contexts& contexts);

/// Reads the file; no contexts if there is none. Errors: invalid_argument (others may write it, and so decide
/// which broker receives a password; it is no regular file; or it is not valid), io_error. Waits for no pipe.
Result<Contexts> read_contexts();

/// Writes the file with mode 0600, at once or not at all. Errors: io_error.
Result<void> write_contexts(const Contexts& contexts);

}  // namespace lightq::cli
