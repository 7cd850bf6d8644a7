/* Reads the commands of the conformance driver, and writes texts of replies. The driver is trusted: a
   malformed line ends the agent. */
#ifndef LIGHTQ_AGENT_JSON_H
#define LIGHTQ_AGENT_JSON_H

#include <stdint.h>
#include <stdio.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
  enum json_type type;
  int64_t number;     /* of a number, from INT64_MIN to UINT64_MAX (as its 64 bits); 1 or 0 of a boolean */
  char* text;         /* of a string */
  struct json* items; /* of an array or object */
  char** names;       /* of an object */
  size_t count;
};

/* Parses a line. Ends the process if it is malformed. */
struct json json_parse(const char* line);
void json_free(struct json* value);

/* Return a member of an object, or what is given in its place. */
const struct json* json_member(const struct json* object, const char* name);
const char* json_text(const struct json* object, const char* name, const char* otherwise);
int64_t json_number(const struct json* object, const char* name, int64_t otherwise);

/* Writes a text as a string of JSON. */
void json_write(FILE* to, const char* text, size_t bytes);

#endif
