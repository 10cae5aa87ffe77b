-- Creates an inbox if it does not exist, and returns the number of its partitions.
local inbox, agent, parts, alive = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
if alive ~= '' then redis.call('SET', P .. 'alive:' .. inbox, '1', 'PX', alive) end
for i = 7, #ARGV do
  redis.call('SADD', P .. 'kind:' .. ARGV[i], inbox)
  redis.call('SADD', P .. 'also:' .. inbox, ARGV[i])
end
if redis.call('HSETNX', P .. 'inboxes', inbox, parts .. ' ' .. agent) == 0 then return (known(inbox)) end
redis.call('SADD', P .. 'of:' .. agent, inbox)
for part = 0, parts - 1 do
  redis.call('XGROUP', 'CREATE', key('in', inbox, part), 'readers', '0', 'MKSTREAM')
end
return parts
