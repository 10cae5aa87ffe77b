-- Returns the next messages of partitions that the member owns: unconfirmed ones after an id, or else new ones.
local inbox, member, count = ARGV[3], ARGV[4], ARGV[5]
local found = {}
for i = 6, #ARGV, 2 do
  local part, after = ARGV[i], ARGV[i + 1]
  if redis.call('GET', key('own', inbox, part)) ~= member then
    found[#found + 1] = {part}
  else
    local function read(from)
      local read = redis.call('XREADGROUP', 'GROUP', 'readers', member, 'COUNT', count, 'STREAMS', key('in', inbox, part), from)
      return read and read[1] and read[1][2] or {}
    end
    local entries = read(after)
    if #entries == 0 then entries = read('>') end
    for _, entry in ipairs(entries) do
      if entry[2] then
        local of = fields(entry[2])
        local tries = redis.call('HGET', key('try', inbox, part), entry[1]) or '0'
        found[#found + 1] = {part, entry[1], of.s, of.e, of.m, tries}
      end
    end
  end
end
return found
