//! Occurrences of random schedules, compared with a walk over all minutes by another implementation of time zones.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use archon_testkit::{Chance, cases, first_seed, may_skip};
use archon_triggers::Cron;
use archon_types::Timestamp;

const ZONES: [&str; 5] =
    ["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "America/Santiago"];

/// 2024-01-01.
const START: u64 = 1_704_067_200;

const DAY: u64 = 86_400;

fn pick<'a>(chance: &mut Chance, from: &[&'a str]) -> &'a str {
    from[usize::try_from(chance.below(from.len() as u64)).unwrap()]
}

fn pattern(chance: &mut Chance) -> String {
    let minute = pick(chance, &["0", "30", "15,45", "*/20", "7", "10-50/20", "59", "0,1"]);
    let hour = pick(chance, &["*", "*/6", "2", "1-3", "0", "23", "8,20", "0-4/2"]);
    let day = pick(chance, &["*", "*", "1", "13,27", "*/2", "28-31"]);
    let month = pick(chance, &["*", "*", "*", "3,10", "4-9"]);
    let week = pick(chance, &["*", "*", "1-5", "0,6", "SUN", "7"]);
    format!("{minute} {hour} {day} {month} {week}")
}

/// Three years of 100 schedules with `ARCHON_ACCEPT=full`.
// spec: TR-03
#[test]
fn random_schedules_in_zones_with_changing_clocks_occur_as_a_walk_over_all_minutes_finds() {
    let (schedules, days) = (cases(10, 100), cases(400, 3 * 366));
    let end = START + days * DAY;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/oracle.py");
    let oracle = Command::new("python3")
        .args([script, &START.to_string(), &end.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut oracle) = oracle else {
        assert!(may_skip(), "python3 is missing, and this test may not be skipped");
        eprintln!("SKIP: there is no python3, whose time zones are compared with");
        return;
    };
    let mut chance = Chance(first_seed());
    let mut input = oracle.stdin.take().unwrap();
    for number in 0..schedules {
        let (zone, text) = (ZONES[usize::try_from(number).unwrap() % ZONES.len()], pattern(&mut chance));
        let cron = Cron::new(&text, zone).unwrap();
        let mut at = Timestamp::from_millis(START * 1000 - 1);
        let mut all = Vec::new();
        while let Some(next) = cron.next_after(at).filter(|next| next.as_millis() < end * 1000) {
            all.push((next.as_millis() / 1000).to_string());
            at = next;
        }
        writeln!(input, "{zone}\t{text}\t{}", all.join(",")).unwrap();
    }
    drop(input);
    let output = oracle.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    eprintln!("{schedules} schedules, {days} days: {text}");
    assert!(output.status.success(), "{text}");
}
