/// `lightq key`: creates and shows a client's key pair. Layer: cli.
#include <lightq/client_key_file.hpp>

#include "client/invocation.hpp"
#include "client/json_text.hpp"
#include "client/terminal.hpp"

namespace lightq::cli {
namespace {

int print_public_key(const Common& common, const std::string& file, const Result<std::string>& key) {
  if (!key) {
    say_error(to_word(key.error().code), key.error().text());
    return key.error().code == ErrorCode::invalid_argument ? exit_usage : exit_failure;
  }
  Output out;
  if (common.json) {
    out.write(JsonObject()
                  .add("cmd", "key")
                  .add("status", "ok")
                  .add_bytes("file", file)
                  .add_bytes("public_key", *key)
                  .text() +
              "\n");
  } else {
    out.write(*key + "\n");
  }
  return out.end() ? exit_ok : exit_failure;
}

}  // namespace

int run_key_new(const Common& common, const std::string& file) {
  return print_public_key(common, file, make_client_key(file));
}

int run_key_public(const Common& common, const std::string& file) {
  const auto keys = read_client_key(file);
  return print_public_key(common, file, keys ? Result<std::string>(keys->public_key) : keys.error());
}

}  // namespace lightq::cli
