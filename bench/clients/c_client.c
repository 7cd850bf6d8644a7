/* The C client for suite `clients`, as clients/client_program.hpp specifies. Layer: bench. */
#include <lightq/lightq.h>

#include "numbered.h"

enum { patience_ms = 30000 };

static void require(int code) {
  if (code != LIGHTQ_OK) die(lightq_last_error()->text);
}

static void produce(lightq_client* client, const char* topic, struct numbered* messages, uint64_t count) {
  lightq_producer* out = NULL;
  uint64_t i;
  require(lightq_producer_open(client, topic, NULL, &out));
  for (i = 0; i < count; ++i) {
    numbered_set(messages, i);
    require(lightq_send(out, messages->expected, messages->bytes, NULL, patience_ms));
  }
  require(lightq_producer_close(out, patience_ms));
  lightq_producer_free(out);
}

static void consume(lightq_client* client, const char* topic, const struct numbered* messages,
                    uint64_t count) {
  lightq_consumer* in = NULL;
  lightq_consumer_options options = LIGHTQ_CONSUMER_OPTIONS_INIT;
  lightq_message message = LIGHTQ_MESSAGE_INIT;
  double begun = 0;
  uint64_t i;
  options.group = "bench";
  require(lightq_consumer_open(client, topic, &options, &in));
  require(lightq_consumer_wait_open(in, patience_ms));
  puts("ready");
  fflush(stdout);
  for (i = 0; i < count; ++i) {
    require(lightq_next(in, &message, patience_ms));
    numbered_check(messages, i, message.body, message.body_bytes);
    require(lightq_ack(in, &message));
    if (i == count / 10) begun = numbered_seconds();
  }
  printf("received %.9f\n", numbered_seconds() - begun);
  require(lightq_consumer_close(in, patience_ms));
  lightq_consumer_free(in);
}

int main(int argument_count, char** arguments) {
  lightq_client* client = NULL;
  struct numbered messages;
  uint64_t count;
  if (argument_count != 6) return 2;
  messages = numbered_make(strtoul(arguments[4], NULL, 10));
  count = strtoull(arguments[5], NULL, 10);
  require(lightq_connect(NULL, &client));
  if (strcmp(arguments[1], "produce") == 0)
    produce(client, arguments[3], &messages, count);
  else
    consume(client, arguments[3], &messages, count);
  lightq_client_free(client);
  free(messages.expected);
  return 0;
}
