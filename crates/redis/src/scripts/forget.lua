-- Removes an inbox.
forget(ARGV[3])
return 0
