--- Sends messages to a topic. Each is stored once, in order, also over broken connections.
--
-- It sends and receives inside calls only. After a long time without a call the broker may end the connection; the next
-- call connects again, and nothing is lost.
local errors = require "lightq.errors"
local Fates = require "lightq.fates"
local handle = require "lightq.handle"
local native = require "lightq.native"
local options = require "lightq.options"

local Producer = handle.class("producer")
local Confirm = {__name = "lightq.Confirm"}
Confirm.__index = Confirm

local SEND_SECONDS, FLUSH_SECONDS = 30, 30
local POLL_MESSAGES = 64 -- after so many messages `send` takes reports, and passes them on
local CONFIRMED, REFUSED, UNKNOWN = 0, 1, 2
local STATES = {[0] = "connecting", "open", "in_doubt", "failed", "closed"}
local ENDED = {Fenced = true, Unauthorized = true, NotFound = true}

-- Takes the oldest item of a queue, without moving the others.
local function pop(queue)
  local item = queue[queue.oldest]
  if item then
    queue[queue.oldest] = nil
    queue.oldest = queue.oldest + 1
  end
  return item
end

--- Waits until the message is stored. Errors: Timeout; the reason why it is not stored, or in doubt.
function Confirm:wait(timeout)
  return self.producer:wait_settled(self.number, timeout)
end

--- Tells whether the fate is known: `wait` then returns or throws at once.
function Confirm:is_done()
  return self.producer:is_settled(self.number)
end

--- Wraps a handle of the library.
function Producer.of(topic, opened)
  local made = setmetatable({topic = topic, handle = opened, fates = Fates.new(), untold = {oldest = 1, newest = 0}}, Producer)
  errors.check(native.keep_reports(opened))
  return made
end

-- Returns the error of a call. A producer in doubt counts as closed for the library.
local function failure(opened, code)
  if code == errors.CLOSED and STATES[native.state(opened)] == "in_doubt" then return errors.last(code, "InDoubt") end
  return errors.last(code)
end

local function is_usable(opened)
  local state = STATES[native.state(opened)]
  return state == "connecting" or state == "open"
end

-- Returns the error of a report.
local function unstored_error(fate, code, text)
  local failed = errors.new(code, text)
  failed.fate = fate == REFUSED and "refused" or "unknown"
  if fate == UNKNOWN and not ENDED[failed.kind] then failed.kind, failed.retryable = "InDoubt", false end
  return failed
end

-- Takes the reports that the library has kept.
function Producer:take_reports()
  while true do
    local code, first, last, fate, reason, text = native.next_report(self.handle)
    if code ~= errors.OK then return end
    local failed = fate ~= CONFIRMED and unstored_error(fate, reason, text) or nil
    if not failed then
      self.fates:settled(last)
    elseif fate == UNKNOWN and reason == errors.LIMIT_REACHED then -- the library has forgotten some fates of this range
      self.fates:forget(last)
    else
      self.fates:fail(first, last, failed)
    end
    if self.callback then
      self.untold.newest = self.untold.newest + 1
      self.untold[self.untold.newest] = {first, last, failed}
    end
  end
end

-- Passes the reports on, when the call's own work is done. Then throws `failed`, unless it is nil.
function Producer:tell(failed)
  for settled in pop, self.untold do
    if self.callback then self.callback(settled[1], settled[2], settled[3]) end
  end
  if failed then error(failed, 0) end
end

-- Returns why `wait_settled` fails, or nil. `failed`: why the library does not say that the message is settled, or nil.
function Producer:failure_of(number, failed)
  if failed and not self.fates:is_settled(number) then return failed end
  if not self.fates:is_forgotten(number) then return self.fates:reason_of(number) end
  local text = ("the fate of message %.0f is not known any more, because too many messages were not stored"):format(number)
  return unstored_error(UNKNOWN, errors.LIMIT_REACHED, text)
end

--- Takes a message, and returns a Confirm. It waits only while the memory for unconfirmed messages is full.
-- `attributes`: `key`, `headers`, `time`, `ttl`, `id`; `delay` or `deliver_at` on a producer with `delayed`; and `timeout`. Times
-- are in seconds. Errors: InvalidArgument, Refused (too large), Timeout, the final failure: the message was not taken.
function Producer:send(body, attributes)
  local opened, given = self:open_handle(), nil
  if type(body) ~= "string" then errors.invalid("the body is no text: %s", type(body)) end
  if attributes then given = options.attributes(attributes) end
  local code, number = handle.sliced(options.timeout(attributes and attributes.timeout, SEND_SECONDS), function(ms)
    return native.send(opened, body, given, ms)
  end)
  if code ~= errors.OK then error(failure(opened, code), 0) end
  if number % POLL_MESSAGES == 0 then
    self:take_reports()
    self:tell()
  end
  return setmetatable({producer = self, number = number}, Confirm)
end

-- Flushes. Goes on after a message was refused, so that the fates of all are known. Returns the error, or nil.
local function flushed(opened, ms)
  local refused
  local code = handle.sliced(ms, function(slice)
    local code = native.flush(opened, slice)
    while code ~= errors.OK and code ~= errors.TIMEOUT and is_usable(opened) do
      refused = refused or errors.last(code)
      code = native.flush(opened, 0)
    end
    return code
  end)
  return refused or (code ~= errors.OK and failure(opened, code) or nil)
end

--- Sends everything and waits until it is stored. Errors: Timeout; the reason of a message since the last flush that was
-- not stored; the final failure.
function Producer:flush(timeout)
  local failed = flushed(self:open_handle(), options.timeout(timeout, FLUSH_SECONDS))
  self:take_reports()
  self:tell(failed)
end

--- Sends and receives, for so many seconds at most. Errors: the final failure.
function Producer:poll(timeout)
  local opened = self:open_handle()
  local code = native.producer_poll(opened, options.timeout(timeout, 0))
  local failed = code ~= errors.OK and failure(opened, code) or nil
  self:take_reports()
  self:tell(failed)
end

--- Calls a function in later calls with the fates of messages: the numbers [first, last), and nil or the reason why they
-- are not stored. The reason's `fate` is "refused" (certainly not stored) or "unknown". The function may use the producer. Its errors leave the call.
function Producer:on_settled(callback)
  self.callback = callback
end

--- Waits for the message of this number and all before it: see Confirm. After `close` it returns or throws at once.
function Producer:wait_settled(number, timeout)
  local which, ms = options.whole(number, "the number"), options.timeout(timeout, FLUSH_SECONDS)
  local opened, failed = self.handle, nil
  if opened then
    local code = handle.sliced(ms, function(slice) return native.wait_settled(opened, which, slice) end)
    failed = code ~= errors.OK and failure(opened, code) or nil
    self:take_reports()
  elseif not self.fates:is_settled(which) then
    self:open_handle() -- throws
  end
  self:tell(self:failure_of(which, failed))
end

function Producer:is_settled(number)
  local which, code = options.whole(number, "the number"), nil
  if self.handle then
    code = native.wait_settled(self.handle, which, 0)
    self:take_reports()
    self:tell()
  end
  return code == errors.OK or self.fates:is_settled(which)
end

--- Ends the doubt of a producer that the broker has forgotten: sends its unconfirmed messages again, which may store some
-- twice, or gives them up.
function Producer:resolve(resend)
  errors.check(native.resolve(self:open_handle(), resend and true or false))
end

--- Returns "connecting", "open", "in_doubt", "failed" or "closed".
function Producer:state()
  return self.handle and STATES[native.state(self.handle)] or "closed"
end

--- Returns {id = …, epoch = …}, for the option `identity` of a producer that continues this one with an epoch one higher. The
-- id is a text of digits.
function Producer:identity()
  local code, id, epoch, secret = native.identity(self:open_handle())
  errors.check(code)
  return {id = id, epoch = epoch, secret = secret}
end

--- Returns the counters since the producer was opened, by their names in lightq.h.
function Producer:stats()
  local code, stats = native.stats(self:open_handle())
  errors.check(code)
  return stats
end

--- Flushes and ends the session. Messages that are not confirmed in time are given up. Errors: those of `flush`. A second
-- call does nothing.
function Producer:close(timeout)
  if not self.handle then return end
  local failed = flushed(self.handle, options.timeout(timeout, FLUSH_SECONDS))
  native.producer_close(self.handle, 0)
  self:take_reports()
  self.fates:close()
  self:free()
  self:tell(failed)
end

return Producer
