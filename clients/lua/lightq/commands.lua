--- The commands of the control socket as methods of a client. docs/protocol.md lists the fields and the members of each reply.
-- Errors are the broker's.
local json = require "lightq.json"

local function with(fields, more)
  for name, value in pairs(more or {}) do fields[name] = value end
  return fields
end

--- Adds the methods to a class with the method `command`. Returns it.
return function(Client)
  -- Commands of a topic, a user or a group. The last argument has their other fields.
  for _, cmd in ipairs {"set_topic", "delete_topic", "list_delayed", "cancel_delayed"} do
    Client[cmd] = function(self, topic, more) return self:command(cmd, with({topic = topic}, more)) end
  end
  -- Without `group`, the last three are for all groups of the topic.
  for _, cmd in ipairs {"set_group", "delete_group", "list_dead", "retry_dead", "purge_dead", "pause", "resume", "purge"} do
    Client[cmd] = function(self, topic, group, more) return self:command(cmd, with({topic = topic, group = group}, more)) end
  end
  for _, cmd in ipairs {"grant", "revoke"} do
    Client[cmd] = function(self, user_id, topic, rights)
      return self:command(cmd, {user_id = user_id, topic = topic, rights = json.array(rights)})
    end
  end
  for _, cmd in ipairs {"ping", "version", "list_topics", "list_users", "stats_all"} do
    Client[cmd] = function(self, more) return self:command(cmd, more) end
  end

  --- `settings` has `broker_type`, by default "file", and others.
  function Client:create_topic(topic, settings)
    return self:command("create_topic", with({topic = topic, broker_type = "file"}, settings))
  end

  --- Returns a topic's statistics; without a topic, the broker's.
  function Client:stats(topic)
    return self:command("stats", {topic = topic})
  end

  --- `rights`: a list such as {{topic = "orders", rights = {"consume"}}}.
  function Client:create_user(user_id, password, rights, admin)
    return self:command("create_user", {user_id = user_id, password = password, rights = json.array(rights or {}), admin = admin or false})
  end

  function Client:delete_user(user_id)
    return self:command("delete_user", {user_id = user_id})
  end

  --- Changes the password of a user. Needs an administrator.
  function Client:set_password(user_id, new_password)
    return self:command("set_password", {user_id = user_id, new_password = new_password})
  end

  return Client
end
