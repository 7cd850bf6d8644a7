/* NATS's client for C in suite `clients`, as clients/client_program.hpp specifies. Mode `core`: nothing is
   confirmed; mode `jetstream`: a stream in memory. Layer: bench. */
#include <nats/nats.h>

#include "numbered.h"

enum { patience_ms = 30000, fetch_messages = 1000 };

static void require(natsStatus status) {
  if (status != NATS_OK) die(natsStatus_GetText(status));
}

static void produce(natsConnection* connection, int persists, const char* topic, struct numbered* messages,
                    uint64_t count) {
  jsCtx* context = NULL;
  jsOptions options;
  uint64_t i;
  jsOptions_Init(&options);
  options.PublishAsync.MaxPending = 10000;
  require(natsConnection_JetStream(&context, connection, &options));
  for (i = 0; i < count; ++i) {
    numbered_set(messages, i);
    require(persists ? js_PublishAsync(context, topic, messages->expected, (int)messages->bytes, NULL)
                     : natsConnection_Publish(connection, topic, messages->expected, (int)messages->bytes));
  }
  if (persists) require(js_PublishAsyncComplete(context, NULL));
  require(natsConnection_FlushTimeout(connection, patience_ms));
  jsCtx_Destroy(context);
}

/* Checks one message, and destroys it. */
static void take(natsMsg* message, const struct numbered* messages, uint64_t count, uint64_t* next,
                 double* begun) {
  numbered_check(messages, *next, natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
  if (*next == count / 10) *begun = numbered_seconds();
  ++*next;
  natsMsg_Destroy(message);
}

static void consume_core(natsConnection* connection, const char* topic, const struct numbered* messages,
                         uint64_t count) {
  natsSubscription* in = NULL;
  natsMsg* message = NULL;
  uint64_t next = 0;
  double begun = 0;
  require(natsConnection_SubscribeSync(&in, connection, topic));
  require(natsSubscription_SetPendingLimits(in, -1, -1));
  require(natsConnection_FlushTimeout(connection, patience_ms));
  puts("ready");
  fflush(stdout);
  while (next < count) {
    require(natsSubscription_NextMsg(&message, in, patience_ms));
    take(message, messages, count, &next, &begun);
  }
  printf("received %.9f\n", numbered_seconds() - begun);
  natsSubscription_Destroy(in);
}

/* Waits until the server has counted all acknowledgements, which it does in the background. */
static void wait_for_acknowledgements(natsSubscription* in) {
  const double give_up = numbered_seconds() + patience_ms / 1e3;
  int64_t pending;
  do {
    jsConsumerInfo* state = NULL;
    require(natsSubscription_GetConsumerInfo(&state, in, NULL, NULL));
    pending = state->NumAckPending;
    jsConsumerInfo_Destroy(state);
    if (pending != 0 && numbered_seconds() > give_up) die("the server lacks acknowledgements");
  } while (pending != 0);
}

static void consume_stream(natsConnection* connection, const char* topic, const struct numbered* messages,
                           uint64_t count) {
  jsCtx* context = NULL;
  jsStreamConfig stream;
  jsSubOptions wanted;
  natsSubscription* in = NULL;
  natsMsgList list;
  const char* subjects[1];
  uint64_t next = 0;
  double begun = 0;
  int i;
  require(natsConnection_JetStream(&context, connection, NULL));
  jsStreamConfig_Init(&stream);
  subjects[0] = topic;
  stream.Name = topic;
  stream.Subjects = subjects;
  stream.SubjectsLen = 1;
  stream.Storage = js_MemoryStorage;
  require(js_AddStream(NULL, context, &stream, NULL, NULL));
  jsSubOptions_Init(&wanted);
  wanted.Config.MaxAckPending = 20000;
  require(js_PullSubscribe(&in, context, topic, "bench", NULL, &wanted, NULL));
  puts("ready");
  fflush(stdout);
  while (next < count) {
    require(natsSubscription_Fetch(&list, in, fetch_messages, patience_ms, NULL));
    for (i = 0; i < list.Count; ++i) {
      require(natsMsg_Ack(list.Msgs[i], NULL));
      take(list.Msgs[i], messages, count, &next, &begun);
      list.Msgs[i] = NULL;
    }
    natsMsgList_Destroy(&list);
  }
  printf("received %.9f\n", numbered_seconds() - begun);
  require(natsConnection_FlushTimeout(connection, patience_ms));
  wait_for_acknowledgements(in);
  require(js_DeleteStream(context, topic, NULL, NULL));
  natsSubscription_Destroy(in);
  jsCtx_Destroy(context);
}

int main(int argument_count, char** arguments) {
  natsConnection* connection = NULL;
  struct numbered messages;
  uint64_t count;
  int persists;
  if (argument_count != 6) return 2;
  persists = strcmp(arguments[2], "jetstream") == 0;
  messages = numbered_make(strtoul(arguments[4], NULL, 10));
  count = strtoull(arguments[5], NULL, 10);
  require(natsConnection_ConnectTo(&connection, getenv("NATS_URL")));
  if (strcmp(arguments[1], "produce") == 0)
    produce(connection, persists, arguments[3], &messages, count);
  else if (persists)
    consume_stream(connection, arguments[3], &messages, count);
  else
    consume_core(connection, arguments[3], &messages, count);
  natsConnection_Destroy(connection);
  nats_Close();
  free(messages.expected);
  return 0;
}
