/* A consumer of the agent: reports messages, writes their bodies to files, and settles them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent.h"

enum { LINE_MESSAGES = 500, HEADERS = 64 };

/* Messages that were received and not reported yet. */
struct unreported {
  FILE *bodies, *line;
  char* text;
  size_t text_bytes, count;
  lightq_message messages[LINE_MESSAGES];
};

static void begin_line(struct unreported* of) {
  of->count = 0;
  of->text = NULL;
  of->line = open_memstream(&of->text, &of->text_bytes);
  if (of->line == NULL) abort();
}

static void add(struct unreported* to, const lightq_message* message) {
  lightq_header headers[HEADERS];
  const size_t count = lightq_message_headers(message, headers, HEADERS);
  size_t i;
  if (to->count < LINE_MESSAGES) to->messages[to->count] = *message;
  fprintf(to->line, "%s{\"offset\":%llu,\"bytes\":%llu,\"delivery\":%d", to->count > 0 ? "," : "",
          (unsigned long long)message->offset, (unsigned long long)message->body_bytes, message->delivery);
  if (message->key_bytes > 0) {
    fputs(",\"key\":", to->line);
    json_write(to->line, message->key, message->key_bytes);
  }
  for (i = 0; i < count; ++i) {
    fputs(i == 0 ? ",\"headers\":[[" : ",[", to->line);
    json_write(to->line, headers[i].name, headers[i].name_bytes);
    fputc(',', to->line);
    json_write(to->line, headers[i].value, headers[i].value_bytes);
    fputs(i + 1 == count ? "]]" : "]", to->line);
  }
  fputs(message->expired ? ",\"expired\":true}" : "}", to->line);
  ++to->count;
  if (message->body_bytes > 0 &&
      fwrite(message->body, 1, message->body_bytes, to->bodies) != message->body_bytes)
    abort();
}

static void end_line(struct unreported* of) {
  fclose(of->line);
  fflush(of->bodies);
  printf("{\"messages\":[%s]}\n", of->text);
  fflush(stdout);
  free(of->text);
}

/* Settles a message. One that the broker has taken back needs nothing. */
static void settle(struct agent_consumer* of, const lightq_message* message, const char* how,
                   const struct json* command) {
  if (strcmp(how, "ack") == 0) lightq_ack(of->consumer, message);
  if (strcmp(how, "release") == 0) lightq_release(of->consumer, message);
  if (strcmp(how, "retry") == 0) lightq_retry(of->consumer, message, json_number(command, "delay_ms", 0));
  if (strcmp(how, "dead") == 0) lightq_dead(of->consumer, message, json_text(command, "reason", ""));
}

static void report(struct agent_consumer* of, struct unreported* all, const struct json* command) {
  const char* how = json_text(command, "settle", NULL);
  size_t i;
  end_line(all);
  for (i = 0; i < all->count; ++i) {
    if (how != NULL) {
      settle(of, &all->messages[i], how, command);
    } else {
      struct agent_kept* kept = malloc(sizeof *kept);
      if (kept == NULL) abort();
      kept->message = all->messages[i];
      kept->next = of->kept;
      of->kept = kept;
    }
  }
  begin_line(all);
}

static int is_ready(struct agent_consumer* of) {
  lightq_interest interest = LIGHTQ_INTEREST_INIT;
  return lightq_consumer_interest(of->consumer, &interest) == LIGHTQ_OK && interest.timeout_ms == 0;
}

static int receive(struct agent_consumer* of, const struct json* command, FILE* more) {
  const int64_t count = json_number(command, "count", 0);
  const int timeout_ms = (int)json_number(command, "timeout_ms", 10000);
  lightq_message message = LIGHTQ_MESSAGE_INIT;
  static struct unreported all;
  int64_t received = 0;
  int code = LIGHTQ_OK;
  all.bodies = fopen(json_text(command, "into", ""), "ab");
  if (all.bodies == NULL) abort();
  begin_line(&all);
  while (received < count && (code = lightq_next(of->consumer, &message, timeout_ms)) == LIGHTQ_OK) {
    add(&all, &message);
    ++received;
    if (all.count == LINE_MESSAGES || received == count || !is_ready(of)) report(of, &all, command);
  }
  if (all.count > 0) report(of, &all, command);
  fclose(all.line);
  free(all.text);
  fclose(all.bodies);
  fprintf(more, ",\"received\":%lld", (long long)received);
  return code == LIGHTQ_TIMEOUT ? LIGHTQ_OK : code;
}

/* Removes a kept message from the list. */
static void drop(struct agent_kept** at) {
  struct agent_kept* dropped = *at;
  *at = dropped->next;
  free(dropped);
}

static int settle_kept(struct agent_consumer* of, const struct json* command) {
  const struct json* offsets = json_member(command, "offsets");
  size_t i;
  for (i = 0; offsets != NULL && i < offsets->count; ++i) {
    struct agent_kept** at = &of->kept;
    while (*at != NULL && (*at)->message.offset != (uint64_t)offsets->items[i].number) at = &(*at)->next;
    if (*at == NULL) continue;
    settle(of, &(*at)->message, json_text(command, "how", ""), command);
    drop(at);
  }
  return lightq_consumer_flush(of->consumer, (int)json_number(command, "timeout_ms", 10000));
}

/* Waits until a kept message was revoked. */
static int revoked(struct agent_consumer* of, const struct json* command, FILE* more) {
  const int timeout_ms = (int)json_number(command, "timeout_ms", 10000);
  const time_t end = time(NULL) + timeout_ms / 1000 + 1;
  int code = LIGHTQ_OK, found = 0;
  fputs(",\"revoked\":[", more);
  while (!found && code == LIGHTQ_OK && time(NULL) < end) {
    struct agent_kept** at = &of->kept;
    code = lightq_consumer_wait_open(of->consumer, timeout_ms);
    if (code == LIGHTQ_OK) code = lightq_consumer_flush(of->consumer, 1000);
    if (code == LIGHTQ_OK) code = lightq_consumer_poll(of->consumer);
    while (*at != NULL) {
      if (lightq_revoked(of->consumer, &(*at)->message)) {
        fprintf(more, "%s%llu", found++ ? "," : "", (unsigned long long)(*at)->message.offset);
        drop(at);
      } else {
        at = &(*at)->next;
      }
    }
  }
  fputs("]", more);
  return code;
}

/* Takes the place that a member of a command names. */
static int place_of(const struct json* command, const char* name, uint64_t* value) {
  const struct json* place = json_member(command, name);
  *value = 0;
  if (place == NULL || place->type != JSON_NUMBER) {
    const char* word = json_text(command, name, "first");
    return strcmp(word, "next") == 0   ? LIGHTQ_FROM_NEXT
           : strcmp(word, "last") == 0 ? LIGHTQ_FROM_LAST
                                       : LIGHTQ_FROM_FIRST;
  }
  *value = (uint64_t)place->number;
  return LIGHTQ_FROM_OFFSET;
}

int consume_open(const struct agent* agent, const struct json* command, struct agent_consumer* to) {
  lightq_consumer_options options = LIGHTQ_CONSUMER_OPTIONS_INIT;
  lightq_client* client;
  int code;
  options.own = (int)json_number(command, "own", 0);
  options.group = json_text(command, "group", NULL);
  options.from = place_of(command, "from", &options.from_value);
  options.ack_timeout_ms = (int)json_number(command, "ack_timeout_ms", 0);
  options.prefetch_messages = (int)json_number(command, "prefetch", 0);
  options.transport = agent->transport;
  if ((code = agent_client(agent, command, &client)) != LIGHTQ_OK) return code;
  code = lightq_consumer_open(client, json_text(command, "topic", NULL), &options, &to->consumer);
  lightq_client_free(client);
  return code;
}

int consume_command(struct agent_consumer* of, const char* what, const struct json* command, FILE* more) {
  const int timeout_ms = (int)json_number(command, "timeout_ms", 10000);
  if (strcmp(what, "receive") == 0) return receive(of, command, more);
  if (strcmp(what, "settle") == 0) return settle_kept(of, command);
  if (strcmp(what, "revoked") == 0) return revoked(of, command, more);
  if (strcmp(what, "close") == 0) return lightq_consumer_close(of->consumer, timeout_ms);
  if (strcmp(what, "seek") == 0) {
    uint64_t value, offset = 0;
    const int from = place_of(command, "to", &value);
    const int code = lightq_seek(of->consumer, from, value, &offset, timeout_ms);
    fprintf(more, ",\"offset\":%llu", (unsigned long long)offset);
    return code;
  }
  return LIGHTQ_INVALID_ARGUMENT;
}

static void take_read(void* user, const lightq_message* message) {
  add(user, message);
}

int read_command(const struct agent* agent, const struct json* command, FILE* more) {
  static struct unreported all;
  lightq_reader_options options = LIGHTQ_READER_OPTIONS_INIT;
  lightq_reader* reader;
  uint64_t next = 0;
  int code;
  options.transport = agent->transport;
  code = lightq_reader_open(agent->client, json_text(command, "topic", NULL), &options, &reader);
  if (code != LIGHTQ_OK) return code;
  all.bodies = fopen(json_text(command, "into", ""), "ab");
  if (all.bodies == NULL) abort();
  begin_line(&all);
  code = lightq_read(reader, (uint64_t)json_number(command, "begin", 0),
                     (uint64_t)json_number(command, "end", 0), 0, take_read, &all, &next,
                     (int)json_number(command, "timeout_ms", 10000));
  end_line(&all);
  fclose(all.bodies);
  lightq_reader_free(reader);
  fprintf(more, ",\"next\":%llu", (unsigned long long)next);
  return code;
}
