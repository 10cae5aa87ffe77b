"""Compares the occurrences of cron patterns with those that a walk over all minutes finds.

Reads lines `ZONE<TAB>PATTERN<TAB>SECONDS,SECONDS,...` (Unix times), for all minutes from START to END (arguments).
"""

import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

START, END = int(sys.argv[1]), int(sys.argv[2])
NAMES = {name: number for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}


def values(field, first, last):
    found = set()
    for part in field.split(","):
        part, _, step = part.partition("/")
        low, _, high = part.partition("-")
        if low == "*":
            low, high = first, last
        else:
            low = NAMES.get(low, low)
            high = NAMES.get(high, high) or (last if step else low)
        found.update(range(int(low), int(high) + 1, int(step or 1)))
    return found


class Pattern:
    def __init__(self, text):
        minute, hour, day, month, week = text.split()
        self.minutes, self.hours = values(minute, 0, 59), values(hour, 0, 23)
        self.days, self.months = values(day, 1, 31), values(month, 1, 12)
        self.week = {number % 7 for number in values(week, 0, 7)}
        self.both = day.startswith("*") or week.startswith("*")
        self.each_hour = hour.startswith("*")

    def has(self, local):
        year, month, day, hour, minute, week = local
        if minute not in self.minutes or hour not in self.hours or month not in self.months:
            return False
        in_month, in_week = day in self.days, week in self.week
        return in_month and in_week if self.both else in_month or in_week


def minutes(zone):
    """Returns (time, local time) for each minute."""
    zone = ZoneInfo(zone)
    walk = []
    for at in range(START, END, 60):
        local = datetime.fromtimestamp(at, zone)
        walk.append((at, (local.year, local.month, local.day, local.hour, local.minute, local.isoweekday() % 7)))
    return walk


def fields(at):
    return (at.year, at.month, at.day, at.hour, at.minute, at.isoweekday() % 7)


def occurrences(pattern, walk):
    if pattern.each_hour:
        return [at for at, local in walk if pattern.has(local)]
    found, seen, before = set(), set(), None
    for at, local in walk:
        now = datetime(*local[:5])
        if before is not None and now > before + timedelta(minutes=1):
            # The clocks skip these local times: they count as the first one after them.
            skipped = before + timedelta(minutes=1)
            while skipped < now:
                if pattern.has(fields(skipped)):
                    found.add(at)
                skipped += timedelta(minutes=1)
        if pattern.has(local) and local not in seen:
            found.add(at)
            seen.add(local)
        before = now
    return sorted(found)


walks, compared, wrong = {}, 0, 0
for line in sys.stdin:
    zone, text, given = line.rstrip("\n").split("\t")
    if zone not in walks:
        walks[zone] = minutes(zone)
    given = [int(at) for at in given.split(",") if at]
    expected = occurrences(Pattern(text), walks[zone])
    compared += len(expected)
    if given != expected:
        wrong += 1
        for at in sorted(set(given) ^ set(expected))[:5]:
            side = "only ours" if at in set(given) else "only the walk"
            print(f"{text} in {zone}: {datetime.fromtimestamp(at, timezone.utc)}: {side}")
print(f"{compared} occurrences compared, {wrong} schedules differ")
sys.exit(wrong > 0)
