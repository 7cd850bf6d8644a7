--- A received message: `body`, `key` (nil: none), `headers` (pairs, and values by name), `offset`, `delivery` (how often it was
-- delivered, this time included), `time` and `producer_time` (seconds since 1970; nil: none), `lost` (messages directly
-- before it that are never delivered) and `expired` (its time to live was over; only a reader returns such messages).
--
-- Settle each once: `ack`, `release`, `retry` or `dead`. A later call does nothing. Errors of all: Revoked, if the broker has
-- taken the message back.
local errors = require "lightq.errors"
local options = require "lightq.options"

local Message = {__name = "lightq.Message"}
Message.__index = Message
function Message:__tostring()
  return ("lightq message %s of %d bytes"):format(tostring(self.offset), #self.body)
end

local function seconds(microseconds)
  return microseconds ~= 0 and microseconds / 1e6 or nil
end

--- Wraps the parts that the library has given. `consumer` is nil for a message that was only read.
function Message.of(parts, consumer)
  for _, pair in ipairs(parts.headers) do
    if parts.headers[pair[1]] == nil then parts.headers[pair[1]] = pair[2] end
  end
  parts.time, parts.producer_time = seconds(parts.time_us), seconds(parts.producer_time_us)
  parts.consumer = consumer
  return setmetatable(parts, Message)
end

local function settle(self, how, argument)
  if self.settled or not self.consumer then return end
  self.consumer:settle(self, how, argument)
  self.settled = true
end

--- Finishes the message.
function Message:ack()
  settle(self, "ack")
end

--- Gives back a message that the program has not begun: this delivery does not count.
function Message:release()
  settle(self, "release")
end

--- The message failed: it is delivered again after so many seconds, or after the group's back-off.
function Message:retry(delay)
  settle(self, "retry", options.time(delay, 1000, "the delay", 2 ^ 52))
end

--- No consumer can process the message: it goes to the dead letters. At most 256 bytes of the reason are kept.
function Message:dead(reason)
  settle(self, "dead", reason and options.text(reason, "the reason"))
end

--- Asks for so much time from now.
function Message:extend(time)
  if self.consumer then self.consumer:settle(self, "extend", options.time(time, 1000, "the time", 2 ^ 52)) end
end

--- Tells whether the broker has taken it back, as far as the consumer's last call has found, or the connection has ended.
function Message:revoked()
  return self.consumer == nil or self.consumer:is_revoked(self)
end

-- Settles after `process`. A message that was revoked meanwhile goes to another consumer.
local function settle_after(self, how, argument)
  local ok, failed = pcall(settle, self, how, argument)
  if not ok and not errors.is(failed, "Revoked") then error(failed, 0) end
end

--- Calls `work(message)`, and settles the message unless `work` has: at its end it is acknowledged, an error rejects it, for
-- another attempt, and is thrown again. Returns the first result of `work`.
function Message:process(work)
  local ok, result = pcall(work, self)
  if ok then
    settle_after(self, "ack")
    return result
  end
  pcall(settle_after, self, "retry", 0)
  error(result, 0)
end

return Message
