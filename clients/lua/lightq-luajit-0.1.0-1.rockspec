-- For LuaJIT, whose FFI calls liblightq.so.0: nothing is compiled.
rockspec_format = "3.0"
package = "lightq-luajit"
version = "0.1.0-1"
source = {url = "file://."} -- `luarocks make` uses this folder
description = {
  summary = "A client of the message broker LightQ",
  detailed = "Sends and receives messages that are confirmed, stored once, and acknowledged.",
  license = "Apache-2.0",
}
dependencies = {"lua == 5.1"}
build = {
  type = "builtin",
  modules = {
    ["lightq"] = "lightq/init.lua",
    ["lightq.cdef"] = "lightq/cdef.lua",
    ["lightq.client"] = "lightq/client.lua",
    ["lightq.commands"] = "lightq/commands.lua",
    ["lightq.consumer"] = "lightq/consumer.lua",
    ["lightq.errors"] = "lightq/errors.lua",
    ["lightq.fates"] = "lightq/fates.lua",
    ["lightq.handle"] = "lightq/handle.lua",
    ["lightq.json"] = "lightq/json.lua",
    ["lightq.message"] = "lightq/message.lua",
    ["lightq.native"] = "lightq/native.lua",
    ["lightq.native_ffi"] = "lightq/native_ffi.lua",
    ["lightq.options"] = "lightq/options.lua",
    ["lightq.producer"] = "lightq/producer.lua",
    ["lightq.reader"] = "lightq/reader.lua",
  },
}
