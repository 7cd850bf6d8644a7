/* A program of a user of the C library: finds no broker, and prints the version. */
#include <lightq/lightq.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  lightq_options options = LIGHTQ_OPTIONS_INIT;
  lightq_client* client;
  options.uri = "tcp://127.0.0.1:1";
  options.no_discovery = 1;
  if (lightq_connect(&options, &client) != LIGHTQ_IO_ERROR || client != NULL) return 1;
  if (strstr(lightq_last_error()->text, "127.0.0.1:1") == NULL) return 1;
  return puts(lightq_version()) < 0;
}
