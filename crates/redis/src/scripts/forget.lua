-- Takes an inbox away.
forget(ARGV[3])
return 0
