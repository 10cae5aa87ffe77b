-- Releases partitions without a message that is being handled. With '*' the member leaves and releases all.
local inbox, member = ARGV[3], ARGV[4]
local function release(part)
  if redis.call('GET', key('own', inbox, part)) ~= member then return end
  redis.call('DEL', key('own', inbox, part))
  redis.call('HSET', key('try', inbox, part), 'released', 1)
end
if ARGV[5] ~= '*' then
  for i = 5, #ARGV do release(ARGV[i]) end
  return 0
end
redis.call('ZREM', P .. 'members:' .. inbox, member)
for part = 0, (known(inbox) or 0) - 1 do release(part) end
return 0
