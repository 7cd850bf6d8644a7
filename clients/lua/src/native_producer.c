/* The functions of producers. */
#include <stdio.h>

#include "native.h"

static const void* bytes_in(lua_State* lua, int at, const char* name, size_t* bytes) {
  const void* found = NULL;
  if (lua_getfield(lua, at, name) == LUA_TSTRING) found = lua_tolstring(lua, -1, bytes);
  lua_pop(lua, 1); /* the table keeps it alive */
  return found;
}

static int64_t time_in(lua_State* lua, int at, const char* name) {
  int64_t time;
  lua_getfield(lua, at, name);
  time = luaL_checkinteger(lua, -1);
  lua_pop(lua, 1);
  return time;
}

/* Takes the headers, which are pairs. Returns how many there are. */
static size_t take_headers(lua_State* lua, int at, lightq_header* headers) {
  size_t count = 0, i;
  if (lua_getfield(lua, at, "headers") == LUA_TTABLE) {
    count = (size_t)luaL_len(lua, -1);
    if (count > HEADERS_MAX) count = HEADERS_MAX; /* the modules in Lua permit no more */
    for (i = 0; i < count; ++i) {
      lua_rawgeti(lua, -1, (lua_Integer)i + 1);
      lua_rawgeti(lua, -1, 1);
      lua_rawgeti(lua, -2, 2);
      headers[i].name = luaL_checklstring(lua, -2, &headers[i].name_bytes);
      headers[i].value = luaL_checklstring(lua, -1, &headers[i].value_bytes);
      lua_pop(lua, 3);
    }
  }
  lua_pop(lua, 1);
  return count;
}

/* send(producer, body, attributes or nil, ms) */
int lightq_lua_send(lua_State* lua) {
  lightq_producer* producer = PRODUCER_OF(lua);
  lightq_attributes attributes = LIGHTQ_ATTRIBUTES_INIT;
  lightq_header headers[HEADERS_MAX];
  size_t bytes;
  const char* body = luaL_checklstring(lua, 2, &bytes);
  const int has_attributes = lua_istable(lua, 3);
  uint64_t number = 0;
  int code;
  if (has_attributes) {
    attributes.key = bytes_in(lua, 3, "key", &attributes.key_bytes);
    attributes.id = bytes_in(lua, 3, "id", &attributes.id_bytes);
    attributes.headers = headers;
    attributes.header_count = take_headers(lua, 3, headers);
    attributes.time_us = time_in(lua, 3, "time_us");
    attributes.delay_ms = time_in(lua, 3, "delay_ms");
    attributes.deliver_at_us = time_in(lua, 3, "deliver_at_us");
    attributes.ttl_ms = time_in(lua, 3, "ttl_ms");
  }
  code = lightq_send_numbered(producer, body, bytes, has_attributes ? &attributes : NULL,
                              lightq_lua_int(lua, 4), &number);
  return lightq_lua_give_number(lua, code, number);
}

int lightq_lua_flush(lua_State* lua) {
  return lightq_lua_give(lua, lightq_flush(PRODUCER_OF(lua), lightq_lua_int(lua, 2)));
}

int lightq_lua_wait_settled(lua_State* lua) {
  return lightq_lua_give(
      lua, lightq_wait_settled(PRODUCER_OF(lua), lightq_lua_number(lua, 2), lightq_lua_int(lua, 3)));
}

int lightq_lua_producer_poll(lua_State* lua) {
  return lightq_lua_give(lua, lightq_producer_poll(PRODUCER_OF(lua), lightq_lua_int(lua, 2)));
}

int lightq_lua_producer_close(lua_State* lua) {
  return lightq_lua_give(lua, lightq_producer_close(PRODUCER_OF(lua), lightq_lua_int(lua, 2)));
}

int lightq_lua_resolve(lua_State* lua) {
  return lightq_lua_give(lua, lightq_producer_resolve(PRODUCER_OF(lua), lua_toboolean(lua, 2)));
}

int lightq_lua_keep_reports(lua_State* lua) {
  return lightq_lua_give(lua, lightq_producer_keep_reports(PRODUCER_OF(lua)));
}

int lightq_lua_next_report(lua_State* lua) {
  lightq_report report = LIGHTQ_REPORT_INIT;
  const int code = lightq_next_report(PRODUCER_OF(lua), &report);
  if (code != LIGHTQ_OK) return lightq_lua_give(lua, code);
  lua_pushinteger(lua, code);
  lua_pushinteger(lua, (lua_Integer)report.begin);
  lua_pushinteger(lua, (lua_Integer)report.end);
  lua_pushinteger(lua, report.fate);
  lua_pushinteger(lua, report.code);
  lua_pushstring(lua, report.text);
  return 6;
}

int lightq_lua_identity(lua_State* lua) {
  lightq_identity identity = LIGHTQ_IDENTITY_INIT;
  const int code = lightq_producer_identity(PRODUCER_OF(lua), &identity);
  char id[24];
  snprintf(id, sizeof id, "%llu", (unsigned long long)identity.id);
  lua_pushinteger(lua, code);
  lua_pushstring(lua, id);
  lua_pushinteger(lua, identity.epoch);
  if (!identity.has_secret) return 3;
  lua_pushlstring(lua, (const char*)identity.secret, sizeof identity.secret);
  return 4;
}

int lightq_lua_producer_stats(lua_State* lua) {
  lightq_producer_stats stats = LIGHTQ_PRODUCER_STATS_INIT;
  lua_pushinteger(lua, lightq_producer_get_stats(PRODUCER_OF(lua), &stats));
  lua_createtable(lua, 0, 7);
  lightq_lua_set_number(lua, "sent", stats.sent);
  lightq_lua_set_number(lua, "confirmed", stats.confirmed);
  lightq_lua_set_number(lua, "refused", stats.refused);
  lightq_lua_set_number(lua, "unknown", stats.unknown);
  lightq_lua_set_number(lua, "lost", stats.lost);
  lightq_lua_set_number(lua, "unconfirmed", stats.unconfirmed);
  lightq_lua_set_number(lua, "opens", stats.opens);
  return 2;
}
