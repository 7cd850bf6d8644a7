--- Checks the options of programs, and converts them for the library.
local errors = require "lightq.errors"

local options = {}

local INT_MAX = 0x7fffffff
local LEVELS = {default = 0, received = 1, flushed = 2}
local COMPRESSIONS = {none = 0, lz4 = 1, zstd = 2}
local TRANSPORTS = {auto = 0, tcp = 1, ipc = 2}
local FROM = {first = 0, next = 1, last = 2}
local FROM_OFFSET, FROM_TIME = 3, 4

--- Returns a text without zero bytes.
function options.text(value, what)
  if type(value) ~= "string" then errors.invalid("%s is no text: %s", what, type(value)) end
  if value:find("%z") then errors.invalid("%s has a zero byte", what) end
  return value
end

--- Returns a table.
function options.table(value, what)
  if type(value) ~= "table" then errors.invalid("%s is no table: %s", what, type(value)) end
  return value
end

--- Returns a whole number of 0 to `most`, by default 2^53.
function options.whole(value, what, most)
  if type(value) ~= "number" or value % 1 ~= 0 or value < 0 or value > (most or 2 ^ 53) then
    errors.invalid("%s is out of its range: %s", what, tostring(value))
  end
  return math.floor(value)
end

--- Returns whole units of a number of seconds; nil is 0.
function options.time(seconds, per_second, what, most)
  if seconds == nil then return 0 end
  if type(seconds) ~= "number" then errors.invalid("%s is no number of seconds: %s", what, tostring(seconds)) end
  return options.whole(math.ceil(seconds * per_second), what, most)
end

--- Returns milliseconds for a timeout; nil: `default` seconds.
function options.timeout(seconds, default)
  return options.time(seconds or default, 1000, "the timeout", INT_MAX)
end

local function choice(words)
  return function(value, what)
    local found = words[value]
    if not found then errors.invalid("%s has no value %s", what, tostring(value)) end
    return found
  end
end

local function flag(value, what)
  if type(value) ~= "boolean" then errors.invalid("%s is true or false, and not %s", what, tostring(value)) end
  return value and 1 or 0
end

local function unset(value, what)
  return 1 - flag(value, what)
end

local function int(value, what)
  return options.whole(value, what, INT_MAX)
end

local function milliseconds(value, what)
  return options.time(value, 1000, what, INT_MAX)
end

-- An option of programs: the field of the struct in lightq.h, and the function that converts its value.
local CONNECTION = {
  name = {"name", options.text}, transport = {"transport", choice(TRANSPORTS)}, over_zmq = {"over_zmq", flag},
  shared_memory = {"no_shared_memory", unset}, heartbeat = {"heartbeat_ms", milliseconds},
  attempt_timeout = {"attempt_timeout_ms", milliseconds}, backoff = {"backoff_ms", milliseconds},
  backoff_max = {"backoff_max_ms", milliseconds},
}
local FRAMES = {frame_bytes_max = {"frame_bytes_max", int}}

local function known(...)
  local all = {}
  for _, some in ipairs({...}) do
    for name, how in pairs(some) do all[name] = how end
  end
  return all
end

local KNOWN = {
  client = {
    uri = {"uri", options.text}, user = {"user", options.text}, password = {"password", options.text},
    admin = {"admin_user", options.text}, admin_password = {"admin_password", options.text},
    server_key = {"server_key", options.text}, client_key_file = {"client_key_file", options.text},
    data_dir = {"data_dir", options.text}, discover = {"no_discovery", unset}, insecure = {"insecure", flag},
    timeout = {"request_timeout_ms", milliseconds},
  },
  producer = known(CONNECTION, {
    batch_bytes = {"batch_bytes", options.whole}, window_bytes = {"window_bytes", options.whole},
    memory_bytes_max = {"memory_bytes_max", options.whole}, level = {"level", choice(LEVELS)},
    compression = {"compression", choice(COMPRESSIONS)}, delayed = {"delayed", flag}, full_batches = {"full_batches", flag},
    linger = {"linger_ms", milliseconds}, retry_refused = {"no_retry_refused", unset},
    resend_in_doubt = {"resend_in_doubt", flag},
  }),
  consumer = known(CONNECTION, FRAMES, {
    group = {"group", options.text}, incarnation = {"incarnation", options.whole}, own = {"own", flag}, holds = {"holds", flag},
    automatic = {"automatic", flag}, prefetch_bytes = {"prefetch_bytes", options.whole},
    prefetch_time = {"prefetch_time_ms", milliseconds}, ack_timeout = {"ack_timeout_ms", milliseconds},
    may_be_busy = {"may_not_be_busy", unset},
    prefetch = {"prefetch_messages", function(value, what)
      if value == 0 then errors.invalid("%s is 1 or more", what) end
      return int(value, what)
    end},
  }),
  reader = known(CONNECTION, FRAMES),
}

--- Returns the fields of a struct for the options of a program. `kind`: client, producer, consumer or reader. `special`: a set of
-- names that the caller converts itself.
function options.fields(kind, given, special)
  local fields = {}
  for name, value in pairs(options.table(given or {}, "options")) do
    local how = KNOWN[kind][name]
    if how then
      fields[how[1]] = how[2](value, name)
    elseif not (special and special[name]) then
      errors.invalid("there is no option %s", tostring(name))
    end
  end
  return fields
end

--- Returns the number and value of a place: "first", "next", "last", an offset, or {time = seconds since 1970}.
function options.place(place)
  if type(place) == "number" then return FROM_OFFSET, options.whole(place, "the offset") end
  if type(place) == "table" and place.time then return FROM_TIME, options.time(place.time, 1000000, "the time") end
  local from = FROM[place]
  if not from then errors.invalid("a place is first, next, last, an offset or a time, and not %s", tostring(place)) end
  return from, 0
end

local ID_MAX, SECRET_BYTES = "18446744073709551615", 16

--- Returns the identity of a producer for the library.
function options.identity(given)
  local id = tostring(options.table(given, "identity").id):gsub("^0+(%d)", "%1")
  if not id:find("^%d+$") or #id > #ID_MAX or (#id == #ID_MAX and id > ID_MAX) then
    errors.invalid("identity.id is no number of 0 to %s: %s", ID_MAX, id)
  end
  local secret = given.secret
  if secret ~= nil and (type(secret) ~= "string" or #secret ~= SECRET_BYTES) then
    errors.invalid("identity.secret is no text of %d bytes", SECRET_BYTES)
  end
  return {id = id, epoch = options.whole(given.epoch or 0, "identity.epoch", 65535), secret = secret}
end

local HEADERS_MAX = 64
local ATTRIBUTES = {key = true, headers = true, time = true, delay = true, deliver_at = true, ttl = true, id = true, timeout = true}

local function bytes(value, what)
  if type(value) ~= "string" then errors.invalid("%s is no text: %s", what, type(value)) end
  return value
end

-- Returns pairs of names and values. `headers` is a table by names, or a list of such pairs, or both as received messages have
-- it: then the list alone counts for its names.
local function pairs_of(headers)
  local list, listed = {}, {}
  local function add(name, value)
    list[#list + 1] = {bytes(name, "the name of a header"), bytes(value, "a header")}
  end
  for at, pair in ipairs(options.table(headers, "headers")) do
    add(options.table(pair, "a header in a list")[1], pair[2])
    listed[at], listed[pair[1]] = true, true
  end
  for name, value in pairs(headers) do
    if not listed[name] then add(name, value) end
  end
  if #list > HEADERS_MAX then errors.invalid("a message has at most %d headers", HEADERS_MAX) end
  return list
end

--- Returns the attributes of a message for the library.
function options.attributes(given)
  for name in pairs(options.table(given, "attributes")) do
    if not ATTRIBUTES[name] then errors.invalid("a message has no %s", tostring(name)) end
  end
  return {
    key = given.key and bytes(given.key, "key"), id = given.id and bytes(given.id, "id"),
    headers = given.headers and pairs_of(given.headers), time_us = options.time(given.time, 1000000, "time"),
    delay_ms = options.time(given.delay, 1000, "delay"), deliver_at_us = options.time(given.deliver_at, 1000000, "deliver_at"),
    ttl_ms = options.time(given.ttl, 1000, "ttl"),
  }
end

return options
