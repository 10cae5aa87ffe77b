-- Confirms a message, or makes it a dead letter if a cause is given. Returns 0 if the member no longer owns the partition.
local inbox, member, part, id, cause = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
if redis.call('GET', key('own', inbox, part)) ~= member then return 0 end
local stream = key('in', inbox, part)
if redis.call('XACK', stream, 'readers', id) == 1 then
  local entry = cause ~= '' and redis.call('XRANGE', stream, id, id)[1]
  if entry then
    local of = fields(entry[2])
    bury(of.m, of.s, cause)
  end
  redis.call('XDEL', stream, id)
  redis.call('HDEL', key('try', inbox, part), id)
end
return 1
