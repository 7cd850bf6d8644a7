-- For Lua 5.3 and 5.4. `luarocks make` in this folder compiles the module in C against lightq.h and liblightq.so.
rockspec_format = "3.0"
package = "lightq"
version = "0.1.0-1"
source = {url = "file://."} -- `luarocks make` uses this folder
description = {
  summary = "A client of the message broker LightQ",
  detailed = "Sends and receives messages that are confirmed, stored once, and acknowledged.",
  license = "Apache-2.0",
}
dependencies = {"lua >= 5.3, < 5.5"}
external_dependencies = {LIGHTQ = {header = "lightq/lightq.h", library = "lightq"}}
build = {
  type = "builtin",
  modules = {
    ["lightq"] = "lightq/init.lua",
    ["lightq.client"] = "lightq/client.lua",
    ["lightq.commands"] = "lightq/commands.lua",
    ["lightq.consumer"] = "lightq/consumer.lua",
    ["lightq.errors"] = "lightq/errors.lua",
    ["lightq.fates"] = "lightq/fates.lua",
    ["lightq.handle"] = "lightq/handle.lua",
    ["lightq.json"] = "lightq/json.lua",
    ["lightq.message"] = "lightq/message.lua",
    ["lightq.native"] = "lightq/native.lua",
    ["lightq.options"] = "lightq/options.lua",
    ["lightq.producer"] = "lightq/producer.lua",
    ["lightq.reader"] = "lightq/reader.lua",
    ["lightq.native_c"] = {
      sources = {"src/native_c.c", "src/native_consumer.c", "src/native_options.c", "src/native_producer.c"},
      incdirs = {"$(LIGHTQ_INCDIR)"},
      libdirs = {"$(LIGHTQ_LIBDIR)"},
      libraries = {"lightq"},
    },
  },
}
