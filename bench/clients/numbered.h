/* Numbered messages in C, as support/numbered_messages.hpp makes them. Layer: bench. */
#ifndef LIGHTQ_BENCH_NUMBERED_H
#define LIGHTQ_BENCH_NUMBERED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct numbered {
  unsigned char* expected;
  size_t bytes;
};

/* Ends the process with a sentence and exit code 1. */
static void die(const char* text) {
  fprintf(stderr, "%s\n", text);
  exit(1);
}

static struct numbered numbered_make(size_t bytes) {
  struct numbered made = {malloc(bytes), bytes};
  size_t i;
  if (bytes < 8 || made.expected == NULL) die("no memory for a message, or fewer than eight bytes");
  for (i = 0; i < bytes; ++i) made.expected[i] = (unsigned char)(i * 131 + (i >> 8));
  return made;
}

/* Writes message `number` to `expected`. */
static void numbered_set(struct numbered* made, uint64_t number) {
  memcpy(made->expected, &number, sizeof number);
}

/* Ends the process if this is not message `number`. */
static void numbered_check(const struct numbered* made, uint64_t number, const void* body, size_t bytes) {
  uint64_t found = 0;
  char text[64];
  if (bytes == made->bytes) memcpy(&found, body, sizeof found);
  if (bytes == made->bytes && found == number &&
      memcmp((const unsigned char*)body + 8, made->expected + 8, bytes - 8) == 0)
    return;
  snprintf(text, sizeof text, "message %llu came back altered", (unsigned long long)number);
  die(text);
}

static double numbered_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
