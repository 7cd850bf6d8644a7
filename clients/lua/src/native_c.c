/* The functions of liblightq.so.0 for Lua 5.3 and 5.4: see lightq/native.lua. Neither a callback nor an error
   of Lua crosses a call of the library. */
#include "native.h"

void* lightq_lua_pointer(lua_State* lua, enum kind kind) {
  const struct handle* handle = luaL_checkudata(lua, 1, HANDLE);
  luaL_argcheck(lua, handle->kind == kind, 1, "a handle of another kind");
  return handle->pointer;
}

int lightq_lua_give(lua_State* lua, int code) {
  lua_pushinteger(lua, code);
  return 1;
}

int lightq_lua_give_number(lua_State* lua, int code, uint64_t number) {
  lua_pushinteger(lua, code);
  lua_pushinteger(lua, (lua_Integer)number);
  return 2;
}

void lightq_lua_set_number(lua_State* lua, const char* name, uint64_t number) {
  lua_pushinteger(lua, (lua_Integer)number);
  lua_setfield(lua, -2, name);
}

int lightq_lua_int(lua_State* lua, int at) {
  return (int)luaL_checkinteger(lua, at);
}

uint64_t lightq_lua_number(lua_State* lua, int at) {
  return (uint64_t)luaL_checkinteger(lua, at);
}

int lightq_lua_version(lua_State* lua) {
  lua_pushstring(lua, lightq_version());
  return 1;
}

int lightq_lua_word(lua_State* lua) {
  lua_pushstring(lua, lightq_strerror(lightq_lua_int(lua, 1)));
  return 1;
}

int lightq_lua_retryable(lua_State* lua) {
  lua_pushboolean(lua, lightq_retryable(lightq_lua_int(lua, 1)));
  return 1;
}

int lightq_lua_last_error(lua_State* lua) {
  const lightq_error* last = lightq_last_error();
  lua_pushinteger(lua, last->code);
  lua_pushstring(lua, last->text);
  return 2;
}

/* A userdata that owns the text of a reply. */
static int free_reply(lua_State* lua) {
  lightq_free(*(char**)lua_touserdata(lua, 1));
  return 0;
}

int lightq_lua_command(lua_State* lua) {
  lightq_client* client = CLIENT_OF(lua);
  const char* json = luaL_checkstring(lua, 2);
  char** reply = lua_newuserdata(lua, sizeof *reply);
  int code;
  *reply = NULL;
  luaL_setmetatable(lua, "lightq.reply");
  code = lightq_command(client, json, reply);
  lua_pushinteger(lua, code);
  lua_pushstring(lua, *reply); /* nil after an error */
  lightq_free(*reply);
  *reply = NULL;
  return 2;
}

int lightq_lua_stats(lua_State* lua) {
  const struct handle* handle = luaL_checkudata(lua, 1, HANDLE);
  return handle->kind == PRODUCER ? lightq_lua_producer_stats(lua) : lightq_lua_consumer_stats(lua);
}

int lightq_lua_state(lua_State* lua) {
  const struct handle* handle = luaL_checkudata(lua, 1, HANDLE);
  return lightq_lua_give(lua, handle->kind == PRODUCER ? lightq_producer_state(PRODUCER_OF(lua))
                                                       : lightq_consumer_state(CONSUMER_OF(lua)));
}

static const luaL_Reg functions[] = {{"version", lightq_lua_version},
                                     {"word", lightq_lua_word},
                                     {"retryable", lightq_lua_retryable},
                                     {"last_error", lightq_lua_last_error},
                                     {"connect", lightq_lua_connect},
                                     {"open", lightq_lua_open},
                                     {"free", lightq_lua_free},
                                     {"command", lightq_lua_command},
                                     {"send", lightq_lua_send},
                                     {"flush", lightq_lua_flush},
                                     {"wait_settled", lightq_lua_wait_settled},
                                     {"producer_poll", lightq_lua_producer_poll},
                                     {"producer_close", lightq_lua_producer_close},
                                     {"resolve", lightq_lua_resolve},
                                     {"keep_reports", lightq_lua_keep_reports},
                                     {"next_report", lightq_lua_next_report},
                                     {"identity", lightq_lua_identity},
                                     {"state", lightq_lua_state},
                                     {"stats", lightq_lua_stats},
                                     {"next", lightq_lua_next},
                                     {"settle", lightq_lua_settle},
                                     {"revoked", lightq_lua_revoked},
                                     {"ack_range", lightq_lua_ack_range},
                                     {"ack_before", lightq_lua_ack_before},
                                     {"seek", lightq_lua_seek},
                                     {"pause", lightq_lua_pause},
                                     {"consumer_poll", lightq_lua_consumer_poll},
                                     {"wait_open", lightq_lua_wait_open},
                                     {"consumer_flush", lightq_lua_consumer_flush},
                                     {"late", lightq_lua_late},
                                     {"consumer_close", lightq_lua_consumer_close},
                                     {"fetch", lightq_lua_fetch},
                                     {"next_fetched", lightq_lua_next_fetched},
                                     {NULL, NULL}};

/* Makes a metatable whose objects `release` frees when the garbage collector takes them. */
static void make_owner(lua_State* lua, const char* name, lua_CFunction release) {
  luaL_newmetatable(lua, name);
  lua_pushcfunction(lua, release);
  lua_setfield(lua, -2, "__gc");
  lua_pop(lua, 1);
}

__attribute__((visibility("default"))) int luaopen_lightq_native_c(lua_State* lua) {
  make_owner(lua, HANDLE, lightq_lua_free);
  make_owner(lua, "lightq.reply", free_reply);
  luaL_newlib(lua, functions);
  return 1;
}
