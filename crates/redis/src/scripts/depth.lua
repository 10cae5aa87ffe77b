-- Returns the number of messages that wait for an agent, those being read included.
local depth = 0
for _, inbox in ipairs(redis.call('SMEMBERS', P .. 'of:' .. ARGV[3])) do
  for part = 0, (known(inbox) or 0) - 1 do
    depth = depth + redis.call('XLEN', key('in', inbox, part))
  end
end
return depth
