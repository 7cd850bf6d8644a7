-- Tests that the kit does not have: declarations, JSON, parts of messages, cursors, counters and commands.
local Fates = require "lightq.fates"
local helper = require "helper"
local json = require "lightq.json"
local lightq = require "lightq"

local function bodies_of(messages)
  local bodies = {}
  for at, message in ipairs(messages) do bodies[at] = message.body end
  return bodies
end

local function take(consumer, count)
  local messages = {}
  for at = 1, count do messages[at] = consumer:receive(helper.DEADLINE) end
  return bodies_of(messages), messages
end

describe("the client", function()
  after_each(helper.close_all)

  it("has the version of the library", function()
    assert.equal(lightq.version, lightq.library_version())
  end)

  it("declares for LuaJIT what lightq.h declares", function()
    local folder = package.searchpath("lightq.cdef", package.path):match("^(.*)/lightq/cdef%.lua$")
    local file = assert(io.open(folder .. "/../../include/lightq/lightq.h"))
    local header = file:read("*a"):gsub("/%*.-%*/", ""):gsub("%s+", ""):gsub("}lightq", "}lightq")
    file:close()
    local declared = 0
    for statement in (dofile(folder .. "/lightq/cdef.lua"):gsub("%b{}", function(body) return body:gsub(";", "@") end)):gmatch("[^;]+;") do
      statement = statement:gsub("@", ";"):gsub("%s+", "")
      assert.truthy(header:find(statement, 1, true), statement)
      declared = declared + 1
    end
    assert.is_true(declared > 50)
  end)

  it("reads and writes JSON", function()
    local value = {text = 'a"\\\n\1é', list = {1, 2.5, -3}, none = json.null, empty = json.array({}), yes = true, inner = {}}
    assert.same(value, json.decode(json.encode(value)))
    assert.equal('{"empty":[]}', json.encode({empty = json.array({})}))
    assert.same({"é𝄞", "/"}, json.decode(' [ "\\u00e9\\uD834\\uDD1E" , "\\/" ] '))
    assert.equal("18446744073709551615", json.decode("18446744073709551615"))
    assert.equal(2 ^ 53, json.decode("9007199254740992"))
    for _, text in ipairs {"", "{", "[1,]", '{"a" 1}', '"a', '"\\q"', '"\\uD834"', "01x", "nul", "1 2", "-", ("["):rep(200)} do
      assert.is_false(pcall(json.decode, text), text)
    end
    local ring = {}
    ring.inner = ring
    for _, wrong in ipairs {{f = print}, {n = 1 / 0}, {[{}] = 1}, ring} do assert.is_false(pcall(json.encode, wrong)) end
  end)

  it("passes on the parts of a message", function()
    local q = helper.connected()
    local group, out = helper.group_with(q), q:producer("t", {compression = "lz4"})
    local confirm = out:send("body \0 é", {key = "k\0\255", headers = {{"content-type", "text/plain"}, {"e", ""}}, time = 1700000000.5,
                                            id = "17", ttl = 60})
    confirm:wait()
    assert.is_true(confirm:is_done())
    out:send(""):wait()
    assert.same({2, 2, 0}, {out:stats().sent, out:stats().confirmed, out:stats().unconfirmed})
    out:close()
    local orders = q:consumer("t", {group = group})
    local bodies, messages = take(orders, 2)
    local first = messages[1]
    assert.same({"body \0 é", ""}, bodies)
    assert.same({"k\0\255", "text/plain", "", "17", 1700000000.5, 1, 0},
                {first.key, first.headers["content-type"], first.headers.e, first.headers["lightq-id"], first.producer_time,
                 first.delivery, first.lost})
    assert.same({4, 0}, {#first.headers, #messages[2].headers})
    assert.is_true(math.abs(os.time() - first.time) < 3600)
    assert.is_nil(messages[2].key)
    assert.equal(2, orders:stats().unacknowledged)
    messages[2]:extend(60)
    assert.equal(2, orders:ack_range(first.offset, first.offset + 2))
    assert.same({}, orders:late())
    orders:close()
  end)

  it("passes the headers of a received message on", function()
    local q = helper.connected()
    local group, out = helper.group_with(q), q:producer("t")
    local orders = q:consumer("t", {group = group})
    local given = {{"a", "1"}, {"b", "2"}, {"a", "3"}}
    out:send("", {headers = given})
    out:flush()
    local received = orders:receive(helper.DEADLINE)
    assert.same({"1", "2"}, {received.headers.a, received.headers.b})
    received.headers.c = "4"
    out:send("", {headers = received.headers})
    out:close()
    local again, named = {}, orders:receive(helper.DEADLINE).headers
    for at, pair in ipairs(named) do again[at] = pair end
    given[4] = {"c", "4"}
    assert.same(given, again)
    orders:close()
  end)

  it("seeks with an own cursor, and reads", function()
    local q = helper.connected()
    q:create_topic("pages")
    local out = q:producer("pages")
    for n = 0, 9 do out:send(tostring(n)) end
    out:close()
    local mine = q:consumer("pages", {own = true, start = 7})
    assert.same({"7", "8", "9"}, (take(mine, 3)))
    assert.equal(2, mine:seek(2))
    assert.same({"2"}, (take(mine, 1)))
    assert.equal(10, mine:seek("next"))
    assert.equal(0, mine:seek({time = 0}))
    assert.same({"0", "1", "2"}, (take(mine, 3)))
    assert.equal(3, mine:ack_before(3))
    mine:pause()
    mine:resume()
    mine:close()
    local reader = q:reader("pages")
    local messages, following = reader:read(3, 6)
    assert.same({{"3", "4", "5"}, 6}, {bodies_of(messages), following})
    assert.is_true(messages[1]:revoked())
    assert.same({}, (reader:read(10, 20)))
    reader:close()
    q:delete_topic("pages")
  end)

  it("knows refused messages by their numbers", function()
    local q = helper.connected()
    q:create_topic("tiny", {broker_type = "queue", ring_bytes = 65536, overflow = "reject"})
    local holder, out, confirms, settled = q:consumer("tiny", {prefetch = 1}), q:producer("tiny", {retry_refused = false}), {}, 0
    local refused
    out:on_settled(function(first, last, failed)
      settled = settled + last - first
      refused = refused or failed and first
    end)
    for at = 0, 399 do confirms[at] = out:send(("x"):rep(1000)) end
    local failed = helper.throws("Refused", out.flush, out)
    assert.same({"limit_reached", true, 400}, {failed.code, failed.retryable, settled})
    assert.equal("refused", helper.throws("Refused", confirms[refused].wait, confirms[refused]).fate)
    confirms[0]:wait()
    out:close()
    holder:close()
    q:delete_topic("tiny")
  end)

  it("calls the fates of too many messages in doubt", function()
    local native = require "lightq.native"
    local next_report, reported, most = native.next_report, 0, 2 * 10000 + 6
    -- The library reports other fates: each second message was refused.
    local function scripted()
      if reported == most then return 25 end
      reported = reported + 1
      local refused = reported % 2
      return 0, reported - 1, reported, refused, refused * 15, "full"
    end
    local out, confirms, told = helper.connected():producer("t"), {}, 0
    out:on_settled(function(first, last)
      assert.equal(told, first)
      told = last
    end)
    native.next_report = scripted
    local ok, failed = pcall(function()
      for number = 0, most - 1 do confirms[number] = out:send("x") end
      out:flush()
    end)
    native.next_report = next_report
    assert.is_true(ok, failed)
    assert.equal(most, told)
    out:on_settled(nil)
    for _ = 1, 2 do
      for _, number in ipairs {0, 1, 4} do
        assert.is_true(confirms[number]:is_done())
        local doubt = helper.throws("InDoubt", confirms[number].wait, confirms[number])
        assert.same({"unknown", false}, {doubt.fate, doubt.retryable})
      end
      for _, number in ipairs {6, most - 2} do helper.throws("Refused", confirms[number].wait, confirms[number]) end
      for _, number in ipairs {7, most - 1} do confirms[number]:wait() end -- the latest fates are still known after `close`
      out:close()
    end
    helper.throws("Closed", out.wait_settled, out, most)
    assert.is_false(out:is_settled(most))
  end)

  it("finds the fates that arrive in another order, and keeps a bounded number of them", function()
    local fates, most = Fates.new(), Fates.RANGES_MAX
    fates:fail(8, 9, "later")
    fates:fail(3, 6, "earlier")
    fates:settled(2)
    for number, expected in pairs {[1] = "stored", [3] = "earlier", [5] = "earlier", [6] = "open", [7] = "open", [8] = "later", [9] = "open"} do
      local found = fates:reason_of(number) or fates:is_settled(number) and "stored" or "open"
      assert.equal(expected, found, number)
    end
    fates:forget(10) -- the library has forgotten fates up to here, and will name some of these messages later
    assert.same({false, true}, {fates:is_settled(7), fates:is_forgotten(7)})
    assert.same({"later", false}, {fates:reason_of(8), fates:is_forgotten(8)})
    fates:fail(7, 8, "named later")
    assert.same({"named later", true}, {fates:reason_of(7), fates:is_settled(7)})
    for number = 1, most do fates:fail(10 + 2 * number, 11 + 2 * number, number) end
    local kept = 0
    for _ in pairs(fates.ranges) do kept = kept + 1 end
    assert.same({most, 10}, {kept, fates.forgotten_end})
    for number = 1, most do assert.equal(number, fates:reason_of(10 + 2 * number)) end
    assert.is_false(fates:is_settled(9))
    fates:close()
    assert.is_true(fates:is_settled(9))
  end)

  it("continues a producer by its identity", function()
    local q = helper.connected()
    local first = q:producer("t")
    local known = first:identity()
    assert.truthy(known.id:find("^%d+$"))
    local second = q:producer("t", {identity = {id = known.id, epoch = known.epoch + 1, secret = known.secret}})
    assert.same({known.id, known.epoch + 1}, {second:identity().id, second:identity().epoch})
    first:send("x")
    helper.throws("Fenced", first.flush, first)
    assert.equal("failed", first:state())
    first:close()
    second:close()
  end)

  it("sends commands", function()
    local q = helper.connected()
    q:create_topic("made", {message_bytes_max = 1000})
    assert.equal("topic_already_exists", helper.throws("AlreadyExists", q.create_topic, q, "made").code)
    q:create_user("shop", "a secret of ours", {{topic = "made", rights = {"produce"}}})
    q:grant("shop", "made", {"consume"})
    assert.equal("shop", q:list_users().users[1].user_id)
    local shop = helper.connected(os.getenv("LIGHTQ_BROKER"), {user = "shop", password = "a secret of ours", discover = false})
    assert.equal(0, shop:stats("made").messages_received)
    helper.throws("Unauthorized", shop.list_users, shop)
    local out = shop:producer("made", {delayed = true})
    out:send("later", {delay = 3600})
    out:close()
    assert.equal(1, #q:list_delayed("made").messages)
    assert.equal("group_not_found", helper.throws("NotFound", q.list_dead, q, "made", "none").code)
    q:delete_user("shop")
    q:delete_topic("made")
  end)

  it("closes variables of Lua 5.4 at the end of their block", function()
    if not load("local x <close> = nil") then return pending("this Lua has no such variables") end
    local q = helper.connected()
    local group = helper.group_with(q, "x")
    local use = load [[
      local q, group, seconds, fails = ...
      local orders <close> = q:consumer("t", {group = group})
      local message = orders:receive(seconds)
      if fails then error("failed", 0) end
      message:ack()
    ]]
    assert.same({false, "failed"}, {pcall(use, q, group, helper.DEADLINE, true)})
    assert.equal(0, helper.consumers_of(q, group))
    use(q, group, helper.DEADLINE, false)
    assert.equal(0, helper.consumers_of(q, group))
  end)
end)
