-- Returns the entries of a run, of a tenant, due at a time, or all. ARGV: prefix, by, value.
local P, by, value = ARGV[1], ARGV[2], ARGV[3]
local found = {}
if by == 'run' then
  local all = redis.call('HGETALL', P .. 'run:' .. value)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 1) == 'b' then found[#found + 1] = all[i + 1] end
  end
  return found
end
local members
if by == 'tenant' then
  members = redis.call('ZRANGE', P .. 'tenant:' .. value, 0, -1)
elseif by == 'due' then
  members = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', value)
else
  members = redis.call('ZRANGE', P .. 'all', 0, -1)
end
for _, member in ipairs(members) do
  local zero = string.find(member, '\0', 1, true)
  local body = redis.call('HGET', P .. 'run:' .. string.sub(member, 1, zero - 1), 'b' .. string.sub(member, zero + 1))
  if body then found[#found + 1] = body end
end
return found
