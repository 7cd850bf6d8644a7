--- The fates of a producer's messages, by their numbers.
--
-- It keeps the ranges of messages that were not stored: disjoint, in the order of their numbers, at most `RANGES_MAX`. All
-- other messages before `settled_end` were stored, but those before `forgotten_end` may have failed.
local Fates = {RANGES_MAX = 10000}
Fates.__index = Fates

function Fates.new()
  return setmetatable({settled_end = 0, forgotten_end = 0, ranges = {}, first = 1, last = 0}, Fates)
end

-- Returns the index of the first range that ends behind a number.
local function place(self, number)
  local low, high = self.first, self.last + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if self.ranges[middle][2] > number then high = middle else low = middle + 1 end
  end
  return low
end

--- Every message before this number is settled.
function Fates:settled(before)
  self.settled_end = math.max(self.settled_end, before)
end

--- The messages before this number may be stored or not, unless a range has them.
function Fates:forget(before)
  self.forgotten_end = math.max(self.forgotten_end, before)
end

--- The messages with the numbers `begin` to `behind` - 1 were not stored. Forgets the lowest range if there are too many.
function Fates:fail(begin, behind, reason)
  local at = place(self, begin)
  for moved = self.last, at, -1 do self.ranges[moved + 1] = self.ranges[moved] end
  self.ranges[at] = {begin, behind, reason}
  self.last = self.last + 1
  if self.last - self.first == Fates.RANGES_MAX then
    self:forget(self.ranges[self.first][2])
    self.ranges[self.first] = nil
    self.first = self.first + 1
  end
end

--- The producer has ended: every message is settled.
function Fates:close()
  self:settled(self.forgotten_end)
end

--- Returns why a message was not stored, or nil: it was stored, or its fate is not known.
function Fates:reason_of(number)
  local range = self.ranges[place(self, number)]
  return range and number >= range[1] and range[3] or nil
end

--- Tells whether the fate of a message is known, or forgotten.
function Fates:is_settled(number)
  return number < self.settled_end or self:reason_of(number) ~= nil
end

--- Tells whether a message that is settled may have failed without a reason that is still known.
function Fates:is_forgotten(number)
  return number < self.forgotten_end and self:reason_of(number) == nil
end

return Fates
