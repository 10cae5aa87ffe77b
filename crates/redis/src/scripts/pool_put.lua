-- Replaces all entries of a run. ARGV: prefix, run, then for each entry request, tenant, created, expires, body.
local P, run = ARGV[1], ARGV[2]
local here = P .. 'run:' .. run
local old = redis.call('HGETALL', here)
for i = 1, #old, 2 do
  local request = string.match(old[i], '^t(.*)$')
  if request then
    local member = run .. '\0' .. request
    redis.call('ZREM', P .. 'tenant:' .. old[i + 1], member)
    redis.call('ZREM', P .. 'all', member)
    redis.call('ZREM', P .. 'due', member)
  end
end
redis.call('DEL', here)
for i = 3, #ARGV, 5 do
  local request, tenant, created, expires = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local member = run .. '\0' .. request
  redis.call('HSET', here, 't' .. request, tenant, 'b' .. request, ARGV[i + 4])
  redis.call('ZADD', P .. 'tenant:' .. tenant, created, member)
  redis.call('ZADD', P .. 'all', created, member)
  if expires ~= '' then redis.call('ZADD', P .. 'due', expires, member) end
end
return 0
