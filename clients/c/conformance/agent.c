/* The C client's agent for the conformance kit: does the commands of clients/conformance/README.md with
   lightq.h alone. */
#include <stdlib.h>
#include <string.h>

#include "agent.h"

enum { OBJECTS_MAX = 64 };

struct object {
  char* name;
  struct agent_producer* producer; /* or */
  struct agent_consumer* consumer;
};

static struct object objects[OBJECTS_MAX];

static char* copy_of(const char* text) {
  return text == NULL ? NULL : strdup(text);
}

/* Returns the object of this name, or a free one. */
static struct object* object_named(const char* name) {
  size_t i;
  for (i = 0; i < OBJECTS_MAX && objects[i].name != NULL; ++i) {
    if (strcmp(objects[i].name, name) == 0) return &objects[i];
  }
  if (i == OBJECTS_MAX) abort();
  return &objects[i];
}

static void empty(struct object* of) {
  if (of->producer != NULL) {
    lightq_producer_free(of->producer->producer);
    free(of->producer->outcomes);
    free(of->producer);
  }
  if (of->consumer != NULL) {
    while (of->consumer->kept != NULL) {
      struct agent_kept* kept = of->consumer->kept;
      of->consumer->kept = kept->next;
      free(kept);
    }
    lightq_consumer_free(of->consumer->consumer);
    free(of->consumer);
  }
  of->producer = NULL;
  of->consumer = NULL;
}

int agent_client(const struct agent* agent, const struct json* command, lightq_client** client) {
  lightq_options options = agent->options;
  options.connect_timeout_ms = (int)json_number(command, "timeout_ms", 10000);
  return lightq_connect(&options, client);
}

static int connect_agent(struct agent* agent, const struct json* command) {
  const lightq_options fresh = LIGHTQ_OPTIONS_INIT;
  const char* transport = json_text(command, "transport", "");
  char* user = copy_of(json_text(command, "user", NULL));
  char* password = copy_of(json_text(command, "password", NULL));
  agent->options = fresh;
  agent->options.uri = copy_of(json_text(command, "uri", NULL));
  agent->options.server_key = copy_of(json_text(command, "server_key", NULL));
  agent->options.no_discovery = 1;
  if (json_number(command, "admin", 0)) {
    agent->options.admin_user = user;
    agent->options.admin_password = password;
  } else {
    agent->options.user = user;
    agent->options.password = password;
  }
  agent->transport = strcmp(transport, "ipc") == 0   ? LIGHTQ_TRANSPORT_IPC
                     : strcmp(transport, "tcp") == 0 ? LIGHTQ_TRANSPORT_TCP
                                                     : LIGHTQ_TRANSPORT_AUTO;
  lightq_client_free(agent->client);
  return lightq_connect(&agent->options, &agent->client);
}

static int stats(struct agent* agent, const struct json* command, FILE* more) {
  char* reply;
  struct json parsed;
  const int code = lightq_stats(agent->client, json_text(command, "topic", NULL), &reply);
  if (code != LIGHTQ_OK) return code;
  parsed = json_parse(reply);
  fprintf(more, ",\"messages_received\":%lld,\"duplicates\":%lld",
          (long long)json_number(&parsed, "messages_received", 0),
          (long long)json_number(&parsed, "duplicates", 0));
  json_free(&parsed);
  lightq_free(reply);
  return LIGHTQ_OK;
}

static int open_object(struct agent* agent, const struct json* command, int produces, FILE* more) {
  struct object* of = object_named(json_text(command, "as", ""));
  if (of->name == NULL) of->name = copy_of(json_text(command, "as", ""));
  empty(of);
  if (produces) {
    of->producer = calloc(1, sizeof *of->producer);
    return of->producer == NULL ? LIGHTQ_NO_MEMORY : produce_open(agent, command, of->producer, more);
  }
  of->consumer = calloc(1, sizeof *of->consumer);
  return of->consumer == NULL ? LIGHTQ_NO_MEMORY : consume_open(agent, command, of->consumer);
}

static int create_topic(struct agent* agent, const struct json* command) {
  const int is_file = strcmp(json_text(command, "broker_type", ""), "file") == 0;
  return lightq_create_topic(agent->client, json_text(command, "topic", NULL),
                             is_file ? "{\"broker_type\":\"file\"}" : NULL);
}

static int run(struct agent* agent, const struct json* command, FILE* more) {
  const char* what = json_text(command, "do", "");
  struct object* of;
  if (strcmp(what, "connect") == 0) return connect_agent(agent, command);
  if (strcmp(what, "create_topic") == 0) return create_topic(agent, command);
  if (strcmp(what, "delete_topic") == 0)
    return lightq_delete_topic(agent->client, json_text(command, "topic", NULL));
  if (strcmp(what, "stats") == 0) return stats(agent, command, more);
  if (strcmp(what, "produce_open") == 0) return open_object(agent, command, 1, more);
  if (strcmp(what, "consume_open") == 0) return open_object(agent, command, 0, more);
  if (strcmp(what, "read") == 0) return read_command(agent, command, more);
  of = object_named(json_text(command, "on", ""));
  if (of->producer != NULL) return produce_command(of->producer, what, command, more);
  if (of->consumer != NULL) return consume_command(of->consumer, what, command, more);
  return LIGHTQ_INVALID_ARGUMENT;
}

static void reply_to(const struct json* command, int code, const char* more) {
  printf("{\"id\":%lld,\"ok\":%s", (long long)json_number(command, "id", 0),
         code == LIGHTQ_OK ? "true" : "false");
  if (code != LIGHTQ_OK) {
    const char* text = lightq_last_error()->text;
    printf(",\"error\":\"%s\",\"text\":", lightq_strerror(code));
    json_write(stdout, text, strlen(text));
  }
  printf("%s}\n", more);
  fflush(stdout);
}

int main(void) {
  struct agent agent = {LIGHTQ_OPTIONS_INIT, NULL, LIGHTQ_TRANSPORT_AUTO};
  char* line = NULL;
  size_t capacity = 0, i;
  int ends = 0;
  printf(
      "{\"client\":\"C\",\"version\":\"%s\",\"features\":[\"control\",\"keys\",\"delayed\",\"ttl\","
      "\"leases\",\"dead\","
      "\"seek\",\"read\",\"tls\",\"ipc\",\"epoch\"]}\n",
      lightq_version());
  fflush(stdout);
  while (!ends && getline(&line, &capacity, stdin) > 0) {
    struct json command = json_parse(line);
    char* more_text = NULL;
    size_t more_bytes = 0;
    ends = strcmp(json_text(&command, "do", ""), "exit") == 0;
    if (!ends) {
      FILE* more = open_memstream(&more_text, &more_bytes);
      const int code = run(&agent, &command, more);
      fclose(more);
      reply_to(&command, code, more_text);
      free(more_text);
    }
    json_free(&command);
  }
  for (i = 0; i < OBJECTS_MAX; ++i) empty(&objects[i]);
  lightq_client_free(agent.client);
  free(line);
  return 0;
}
