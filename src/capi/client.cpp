/// The client of C: connections to brokers, and commands. Layer: capi.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <lightq/json_control.hpp>

#include "capi/boundary.hpp"
#include "capi/conversions.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace lightq::capi {

namespace {

/// Returns a text as a string of JSON. Errors in it are the broker's to find.
std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') json += '\\';
    json += byte;
  }
  return json + '"';
}

/// Sets `*reply` to a copy of the text, unless `reply` is null. Errors: NO_MEMORY.
int give_text(std::string_view text, char** reply) {
  if (reply == nullptr) return LIGHTQ_OK;
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return fail(LIGHTQ_NO_MEMORY, "this process has no memory for the reply");
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  *reply = copy;
  return LIGHTQ_OK;
}

/// Makes a request with `make_request()`, sends it, and gives the reply.
template <typename MakeRequest>
int ask(lightq_client* client, char** reply, MakeRequest make_request) {
  if (reply != nullptr) *reply = nullptr;
  if (client == nullptr) return fail_null_handle();
  return guarded([&] {
    const auto answered = JsonControl::of(client->client).ask(make_request());
    return answered ? give_text(*answered, reply) : fail(answered.error());
  });
}

}  // namespace

}  // namespace lightq::capi

using namespace lightq::capi;

extern "C" {

int lightq_connect(const lightq_options* options, lightq_client** client) {
  if (client == nullptr) return fail_argument("there is no place for the client");
  *client = nullptr;
  return guarded([&]() -> int {
    const auto given = read_sized(options, "lightq_options");
    if (!given) return fail(given.error());
    const auto chosen = client_options_of(*given);
    if (!chosen) return fail(chosen.error());
    auto connected = lightq::Client::connect(text_of(given->uri), *chosen);
    if (!connected) return fail(connected.error());
    *client = new lightq_client{std::move(*connected)};
    return LIGHTQ_OK;
  });
}

void lightq_client_free(lightq_client* client) {
  (void)guarded([&] {
    delete client;
    return LIGHTQ_OK;
  });
}

int lightq_ping(lightq_client* client) {
  if (client == nullptr) return fail_null_handle();
  return guarded([&] { return code_of(client->client.ping()); });
}

int lightq_command(lightq_client* client, const char* json, char** reply) {
  if (json == nullptr) {
    if (reply != nullptr) *reply = nullptr;
    return fail_argument("the command is null");
  }
  return ask(client, reply, [&] { return std::string(json); });
}

int lightq_create_topic(lightq_client* client, const char* topic, const char* settings) {
  if (topic == nullptr) return fail_argument("the topic is null");
  const std::string_view given = settings == nullptr ? "{}" : settings;
  const char* const space = " \t\r\n";
  const std::size_t begin = given.find_first_not_of(space);
  const bool is_object = begin != given.npos && given[begin] == '{';
  const std::size_t first = is_object ? given.find_first_not_of(space, begin + 1) : given.npos;
  if (first == given.npos) return fail_argument("the settings are no JSON object");
  return ask(client, nullptr, [&] {
    const std::string head = R"({"cmd":"create_topic","topic":)" + quoted(topic);
    return head + (given[first] == '}' ? "" : ",") + std::string(given.substr(first));
  });
}

int lightq_delete_topic(lightq_client* client, const char* topic) {
  if (topic == nullptr) return fail_argument("the topic is null");
  return ask(client, nullptr, [&] { return R"({"cmd":"delete_topic","topic":)" + quoted(topic) + "}"; });
}

int lightq_stats(lightq_client* client, const char* topic, char** reply) {
  return ask(client, reply, [&] {
    const std::string of_topic = topic == nullptr ? "" : R"(,"topic":)" + quoted(topic);
    return R"({"cmd":"stats")" + of_topic + "}";
  });
}

void lightq_free(void* text) {
  std::free(text);
}
}
