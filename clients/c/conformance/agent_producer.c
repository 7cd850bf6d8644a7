/* A producer of the agent: sends messages from files, and collects their fates. */
#include <stdlib.h>
#include <string.h>

#include "agent.h"

static void report(void* user, const lightq_report* told) {
  static const char* const fates[] = {"confirmed", "refused", "unknown"};
  struct agent_producer* of = user;
  char item[200], code[64] = "null";
  int bytes;
  if (told->code != LIGHTQ_OK) snprintf(code, sizeof code, "\"%s\"", lightq_strerror(told->code));
  bytes = snprintf(item, sizeof item, "%s[%llu,%llu,\"%s\",%s]", of->outcomes_bytes > 0 ? "," : "",
                   (unsigned long long)told->begin, (unsigned long long)told->end, fates[told->fate], code);
  of->outcomes = realloc(of->outcomes, of->outcomes_bytes + (size_t)bytes + 1);
  if (of->outcomes == NULL) abort();
  memcpy(of->outcomes + of->outcomes_bytes, item, (size_t)bytes + 1);
  of->outcomes_bytes += (size_t)bytes;
}

int produce_open(const struct agent* agent, const struct json* command, struct agent_producer* to,
                 FILE* more) {
  lightq_producer_options options = LIGHTQ_PRODUCER_OPTIONS_INIT;
  lightq_identity identity = LIGHTQ_IDENTITY_INIT;
  const char* level = json_text(command, "level", "");
  lightq_client* client;
  int code;
  identity.id = (uint64_t)json_number(command, "producer_id", 0);
  identity.epoch = (int)json_number(command, "epoch", 0);
  options.identity = &identity;
  if (strcmp(level, "received") == 0) options.level = LIGHTQ_LEVEL_RECEIVED;
  if (strcmp(level, "flushed") == 0) options.level = LIGHTQ_LEVEL_FLUSHED;
  options.delayed = (int)json_number(command, "delayed", 0);
  options.no_retry_refused = !json_number(command, "retry_refused", 1);
  options.transport = agent->transport;
  if ((code = agent_client(agent, command, &client)) != LIGHTQ_OK) return code;
  code = lightq_producer_open(client, json_text(command, "topic", NULL), &options, &to->producer);
  lightq_client_free(client);
  if (code != LIGHTQ_OK) return code;
  if ((code = lightq_producer_on_report(to->producer, report, to)) != LIGHTQ_OK) return code;
  if ((code = lightq_producer_identity(to->producer, &identity)) != LIGHTQ_OK) return code;
  fprintf(more, ",\"producer_id\":%llu,\"epoch\":%d", (unsigned long long)identity.id, identity.epoch);
  return LIGHTQ_OK;
}

/* Takes the headers, which are pairs. Returns how many there are. */
static size_t headers_of(const struct json* command, lightq_header* headers, size_t most) {
  const struct json* pairs = json_member(command, "headers");
  size_t count = 0;
  for (; pairs != NULL && count < pairs->count && count < most; ++count) {
    const struct json* pair = pairs->items[count].items;
    headers[count].name = pair[0].text;
    headers[count].name_bytes = strlen(pair[0].text);
    headers[count].value = pair[1].text;
    headers[count].value_bytes = strlen(pair[1].text);
  }
  return count;
}

static int produce(struct agent_producer* of, const struct json* command, unsigned long long* sent) {
  const struct json *sizes = json_member(command, "sizes"), *keys = json_member(command, "keys");
  const size_t count = sizes != NULL ? sizes->count : (size_t)json_number(command, "count", 0);
  FILE* file = fopen(json_text(command, "file", ""), "rb");
  lightq_attributes attributes = LIGHTQ_ATTRIBUTES_INIT;
  lightq_header headers[64];
  char* body = NULL;
  int code = LIGHTQ_OK;
  if (file == NULL) abort();
  attributes.headers = headers;
  attributes.header_count = headers_of(command, headers, 64);
  attributes.delay_ms = json_number(command, "delay_ms", 0);
  attributes.ttl_ms = json_number(command, "ttl_ms", 0);
  for (*sent = 0; *sent < count && code == LIGHTQ_OK; *sent += code == LIGHTQ_OK) {
    const size_t size =
        (size_t)(sizes != NULL ? sizes->items[*sent].number : json_number(command, "size", 0));
    body = realloc(body, size + 1);
    if (body == NULL || fread(body, 1, size, file) != size) abort();
    if (keys != NULL && keys->count > 0) {
      attributes.key = keys->items[*sent % keys->count].text;
      attributes.key_bytes = strlen(attributes.key);
    }
    code = lightq_send(of->producer, body, size, &attributes, 30000);
  }
  free(body);
  fclose(file);
  return code;
}

int produce_command(struct agent_producer* of, const char* what, const struct json* command, FILE* more) {
  const int timeout_ms = (int)json_number(command, "timeout_ms", 10000);
  unsigned long long sent = 0;
  int code = LIGHTQ_INVALID_ARGUMENT;
  if (strcmp(what, "produce") == 0) code = produce(of, command, &sent);
  if (strcmp(what, "flush") == 0) code = lightq_flush(of->producer, timeout_ms);
  if (strcmp(what, "close") == 0) code = lightq_producer_close(of->producer, timeout_ms);
  fprintf(more, ",\"sent\":%llu,\"outcomes\":[%s]", sent, of->outcomes_bytes > 0 ? of->outcomes : "");
  of->outcomes_bytes = 0;
  return code;
}
