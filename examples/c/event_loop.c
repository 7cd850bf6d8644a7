/* One thread sends and receives in an event loop with poll(2), and waits nowhere else. The broker is that of
   the environment or of this machine. Argument: a topic that exists. */
#include <lightq/lightq.h>

#include <poll.h>
#include <stdio.h>

enum { messages = 1000 };

static int failed(void) {
  fprintf(stderr, "%s\n", lightq_last_error()->text);
  return 1;
}

/* Waits until the producer or the consumer has something to do. */
static int wait_for_both(lightq_producer* out, lightq_consumer* in) {
  lightq_interest one = LIGHTQ_INTEREST_INIT, other = LIGHTQ_INTEREST_INIT;
  struct pollfd fds[2];
  int timeout_ms;
  if (lightq_producer_interest(out, &one) || lightq_consumer_interest(in, &other)) return failed();
  fds[0].fd = one.fd;
  fds[0].events = (short)one.events;
  fds[1].fd = other.fd;
  fds[1].events = (short)other.events;
  timeout_ms = one.timeout_ms;
  if (timeout_ms < 0 || (other.timeout_ms >= 0 && other.timeout_ms < timeout_ms))
    timeout_ms = other.timeout_ms;
  poll(fds, 2, timeout_ms); /* a negative descriptor is skipped */
  return 0;
}

/* Sends what the producer takes without waiting. */
static int send_some(lightq_producer* out, int* sent) {
  while (*sent < messages) {
    const int code = lightq_send(out, "event", 5, NULL, 0);
    if (code == LIGHTQ_LIMIT_REACHED) break; /* no memory is free: later */
    if (code != LIGHTQ_OK) return failed();
    ++*sent;
  }
  return lightq_producer_poll(out, 0) == LIGHTQ_OK ? 0 : failed();
}

/* Receives the messages that have arrived. */
static int receive_some(lightq_consumer* in, int* received) {
  lightq_message message = LIGHTQ_MESSAGE_INIT;
  int code = lightq_consumer_poll(in);
  if (code != LIGHTQ_OK) return failed();
  while ((code = lightq_next(in, &message, 0)) == LIGHTQ_OK) {
    ++*received;
    lightq_ack(in, &message);
  }
  return code == LIGHTQ_TIMEOUT ? 0 : failed();
}

int main(int count, char** arguments) {
  lightq_client* client;
  lightq_producer* out;
  lightq_consumer* in;
  int sent = 0, received = 0;
  if (count != 2) return fprintf(stderr, "usage: event_loop TOPIC\n"), 2;
  if (lightq_connect(NULL, &client) || lightq_producer_open(client, arguments[1], NULL, &out) ||
      lightq_consumer_open(client, arguments[1], NULL, &in))
    return failed();
  while (received < messages) {
    if (send_some(out, &sent) || receive_some(in, &received)) return 1;
    if (received < messages && wait_for_both(out, in)) return 1;
  }
  if (lightq_producer_close(out, 5000) || lightq_consumer_close(in, 5000)) return failed();
  lightq_producer_free(out);
  lightq_consumer_free(in);
  lightq_client_free(client);
  printf("%d messages sent and received\n", received);
  return 0;
}
