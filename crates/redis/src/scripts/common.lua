-- Functions that all scripts of the bus share. ARGV[1] is the prefix of all keys, ARGV[2] the most dead letters that are kept.
local P, DEAD = ARGV[1], ARGV[2]

local function key(kind, inbox, part)
  return P .. kind .. ':' .. inbox .. ':' .. part
end

local function bury(body, seq, cause)
  redis.call('XADD', P .. 'dead', 'MAXLEN', DEAD, '*', 'm', body, 's', seq, 'c', cause)
end

-- Returns the fields of a stream's entry: m the message, s its number, e the time at which it expires.
local function fields(entry)
  local found = {}
  for i = 1, #entry, 2 do found[entry[i]] = entry[i + 1] end
  return found
end

-- Returns the number of partitions and the agent of an inbox; nil if it does not exist.
local function known(inbox)
  local info = redis.call('HGET', P .. 'inboxes', inbox)
  if not info then return nil end
  local parts, agent = string.match(info, '^(%d+) (.*)$')
  return tonumber(parts), agent
end

-- Removes an inbox; the messages that wait in it become dead letters.
local function forget(inbox)
  local parts, agent = known(inbox)
  if not parts then return end
  for part = 0, parts - 1 do
    for _, entry in ipairs(redis.call('XRANGE', key('in', inbox, part), '-', '+')) do
      local of = fields(entry[2])
      bury(of.m, of.s, 'unsubscribed')
    end
    redis.call('DEL', key('in', inbox, part), key('own', inbox, part), key('try', inbox, part))
  end
  redis.call('HDEL', P .. 'inboxes', inbox)
  redis.call('SREM', P .. 'of:' .. agent, inbox)
  for _, kind in ipairs(redis.call('SMEMBERS', P .. 'also:' .. inbox)) do
    redis.call('SREM', P .. 'kind:' .. kind, inbox)
  end
  redis.call('DEL', P .. 'also:' .. inbox, P .. 'members:' .. inbox, P .. 'alive:' .. inbox)
end
