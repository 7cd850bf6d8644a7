/* A small reader and writer of JSON, for the agent. */
#include "json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void malformed(const char* at) {
  fprintf(stderr, "malformed JSON at: %.40s\n", at);
  exit(2);
}

static void* grown(void* items, size_t count, size_t bytes) {
  size_t capacity = 8;
  if (count >= 8 && (count & (count - 1)) != 0) return items; /* capacities are powers of two */
  if (count > 0 && count < 8) return items;
  if (count >= 8) capacity = count * 2;
  items = realloc(items, capacity * bytes);
  if (items == NULL) abort();
  return items;
}

static const char* skip(const char* at) {
  return at + strspn(at, " \t\r\n");
}

static unsigned hex4(const char* at) {
  char digits[5] = {0};
  strncpy(digits, at, 4);
  return (unsigned)strtoul(digits, NULL, 16);
}

/* Writes a character as UTF-8, and returns the end. */
static char* put_utf8(char* to, unsigned character) {
  if (character < 0x80) {
    *to++ = (char)character;
  } else if (character < 0x800) {
    *to++ = (char)(0xC0 | character >> 6);
    *to++ = (char)(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    *to++ = (char)(0xE0 | character >> 12);
    *to++ = (char)(0x80 | (character >> 6 & 0x3F));
    *to++ = (char)(0x80 | (character & 0x3F));
  } else {
    *to++ = (char)(0xF0 | character >> 18);
    *to++ = (char)(0x80 | (character >> 12 & 0x3F));
    *to++ = (char)(0x80 | (character >> 6 & 0x3F));
    *to++ = (char)(0x80 | (character & 0x3F));
  }
  return to;
}

/* Reads a string that begins behind the quote. */
static const char* read_string(const char* at, char** text) {
  static const char letters[] = "bfnrt", values[] = "\b\f\n\r\t";
  char* to = malloc(strlen(at) + 1);
  if (to == NULL) abort();
  *text = to;
  while (*at != '"') {
    if (*at == '\0') malformed(at);
    if (*at != '\\') {
      *to++ = *at++;
      continue;
    }
    ++at;
    if (*at == 'u') {
      unsigned character = hex4(at + 1);
      at += 5;
      if (character >= 0xD800 && character < 0xDC00 && at[0] == '\\' && at[1] == 'u') {
        character = 0x10000 + ((character - 0xD800) << 10) + (hex4(at + 2) - 0xDC00);
        at += 6;
      }
      to = put_utf8(to, character);
    } else {
      const char* letter = strchr(letters, *at);
      *to++ = *at != '\0' && letter != NULL ? values[letter - letters] : *at;
      ++at;
    }
  }
  *to = '\0';
  return at + 1;
}

static const char* read_value(const char* at, struct json* value);

/* Reads the items of an array or object up to `end`. */
static const char* read_items(const char* at, struct json* value, char end) {
  for (at = skip(at); *at != end; at = skip(at)) {
    value->items = grown(value->items, value->count, sizeof *value->items);
    if (end == '}') {
      value->names = grown(value->names, value->count, sizeof *value->names);
      if (*at != '"') malformed(at);
      at = skip(read_string(at + 1, &value->names[value->count]));
      if (*at++ != ':') malformed(at);
    }
    at = skip(read_value(at, &value->items[value->count++]));
    if (*at == ',') {
      ++at;
    } else if (*at != end) {
      malformed(at);
    }
  }
  return at + 1;
}

static const char* read_value(const char* at, struct json* value) {
  char* end;
  memset(value, 0, sizeof *value);
  at = skip(at);
  if (*at == '"') {
    value->type = JSON_STRING;
    return read_string(at + 1, &value->text);
  }
  if (*at == '[' || *at == '{') {
    value->type = *at == '[' ? JSON_ARRAY : JSON_OBJECT;
    return read_items(at + 1, value, *at == '[' ? ']' : '}');
  }
  if (strncmp(at, "null", 4) == 0) return at + 4;
  if (strncmp(at, "true", 4) == 0 || strncmp(at, "false", 5) == 0) {
    value->type = JSON_BOOL;
    value->number = *at == 't';
    return at + (*at == 't' ? 4 : 5);
  }
  value->type = JSON_NUMBER;
  /* Ids of producers need all 64 bits. Like other numbers of that size, they are converted back on use. */
  errno = 0;
  value->number = *at == '-' ? strtoll(at, &end, 10) : (int64_t)strtoull(at, &end, 10);
  if (end == at || errno == ERANGE) malformed(at);
  return end;
}

struct json json_parse(const char* line) {
  struct json value;
  if (*skip(read_value(line, &value)) != '\0') malformed(line);
  return value;
}

void json_free(struct json* value) {
  size_t i;
  for (i = 0; i < value->count; ++i) {
    json_free(&value->items[i]);
    if (value->names != NULL) free(value->names[i]);
  }
  free(value->text);
  free(value->items);
  free(value->names);
}

const struct json* json_member(const struct json* object, const char* name) {
  size_t i;
  for (i = 0; object->names != NULL && i < object->count; ++i) {
    if (strcmp(object->names[i], name) == 0) return &object->items[i];
  }
  return NULL;
}

const char* json_text(const struct json* object, const char* name, const char* otherwise) {
  const struct json* found = json_member(object, name);
  return found != NULL && found->type == JSON_STRING ? found->text : otherwise;
}

int64_t json_number(const struct json* object, const char* name, int64_t otherwise) {
  const struct json* found = json_member(object, name);
  return found != NULL && (found->type == JSON_NUMBER || found->type == JSON_BOOL) ? found->number
                                                                                   : otherwise;
}

void json_write(FILE* to, const char* text, size_t bytes) {
  size_t i;
  fputc('"', to);
  for (i = 0; i < bytes; ++i) {
    const unsigned char byte = (unsigned char)text[i];
    if (byte < 0x20 || byte == '"' || byte == '\\') {
      fprintf(to, "\\u%04x", byte);
    } else {
      fputc(byte, to);
    }
  }
  fputc('"', to);
}
