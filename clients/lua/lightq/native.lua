--- The functions of liblightq.so.0: by the FFI of LuaJIT, or by a small module in C for Lua 5.3 and 5.4. Both offer the
-- same functions. Those that may fail return a code first, 0 for success; `last_error` then has the sentence.
if rawget(_G, "jit") then
  return require "lightq.native_ffi"
end
return require "lightq.native_c"
