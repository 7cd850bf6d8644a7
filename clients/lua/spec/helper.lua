-- For the specs: a broker that clients/conformance/with_broker.py has started, and groups that begin empty.
local lightq = require "lightq"

local helper = {DEADLINE = 20, opened = {}} -- seconds after which anything counts as stuck
local groups = 0

--- Returns a client that is closed at the end of the test. The environment has the broker and the credentials.
function helper.connected(...)
  helper.opened[#helper.opened + 1] = lightq.connect(...)
  return helper.opened[#helper.opened]
end

function helper.close_all()
  while helper.opened[1] do table.remove(helper.opened):close() end
end

--- Returns the name of a group that has these messages alone.
function helper.group_with(client, ...)
  groups = groups + 1
  local group = ("g%d_%d"):format(os.time(), groups)
  client:consumer("t", {group = group, start = "next"}):close()
  local out = client:producer("t")
  for _, body in ipairs {...} do out:send(body) end
  out:close()
  return group
end

function helper.consumers_of(client, group)
  for _, each in ipairs(client:stats("t").groups) do
    if each.group == group then return each.consumers end
  end
end

--- Repeats a question, which takes its time, until the answer is yes.
function helper.wait_until(what, ask)
  local deadline = os.time() + helper.DEADLINE
  while not ask() do
    if os.time() > deadline then error("not in time: " .. what, 2) end
  end
end

--- Returns the error that a function throws, which must be of this kind.
function helper.throws(kind, call, ...)
  local ok, failed = pcall(call, ...)
  if ok then error("no error; expected: " .. kind, 2) end
  if not lightq.is_error(failed, kind) then error(("expected: %s; got: %s"):format(kind, tostring(failed)), 2) end
  return failed
end

return helper
