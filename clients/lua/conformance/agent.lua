-- The agent of the Lua client for the conformance kit: does the commands of clients/conformance/README.md. Arguments: the folder
-- of the module in C (not for LuaJIT), and the name for the table.
local folder = arg[0]:match("^(.*)/conformance/[^/]*$") or ".."
package.path = folder .. "/?.lua;" .. folder .. "/?/init.lua;" .. package.path
if arg[1] then package.cpath = arg[1] .. "/?.so;" .. package.cpath end
local lightq = require "lightq"
local json = require "lightq.json"

local REPORTED_MAX = 500 -- messages in a line
local FEATURES = {"control", "keys", "delayed", "ttl", "leases", "dead", "seek", "read", "tls", "ipc", "epoch"}

local function write_line(line)
  io.stdout:write((json.encode(line):gsub('"producer_id":"(%d+)"', '"producer_id":%1')), "\n")
  io.stdout:flush()
end

local function seconds(command, name, otherwise)
  return (command[name] or otherwise or 10000) / 1000
end

local function given(value)
  if value == json.null then return nil end
  return value
end

local function described(message)
  local line = {offset = message.offset, bytes = #message.body, delivery = message.delivery, key = message.key}
  if #message.headers > 0 then line.headers = {} end
  for at, pair in ipairs(message.headers) do line.headers[at] = {pair[1], pair[2]} end
  line.expired = message.expired or nil
  return line
end

local function settle(message, how, command)
  local ok, failed = pcall(function()
    if how == "ack" then message:ack() end
    if how == "release" then message:release() end
    if how == "retry" then message:retry(seconds(command, "delay_ms", 0)) end
    if how == "dead" then message:dead(command.reason) end
  end)
  if not ok and not lightq.is_error(failed, "Revoked") then error(failed, 0) end
end

-- Sends messages from files, and collects their fates.
local Producer = {}
Producer.__index = Producer

function Producer.of(producer)
  local made = setmetatable({producer = producer, outcomes = json.array({})}, Producer)
  producer:on_settled(function(first, last, failed)
    made.outcomes[#made.outcomes + 1] = {first, last, failed and failed.fate or "confirmed", failed and failed.code or json.null}
  end)
  return made
end

function Producer:produce(command)
  local file, sent, keys = assert(io.open(command.file, "rb")), 0, command.keys or {}
  local count = command.sizes and #command.sizes or command.count
  local headers = given(command.headers)
  local ok, failed = pcall(function()
    for at = 1, count do
      local size = command.sizes and command.sizes[at] or command.size
      self.producer:send(size > 0 and file:read(size) or "", {
        key = #keys > 0 and keys[sent % #keys + 1] or nil, headers = headers, timeout = 30,
        delay = command.delay_ms and command.delay_ms / 1000, ttl = command.ttl_ms and command.ttl_ms / 1000,
      })
      sent = sent + 1
    end
  end)
  file:close()
  return {sent = sent}, not ok and failed or nil
end

function Producer:flush(command)
  self.producer:flush(seconds(command, "timeout_ms"))
end

function Producer:close(command)
  self.producer:close(seconds(command, "timeout_ms"))
end

function Producer:add_to(reply)
  reply.outcomes, self.outcomes = self.outcomes, json.array({})
end

-- Reports messages, writes their bodies to files, and settles them.
local Consumer = {}
Consumer.__index = Consumer

function Consumer.of(consumer)
  return setmetatable({consumer = consumer, held = {}}, Consumer)
end

-- Reports messages, and settles them only after that.
function Consumer:report(into, messages, command)
  if #messages == 0 then return end
  into:flush()
  local line = {}
  for at, message in ipairs(messages) do line[at] = described(message) end
  write_line({messages = line})
  for _, message in ipairs(messages) do
    if command.settle then
      settle(message, command.settle, command)
    else
      self.held[message.offset] = message
    end
  end
end

function Consumer:receive(command)
  local into, received, waiting = assert(io.open(command.into, "ab")), 0, {}
  local ok, failed = pcall(function()
    while received < command.count do
      local message = self.consumer:receive(#waiting > 0 and 0 or seconds(command, "timeout_ms"))
      if not message and #waiting == 0 then break end
      if message then
        into:write(message.body)
        waiting[#waiting + 1] = message
        received = received + 1
      end
      if not message or #waiting == REPORTED_MAX then
        local reported = waiting
        waiting = {}
        self:report(into, reported, command)
      end
    end
  end)
  self:report(into, waiting, command)
  into:close()
  return {received = received}, not ok and failed or nil
end

function Consumer:settle(command)
  for _, offset in ipairs(command.offsets) do
    local message = self.held[offset]
    self.held[offset] = nil
    if message then settle(message, command.how, command) end
  end
  self.consumer:flush(seconds(command, "timeout_ms"))
end

function Consumer:revoked(command)
  local deadline, revoked = os.time() + seconds(command, "timeout_ms") + 1, json.array({})
  while #revoked == 0 and os.time() < deadline do
    self.consumer:wait_open(seconds(command, "timeout_ms"))
    self.consumer:flush(1)
    self.consumer:poll()
    for offset, message in pairs(self.held) do
      if message:revoked() then revoked[#revoked + 1] = offset end
    end
  end
  return {revoked = revoked}
end

function Consumer:seek(command)
  return {offset = self.consumer:seek(command.to, seconds(command, "timeout_ms"))}
end

function Consumer:close(command)
  self.consumer:close(seconds(command, "timeout_ms"))
end

function Consumer.add_to()
end

-- The client, and the producers and consumers by their names.
local agent, objects, how = {}, {}, nil

-- The time to open a producer or consumer is that of its client.
local function connected(command)
  how.timeout = seconds(command, "timeout_ms")
  return lightq.connect(how.uri, {user = how.user, password = how.password, admin = how.admin, admin_password = how.admin_password,
                                  server_key = how.server_key, timeout = how.timeout, discover = false})
end

function agent.connect(command)
  how = {uri = command.uri, server_key = given(command.server_key), transport = given(command.transport)}
  local who = command.admin and {"admin", "admin_password"} or {"user", "password"}
  how[who[1]], how[who[2]] = given(command.user), given(command.password)
  agent.client = connected(command)
end

function agent.create_topic(command)
  agent.client:create_topic(command.topic, {broker_type = command.broker_type})
end

function agent.delete_topic(command)
  agent.client:delete_topic(command.topic)
end

function agent.stats(command)
  return {messages_received = agent.client:stats(command.topic).messages_received}
end

function agent.produce_open(command)
  local identity = command.producer_id and {id = command.producer_id, epoch = command.epoch}
  if identity and type(identity.id) == "number" then identity.id = ("%d"):format(identity.id) end
  local producer = connected(command):producer(command.topic, {
    level = command.level, delayed = command.delayed, retry_refused = command.retry_refused, transport = how.transport, identity = identity,
  })
  objects[command.as] = Producer.of(producer)
  local known = producer:identity()
  return {producer_id = known.id, epoch = known.epoch}
end

function agent.consume_open(command)
  objects[command.as] = Consumer.of(connected(command):consumer(command.topic, {
    group = given(command.group), own = command.own, start = command.from, prefetch = given(command.prefetch),
    ack_timeout = command.ack_timeout_ms and command.ack_timeout_ms / 1000, transport = how.transport,
  }))
end

function agent.read(command)
  local reader = agent.client:reader(command.topic, {transport = how.transport})
  local messages, following = reader:read(command.begin, command["end"], nil, seconds(command, "timeout_ms"))
  reader:close()
  local into, line = assert(io.open(command.into, "ab")), json.array({})
  for at, message in ipairs(messages) do
    into:write(message.body)
    line[at] = described(message)
  end
  into:close()
  write_line({messages = line})
  return {next = following}
end

-- Does one command, and returns its reply.
local function run(command)
  local on = command.on and objects[command.on]
  local ok, reply, failed
  if on then
    ok, reply, failed = pcall(on[command["do"]], on, command)
  else
    ok, reply, failed = pcall(agent[command["do"]], command)
  end
  if not ok then reply, failed = nil, reply end
  if failed and not lightq.is_error(failed) then error(failed, 0) end
  reply = reply or {}
  reply.ok, reply.id = not failed, command.id
  if failed then reply.error, reply.text = failed.code, failed.text end
  if on then on:add_to(reply) end
  return reply
end

write_line({client = arg[2] or "Lua", version = lightq.version, features = FEATURES})
for text in io.lines() do
  local command = json.decode(text)
  if command["do"] == "exit" then break end
  write_line(run(command))
end
