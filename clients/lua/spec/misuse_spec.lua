-- Misuse: each ends in an error of Lua, and nothing hangs, crashes or leaks.
local helper = require "helper"
local lightq = require "lightq"
local throws = helper.throws

describe("misuse", function()
  after_each(helper.close_all)

  it("closes twice, and refuses uses after it", function()
    local q = helper.connected()
    local out, orders, reader = q:producer("t"), q:consumer("t", {group = helper.group_with(q, "x")}), q:reader("t")
    local message = orders:receive(helper.DEADLINE)
    local confirm = out:send("one")
    for _, each in ipairs {out, orders, reader, q, out, orders, reader, q} do each:close() end
    for _, use in ipairs {
      function() out:send("x") end, function() out:flush() end, function() orders:receive(1) end, function() message:ack() end,
      function() orders:seek("first") end, function() reader:read(0, 1) end, function() q:ping() end,
      function() q:producer("t") end, function() orders:stats() end, function() out:wait_settled(1) end,
    } do throws("Closed", use) end
    assert.is_true(confirm:is_done())
    confirm:wait() -- the fate was known before
    assert.same({"closed", "closed", true, true}, {out:state(), orders:state(), message:revoked(), q:is_closed()})
    assert.truthy(tostring(out):find("(closed)", 1, true))
  end)

  it("is shared by coroutines", function()
    local q = helper.connected()
    local orders, out, bodies = q:consumer("t", {group = helper.group_with(q)}), q:producer("t"), {}
    local function taker()
      while true do
        local message = orders:receive(0)
        if message then message:process(function(m) bodies[#bodies + 1] = m.body coroutine.yield() end) else coroutine.yield() end
      end
    end
    local takers = {coroutine.wrap(taker), coroutine.wrap(taker)}
    for n = 1, 100 do out:send(tostring(n)) end
    out:close()
    helper.wait_until("all messages", function()
      for _, take in ipairs(takers) do take() end
      return #bodies >= 100
    end)
    assert.equal(100, #bodies)
    orders:close()
  end)

  it("survives errors and abandoned coroutines in the middle of everything", function()
    local q = helper.connected()
    local function work(at, group)
      local step = 0
      local function reach() step = step + 1 if step == at then error("cancelled", 0) end coroutine.yield() end
      local out = q:producer("t") reach()
      local orders = q:consumer("t", {group = group}) reach()
      out:send("x") reach()
      out:flush() reach()
      local message = orders:receive(helper.DEADLINE) reach()
      message:process(reach)
      orders:seek("next") reach()
      q:stats("t") reach()
    end
    for at = 1, 8 do
      local failing, abandoned, groups = coroutine.create(work), coroutine.create(work), {helper.group_with(q), helper.group_with(q)}
      local ok, failed
      repeat ok, failed = coroutine.resume(failing, at, groups[1]) until not ok or coroutine.status(failing) == "dead"
      assert.same({false, "cancelled"}, {ok, failed})
      for _ = 1, at do assert.is_true(coroutine.resume(abandoned, 0, groups[2])) end
      abandoned, failing = nil, nil -- luacheck: ignore 311
      helper.wait_until("the end of the consumers", function()
        collectgarbage()
        return helper.consumers_of(q, groups[1]) + helper.consumers_of(q, groups[2]) == 0
      end)
    end
  end)

  it("frees what is collected while it is open", function()
    local q = helper.connected()
    local group = helper.group_with(q)
    for _ = 1, 3 do q:consumer("t", {group = group}) q:producer("t"):send("x") lightq.connect() end
    helper.wait_until("the end of the consumers", function()
      collectgarbage()
      return helper.consumers_of(q, group) == 0
    end)
  end)

  it("leaks no descriptor", function()
    local file = io.open("/proc/self/stat")
    local id = file:read("*n")
    file:close()
    local function descriptors()
      local listing = io.popen(("ls /proc/%d/fd | wc -l"):format(id))
      local count = listing:read("*n")
      listing:close()
      return count
    end
    local q, before = helper.connected(), nil
    for round = 1, 6 do
      local out, orders = q:producer("t"), q:consumer("t", {own = true, start = "next"})
      out:send("x", {key = "k", headers = {a = "b"}}):wait()
      orders:receive(helper.DEADLINE):ack()
      out:close()
      orders:close()
      if round == 1 then before = descriptors() end
    end
    -- libzmq closes the descriptors of a closed connection in a thread of its own.
    helper.wait_until("the end of the connections", function() return descriptors() <= before end)
  end)

  it("says that there is no broker, and that a password is wrong", function()
    local failed = throws("ConnectionLost", lightq.connect, "tcp://127.0.0.1:1", {discover = false})
    assert.same({"io_error", true}, {failed.code, failed.retryable})
    local wrong = helper.connected(os.getenv("LIGHTQ_BROKER"), {user = "test_user", password = "wrong one", discover = false})
    for _, use in ipairs {wrong.producer, wrong.consumer, wrong.stats} do
      failed = throws("Unauthorized", use, wrong, "t")
      assert.falsy(tostring(failed):find("wrong one", 1, true))
      assert.is_false(failed.retryable)
    end
  end)

  it("passes on the error of a callback", function()
    local out, seen = helper.connected():producer("t"), {}
    out:on_settled(function(...)
      seen[#seen + 1] = {...}
      error("in the callback", 0)
    end)
    out:send("x")
    local ok, failed = pcall(out.flush, out)
    assert.same({false, "in the callback", {{0, 1}}}, {ok, failed, seen})
    out:on_settled(function() -- it may use the producer
      if #seen == 1 then seen[2] = out:send("in the callback") end
    end)
    out:send("y")
    out:flush()
    out:on_settled(nil)
    out:close()
    assert.equal(2, seen[2].number)
  end)

  it("rejects a message whose work fails, and acknowledges the others", function()
    local q = helper.connected()
    local group, deliveries = helper.group_with(q, "x"), {}
    local orders = q:consumer("t", {group = group})
    local function work(message)
      deliveries[#deliveries + 1] = message.delivery
      if message.delivery < 3 then error({"my own"}) end
      message:dead("enough")
    end
    for _ = 1, 2 do
      local ok, failed = pcall(orders.process, orders, work)
      assert.same({false, {"my own"}}, {ok, failed})
    end
    orders:process(work, 0.2)
    orders:close()
    assert.same({1, 2, 3}, deliveries)
    assert.equal("enough", q:list_dead("t", group).messages[1].reason)
  end)

  it("finds out that a message was revoked", function()
    local q = helper.connected()
    local orders = q:consumer("t", {group = helper.group_with(q, "x"), ack_timeout = 0.1})
    local message = orders:receive(helper.DEADLINE)
    assert.is_false(message:revoked())
    helper.wait_until("the revocation", function() orders:poll() q:ping() return message:revoked() end)
    assert.is_false(throws("Revoked", message.ack, message).retryable)
    assert.equal(7, message:process(function() return 7 end))
    orders:receive(helper.DEADLINE):ack()
    orders:close()
  end)

  it("refuses wrong arguments, and stays usable", function()
    local q = helper.connected()
    local out = q:producer("t")
    local many = {}
    for at = 1, 65 do many[at] = {"n", "v"} end
    for _, use in ipairs {
      function() q:producer("no name") end, function() q:producer(5) end, function() q:producer("t\0x") end,
      function() q:consumer("t", {group = "no group"}) end, function() q:consumer("t", {prefetch = 0}) end,
      function() q:consumer("t", {start = "middle"}) end, function() q:producer("t", {level = "high"}) end,
      function() q:producer("t", {colour = 1}) end, function() q:producer("t", {delayed = 1}) end,
      function() out:send(5) end, function() out:send("x", {delay = 1}) end, function() out:send("x", {ttl = -1}) end,
      function() out:send("x", {ttl = "long"}) end, function() out:send("x", {key = 5}) end, function() out:send("x", {colour = 5}) end,
      function() out:send("x", {headers = many}) end, function() q:command("no_such_command") end,
      function() q:command("stats", {topic = print}) end, function() out:wait_settled(2 ^ 40) end, function() out:wait_settled(-1) end,
      function() out:send("a", "abc") end, function() out:send("a", {headers = "abc"}) end,
      function() out:send("a", {headers = {"abc"}}) end, function() out:send("a", {headers = {[3] = {"a", "b"}}}) end,
      function() out:send("a", {headers = {{"a"}}}) end, function() out:send("a", {headers = {[true] = "a"}}) end,
      function() q:producer("t", "abc") end,
      function() q:consumer("t", 5) end, function() lightq.connect(nil, "abc") end, function() q:producer("t", {identity = 5}) end,
      function() q:producer("t", {identity = {id = "18446744073709551616"}}) end,
      function() q:producer("t", {identity = {id = "99999999999999999999"}}) end, function() q:producer("t", {identity = {}}) end,
      function() q:producer("t", {identity = {id = "1", secret = {}}}) end, function() out:is_settled(-1) end,
      function() lightq.connect({timeout = -1}) end, function() q:reader("t"):read(2, 1) end, function() q:reader("t"):read(0, 0 / 0) end,
    } do throws("InvalidArgument", use) end
    local wrong = throws("InvalidArgument", lightq.connect, nil, {password = 987654})
    assert.falsy(tostring(wrong):find("987654", 1, true))
    throws("NotFound", q.producer, q, "missing")
    assert.same({"too_large", false}, (function(failed) return {failed.code, failed.retryable} end)(
      throws("Refused", out.send, out, ("x"):rep(17 * 2 ^ 20))))
    out:send("still in use"):wait()
    out:close()
  end)

  it("gives Closed to a child of a fork", function()
    if not rawget(_G, "jit") then return pending("only LuaJIT can fork without other modules") end
    local ffi = require "ffi"
    ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);"
    local q = helper.connected()
    local out, orders = q:producer("t"), q:consumer("t", {group = helper.group_with(q, "x")})
    local message = orders:receive(helper.DEADLINE)
    local child = ffi.C.fork()
    if child == 0 then
      local ok = pcall(function()
        for _, use in ipairs {
          function() out:send("x") end, function() orders:receive(1) end, function() message:ack() end, function() q:ping() end,
          function() orders:flush() end, function() orders:close() end, function() out:close() end,
        } do throws("Closed", use) end
        q:close()
        local own = lightq.connect():producer("t")
        own:send("of the child"):wait()
        own:close()
      end)
      ffi.C._exit(ok and 0 or 1)
    end
    local status = ffi.new("int[1]")
    ffi.C.waitpid(child, status, 0)
    assert.equal(0, status[0])
    message:ack()
    orders:close()
    out:send("after"):wait()
    out:close()
  end)
end)
