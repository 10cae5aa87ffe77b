//! Kill within a write: what the death of a process or a power cut leaves of the last records is cut off, and the
//! run goes on from there.

use std::{fs, ops::Range, path::Path, sync::Arc};

use archon::types::{Record, RecordBody};

use crate::crash::kill::{check_resumed, essence, is_full, killable, log, seed, undisturbed};

// spec: S-14
#[test]
fn kill_within_a_write_of_the_file_journal_loses_nothing_that_was_acted_on() {
    kill_at_random_bytes("jsonl");
}

// spec: S-14
#[test]
fn kill_within_a_write_of_the_sqlite_journal_loses_nothing_that_was_acted_on() {
    kill_at_random_bytes("sqlite");
}

/// 200 places, of which CI takes a seeded sample.
fn kill_at_random_bytes(kind: &str) {
    let records = undisturbed(kind);
    let expected = essence(&records);
    let mut random = Random(seed());
    for n in 0..if is_full() { 200 } else { 6 } {
        let kill_at = random.below(2..records.len());
        let dir = tempfile::tempdir().expect("a directory");
        assert!(!killable(dir.path(), kind, "start", Some(kill_at as u64)).status.success());
        let place = format!("{kind}, case {n}, record {kill_at}");
        let what = tear(dir.path(), kind, &records[..=kill_at], &mut random);
        // Who dies while it writes a record has not noted that it is there.
        _ = fs::remove_file(dir.path().join("runs").join("victim.lock"));
        let place = format!("{place}, {what}");
        let torn = fs::read(dir.path().join("runs").join("victim.jsonl")).unwrap_or_default();
        let resumed = killable(dir.path(), kind, "resume", None);
        if kind == "jsonl" && !resumed.status.success() {
            // The end may be that of a call that had its effect, so nothing goes on by itself, and nothing is lost.
            let said = String::from_utf8_lossy(&resumed.stderr).into_owned();
            assert!(said.contains("may be the start of a tool call that had its effect"), "{place}: {said}");
            let line = torn.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            let text = String::from_utf8_lossy(line);
            assert!(text.contains("\"type\":\"tool_c") || text.len() < 75, "{place}: {text}");
            assert_eq!(
                fs::read(dir.path().join("runs").join("victim.jsonl")).unwrap_or_default(),
                torn,
                "{place}"
            );
            continue;
        }
        assert!(resumed.status.success(), "{place}: {}", String::from_utf8_lossy(&resumed.stderr));
        let after = log(dir.path(), kind);
        assert!(after.iter().map(|r| r.seq).eq(0..after.len() as u64), "{place}");
        assert!(matches!(after.last().map(|r| &r.body), Some(RecordBody::RunFinished(_))), "{place}");
        check_resumed(&place, dir.path(), &after, &expected);
    }
}

/// Damages the end of a log as a crash may: cuts it at a random byte of what was not on the medium yet, or of the
/// record that was being written, or, in a write-ahead log, overwrites a byte there.
fn tear(dir: &Path, kind: &str, records: &[Arc<Record>], random: &mut Random) -> String {
    let (path, ends) = match kind {
        "jsonl" => (dir.join("runs").join("victim.jsonl"), line_ends as fn(&[u8]) -> Vec<usize>),
        _ => (dir.join("runs.db-wal"), commit_ends as fn(&[u8]) -> Vec<usize>),
    };
    let mut bytes = fs::read(&path).expect("the log is a file");
    let ends = ends(&bytes);
    let end = *ends.last().expect("something was written");
    // The write-ahead log may begin behind the first records, but it ends with the last one.
    let end_of = |seq: usize| (seq + ends.len()).checked_sub(records.len()).map(|n| ends[n]);
    let (_, before) = records.split_last().expect("records");
    let synced = before.iter().rposition(|r| r.body.needs_sync()).unwrap_or(0).max(1);
    let whole = end_of(synced).unwrap_or(WAL_HEADER);
    // A line of a file with its newline is never torn.
    if kind == "jsonl" || random.below(0..2) == 0 {
        let cut = random.below(whole..end);
        bytes.truncate(cut);
        fs::write(&path, &bytes).expect("the file can be cut");
        return format!("cut at byte {cut} of {end}");
    }
    let at = random.below(whole..end);
    bytes[at] ^= 1;
    fs::write(&path, &bytes).expect("the file can be changed");
    format!("byte {at} of {end} changed")
}

/// Where each line of a log ends.
fn line_ends(log: &[u8]) -> Vec<usize> {
    log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect()
}

/// Where each transaction of a write-ahead log ends, as <https://sqlite.org/fileformat2.html#walformat> says: a
/// header with the size of a page and two salts, then frames; the last frame of a transaction holds the size of the
/// database, and frames with other salts are left from before.
fn commit_ends(log: &[u8]) -> Vec<usize> {
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let frame = 24 + number(8) as usize;
    (0..(log.len() - WAL_HEADER) / frame)
        .map(|n| WAL_HEADER + n * frame)
        .take_while(|at| log[at + 8..at + 16] == log[16..24])
        .filter(|at| number(at + 4) != 0)
        .map(|at| at + frame)
        .collect()
}

const WAL_HEADER: usize = 32;

/// A row of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, range: Range<usize>) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = z ^ (z >> 31);
        range.start + usize::try_from(z % range.len() as u64).expect("small")
    }
}
