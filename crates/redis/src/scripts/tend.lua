-- Renews the leases of the partitions that a member owns, and acquires free ones up to its share. The unconfirmed
-- messages of the dead owner pass to the member, and come first. Returns the share, and each partition with 1 if it was
-- acquired now, else 0. A share of 0 means that the inbox does not exist.
local inbox, member, lease, alive = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local parts = known(inbox)
if not parts then return {{0}} end
-- Also if the time has run out, but no sender has noticed yet.
if alive ~= '' then redis.call('SET', P .. 'alive:' .. inbox, '1', 'PX', alive) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local members = P .. 'members:' .. inbox
redis.call('ZADD', members, now + lease, member)
redis.call('ZREMRANGEBYSCORE', members, '-inf', '(' .. now)
local share = math.ceil(parts / redis.call('ZCARD', members))

local function take(part)
  local stream, try = key('in', inbox, part), key('try', inbox, part)
  redis.call('SET', key('own', inbox, part), member, 'PX', lease)
  local cursor = '0-0'
  repeat
    cursor = redis.call('XAUTOCLAIM', stream, 'readers', member, 0, cursor, 'COUNT', 1000, 'JUSTID')[1]
  until cursor == '0-0'
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', stream, 'readers')) do
    local of = fields(consumer)
    if of.name ~= member then redis.call('XGROUP', 'DELCONSUMER', stream, 'readers', of.name) end
  end
  -- A dead owner was handling the first of its messages, which may have caused its death, so that counts as a failure.
  if redis.call('HDEL', try, 'released') == 0 then
    local first = redis.call('XPENDING', stream, 'readers', '-', '+', 1)[1]
    if first then redis.call('HINCRBY', try, first[1], 1) end
  end
end

local found, free = {{share}}, {}
for part = 0, parts - 1 do
  local owner = redis.call('GET', key('own', inbox, part))
  if owner == member then
    redis.call('PEXPIRE', key('own', inbox, part), lease)
    found[#found + 1] = {part, 0}
  elseif not owner then
    free[#free + 1] = part
  end
end
for _, part in ipairs(free) do
  if #found - 1 >= share then break end
  take(part)
  found[#found + 1] = {part, 1}
end
return found
