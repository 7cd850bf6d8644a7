/* The parts of the C client's agent for the conformance kit (clients/conformance/README.md). Each function
   that does a command returns the code of lightq.h, and adds more members of the reply to `more`, as JSON
   that begins with a comma. */
#ifndef LIGHTQ_AGENT_H
#define LIGHTQ_AGENT_H

#include <stdio.h>

#include <lightq/lightq.h>

#include "json.h"

/* The options of every connection. `uri` and the others live as long as the process. */
struct agent {
  lightq_options options;
  lightq_client* client;
  int transport;
};

struct agent_producer {
  lightq_producer* producer;
  char* outcomes; /* fates since the last reply, as items of a JSON array */
  size_t outcomes_bytes;
};

/* A message that the agent keeps. */
struct agent_kept {
  lightq_message message;
  struct agent_kept* next;
};

struct agent_consumer {
  lightq_consumer* consumer;
  struct agent_kept* kept;
};

/* Returns a client of its own for one object, because a client has one timeout for all that it opens. */
int agent_client(const struct agent* agent, const struct json* command, lightq_client** client);

int produce_open(const struct agent* agent, const struct json* command, struct agent_producer* to,
                 FILE* more);
int produce_command(struct agent_producer* of, const char* what, const struct json* command, FILE* more);

int consume_open(const struct agent* agent, const struct json* command, struct agent_consumer* to);
int consume_command(struct agent_consumer* of, const char* what, const struct json* command, FILE* more);
int read_command(const struct agent* agent, const struct json* command, FILE* more);

#endif
