-- Removes and returns the dead letters, the oldest first.
local found = {}
for _, entry in ipairs(redis.call('XRANGE', P .. 'dead', '-', '+')) do
  local of = fields(entry[2])
  found[#found + 1] = {of.m, tostring(of.s), of.c}
end
redis.call('DEL', P .. 'dead')
return found
