--- Reads and writes JSON, for the commands of the broker.
--
-- Objects and arrays are tables. An empty table is written as an object; `array` marks one as an array. `null` is a value
-- of its own. Whole numbers that a number of this Lua cannot hold exactly are read as texts of digits.
local json = {null = setmetatable({}, {__tostring = function() return "null" end})}

local DEPTH_MAX = 100
local arrays = setmetatable({}, {__mode = "k"})
local to_integer = math.tointeger or function(number) return number end -- luacheck: ignore 143

--- Marks a table as an array, so that an empty one is written as `[]`. Returns it.
function json.array(table)
  arrays[table] = true
  return table
end

local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}

local function quoted(text)
  return '"' .. text:gsub('[%z\1-\31"\\]', function(byte)
    return ESCAPES[byte] or ("\\u%04x"):format(byte:byte())
  end) .. '"'
end

local function number_text(number)
  if number ~= number or number == math.huge or number == -math.huge then error("JSON has no such number", 0) end
  if number % 1 == 0 and math.abs(number) < 2 ^ 63 then return ("%d"):format(number) end
  return ("%.17g"):format(number)
end

local write

local function write_table(value, depth)
  if depth > DEPTH_MAX then error("JSON of more than " .. DEPTH_MAX .. " levels", 0) end
  local parts = {}
  if arrays[value] or #value > 0 then
    for at = 1, #value do parts[at] = write(value[at], depth + 1) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for name, member in pairs(value) do
    if type(name) ~= "string" then error("the name of a member is no text: " .. tostring(name), 0) end
    parts[#parts + 1] = quoted(name) .. ":" .. write(member, depth + 1)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

function write(value, depth)
  local kind = type(value)
  if value == json.null then return "null" end
  if kind == "string" then return quoted(value) end
  if kind == "number" then return number_text(value) end
  if kind == "boolean" then return tostring(value) end
  if kind == "table" then return write_table(value, depth) end
  error("JSON has no " .. kind, 0)
end

--- Returns a value as JSON. Errors: a text that names the value that JSON cannot hold.
function json.encode(value)
  return write(value, 1)
end

-- Returns a character as UTF-8.
local function utf8_of(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64) end
  if code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return string.char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64,
                     0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

local function malformed(text, at)
  error(("malformed JSON at byte %d: %s"):format(at, text:sub(at, at + 20)), 0)
end

local LETTERS = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ["/"] = "/", ["\\"] = "\\", ['"'] = '"'}

-- Reads `\uXXXX`, which may be half of a pair. Returns the character and the position behind it.
local function read_escape(text, at)
  local code = tonumber(text:match("^%x%x%x%x", at + 2) or malformed(text, at), 16)
  if code < 0xD800 or code > 0xDFFF then return utf8_of(code), at + 6 end
  local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 6) or "0", 16)
  if code > 0xDBFF or low < 0xDC00 or low > 0xDFFF then malformed(text, at) end
  return utf8_of(0x10000 + (code - 0xD800) * 1024 + low - 0xDC00), at + 12
end

-- Reads a text that begins behind its quote.
local function read_text(text, at)
  local parts = {}
  while true do
    local stop = text:find('["\\%z\1-\31]', at) or malformed(text, at)
    parts[#parts + 1] = text:sub(at, stop - 1)
    local byte = text:sub(stop, stop)
    if byte == '"' then return table.concat(parts), stop + 1 end
    if byte ~= "\\" then malformed(text, stop) end
    local letter = text:sub(stop + 1, stop + 1)
    if letter == "u" then
      parts[#parts + 1], at = read_escape(text, stop)
    else
      parts[#parts + 1], at = LETTERS[letter] or malformed(text, stop), stop + 2
    end
  end
end

local function read_number(text, at)
  local digits = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at) or malformed(text, at)
  local number = tonumber(digits) or malformed(text, at)
  if not digits:find("^-?%d+$") then return number, at + #digits end
  local integer = to_integer(number)
  if not integer or ("%d"):format(integer) ~= digits then return digits, at + #digits end
  return integer, at + #digits
end

local read
local WORDS = {{"true", true}, {"false", false}, {"null", json.null}}

-- Reads items up to `stop`. `read_item(at)` adds one, and returns the position behind it.
local function read_items(text, at, stop, read_item)
  at = text:find("%S", at) or malformed(text, at)
  if text:sub(at, at) == stop then return at + 1 end
  while true do
    at = text:find("%S", read_item(at)) or malformed(text, at)
    local byte = text:sub(at, at)
    if byte == stop then return at + 1 end
    if byte ~= "," then malformed(text, at) end
    at = at + 1
  end
end

local function read_array(text, at, depth)
  local items, count = json.array({}), 0
  return items, read_items(text, at, "]", function(from)
    count = count + 1
    items[count], from = read(text, from, depth + 1)
    return from
  end)
end

local function read_object(text, at, depth)
  local members = {}
  return members, read_items(text, at, "}", function(from)
    local quote = text:match('^%s*"()', from) or malformed(text, from)
    local name, behind = read_text(text, quote)
    members[name], from = read(text, text:match("^%s*:()", behind) or malformed(text, behind), depth + 1)
    return from
  end)
end

function read(text, at, depth)
  if depth > DEPTH_MAX then malformed(text, at) end
  at = text:find("%S", at) or malformed(text, #text)
  local byte = text:sub(at, at)
  if byte == "{" then return read_object(text, at + 1, depth) end
  if byte == "[" then return read_array(text, at + 1, depth) end
  if byte == '"' then return read_text(text, at + 1) end
  for _, word in ipairs(WORDS) do
    if text:sub(at, at + #word[1] - 1) == word[1] then return word[2], at + #word[1] end
  end
  return read_number(text, at)
end

--- Returns the value of a JSON text. Errors: a text that says where it is malformed.
function json.decode(text)
  local value, at = read(text, 1, 1)
  if text:find("%S", at) then malformed(text, at) end
  return value
end

return json
