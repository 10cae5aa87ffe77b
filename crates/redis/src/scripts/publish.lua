-- Adds a message to all inboxes that it is for, or to none of them.
local body, sender, receiver, kind, everybody = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'
local hash, expires, capacity = tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[10])
local echo, correlation = ARGV[11] == '1', ARGV[12]

if correlation ~= '' then
  local asker = redis.call('GET', P .. 'expect:' .. correlation)
  if asker == 'late' then
    bury(body, redis.call('INCR', P .. 'seq'), 'late')
    return {'late'}
  end
  if asker == 'by ' .. receiver then
    local seq = redis.call('INCR', P .. 'seq')
    redis.call('DEL', P .. 'expect:' .. correlation)
    redis.call('RPUSH', P .. 'answer:' .. correlation, seq .. ' ' .. body)
    redis.call('PEXPIRE', P .. 'answer:' .. correlation, 600000)
    return {'ok'}
  end
end

local meant, is_in = {}, {}
local function add(inboxes)
  for _, inbox in ipairs(inboxes) do
    if not is_in[inbox] then
      is_in[inbox] = true
      meant[#meant + 1] = inbox
    end
  end
end
if everybody then
  add(redis.call('HKEYS', P .. 'inboxes'))
else
  add(redis.call('SMEMBERS', P .. 'of:' .. receiver))
  add(redis.call('SMEMBERS', P .. 'kind:' .. kind))
end

local streams, heard = {}, false
for _, inbox in ipairs(meant) do
  local parts, agent = known(inbox)
  if parts and string.sub(inbox, 1, 2) == 's:' and redis.call('EXISTS', P .. 'alive:' .. inbox) == 0 then
    -- The process of its reader has died.
    forget(inbox)
  elseif parts and (echo or not everybody or agent ~= sender) then
    local stream = key('in', inbox, hash % parts)
    if redis.call('XLEN', stream) >= capacity then return {'full', agent} end
    streams[#streams + 1] = stream
    heard = heard or everybody or agent == receiver
  end
end

local seq = redis.call('INCR', P .. 'seq')
for _, stream in ipairs(streams) do
  redis.call('XADD', stream, '*', 'm', body, 's', seq, 'e', expires)
end
if not heard then
  bury(body, seq, 'undeliverable')
  return {'undeliverable'}
end
return {'ok'}
