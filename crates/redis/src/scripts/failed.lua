-- Counts a delivery that was not confirmed and returns the count; -1 if the member no longer owns the partition.
local inbox, member, part, id = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('GET', key('own', inbox, part)) ~= member then return -1 end
return redis.call('HINCRBY', key('try', inbox, part), id, 1)
