//! Finds the lines of a page of a log. Each line contains the number of its record, so the first line of the
//! page is found by bisection, without reading all lines before it. Nothing is stored between two pages, so a
//! log may grow, lose its end or be replaced meanwhile.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use crate::{files::open_file, line};

/// The first line of a log, and other lines with their numbers, all without the newline.
pub(super) type Lines = (Vec<u8>, VecDeque<(u64, Vec<u8>)>);

/// The size in bytes of a range in which the bisection stops and all lines are read instead. Each step of the
/// bisection reads about as many bytes.
const BLOCK: u64 = 8 * 1024;

/// Reads the first line of a log and its last `most` lines; with `before`, the last `most` lines before the
/// line with that number.
pub(super) fn lines_before(log: &Path, before: Option<u64>, most: usize) -> io::Result<Lines> {
    let mut reader = BufReader::new(open_file(log)?);
    match bisected(&mut reader, before, most)? {
        Some(lines) => Ok(lines),
        None => scanned(&mut reader, before, most),
    }
}

/// Finds the lines by their numbers. Returns `None` if a line on the way is damaged or has no number: then the
/// caller has to count the lines.
fn bisected(log: &mut (impl BufRead + Seek), before: Option<u64>, most: usize) -> io::Result<Option<Lines>> {
    log.seek(SeekFrom::Start(0))?;
    let Some(first) = next_line(log)?.filter(|first| line::number(first) == Some(0)) else { return Ok(None) };
    let Some((length, last)) = last_line(log)? else { return Ok(None) };
    let end = before.unwrap_or(u64::MAX).min(last.saturating_add(1));
    let start = end.saturating_sub(most as u64);
    let Some((offset, number)) = line_near(log, start, length)? else { return Ok(None) };
    log.seek(SeekFrom::Start(offset))?;
    let mut lines = VecDeque::new();
    for seq in number..end {
        let Some(line) = next_line(log)? else { break };
        if seq >= start {
            lines.push_back((seq, line));
        }
    }
    Ok(Some((first, lines)))
}

/// Returns the offset and the number of the line `wanted`, or of a line at most about one [`BLOCK`] and one
/// line before it. `length` is the length of all whole lines.
fn line_near(log: &mut (impl BufRead + Seek), wanted: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    let (mut low, mut number, mut high) = (0, 0, length);
    while high - low > BLOCK {
        let middle = low + (high - low) / 2;
        log.seek(SeekFrom::Start(middle))?;
        let start = middle + log.read_until(b'\n', &mut Vec::new())? as u64;
        if start < high {
            let found = next_line(log)?.and_then(|line| line::number(&line));
            let Some(found) = found else { return Ok(None) };
            if found <= wanted {
                (low, number) = (start, found);
                continue;
            }
        }
        // The first line that begins behind the middle is behind the wanted one, too.
        high = middle;
    }
    Ok(Some((low, number)))
}

/// Returns the length of all whole lines, and the number of the last one.
fn last_line(log: &mut (impl BufRead + Seek)) -> io::Result<Option<(u64, u64)>> {
    let length = log.seek(SeekFrom::End(0))?;
    let mut size = BLOCK;
    loop {
        let start = length.saturating_sub(size);
        log.seek(SeekFrom::Start(start))?;
        let mut text = Vec::new();
        log.by_ref().take(length - start).read_to_end(&mut text)?;
        let newline = |text: &[u8]| text.iter().rposition(|byte| *byte == b'\n');
        let end = newline(&text);
        let begin = end.and_then(|end| newline(&text[..end])).map(|newline| newline + 1);
        match (begin.or((start == 0).then_some(0)), end) {
            (Some(begin), Some(end)) => {
                let number = line::number(&text[begin..end]);
                return Ok(number.map(|number| (start + end as u64 + 1, number)));
            }
            _ if start == 0 => return Ok(None),
            _ => size = size.saturating_mul(2),
        }
    }
}

/// Finds the lines by counting from the beginning of the log. Keeps only the first line and the last `most`
/// lines in memory, and reads nothing after the last of them.
fn scanned(log: &mut (impl BufRead + Seek), before: Option<u64>, most: usize) -> io::Result<Lines> {
    log.seek(SeekFrom::Start(0))?;
    let (mut first, mut lines) = Lines::default();
    let end = before.unwrap_or(u64::MAX);
    for seq in 0..end.max(1) {
        let Some(line) = next_line(log)? else { break };
        if seq == 0 {
            first.clone_from(&line);
        }
        if seq < end {
            lines.push_back((seq, line));
        }
        if lines.len() > most {
            lines.pop_front();
        }
    }
    Ok((first, lines))
}

/// Returns the next line without its newline; `None` at the end, and for a line that is being written.
fn next_line(log: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    log.read_until(b'\n', &mut line)?;
    Ok(line.pop_if(|end| *end == b'\n').map(|_| line))
}

#[cfg(test)]
mod tests {
    use archon_types::Record;
    use serde_json::json;

    use super::*;
    use crate::blob;

    /// A log that counts the bytes that are read of it.
    struct CountedLog<'a> {
        log: io::Cursor<&'a [u8]>,
        bytes: usize,
    }

    impl Read for CountedLog<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.log.read(buffer)?;
            self.bytes += read;
            Ok(read)
        }
    }

    impl Seek for CountedLog<'_> {
        fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
            self.log.seek(place)
        }
    }

    /// Returns the lines of a log, each with its newline. `words` is the length of a line's text by its number.
    fn log_of(count: u64, words: impl Fn(u64) -> usize) -> Vec<Vec<u8>> {
        let line = |seq: u64| {
            let text = "word ".repeat(words(seq));
            let record = json!({ "seq": seq, "at": 1, "type": "hint_added", "text": text });
            let mut line = Vec::new();
            blob::encode(&mut line, &serde_json::from_value::<Record>(record).unwrap()).unwrap();
            line.push(b'\n');
            line
        };
        (0..count).map(line).collect()
    }

    fn numbered(lines: &[Vec<u8>], from: u64) -> VecDeque<(u64, Vec<u8>)> {
        (from..).zip(lines.iter().map(|line| line[..line.len() - 1].to_vec())).collect()
    }

    #[test]
    fn pages_of_a_long_log_together_read_less_than_twice_its_bytes() {
        const PAGE: usize = 2_000;
        let lines = log_of(20_000, |seq| seq as usize % 70);
        let log = lines.concat();
        let mut reader = BufReader::new(CountedLog { log: io::Cursor::new(&log), bytes: 0 });
        for (page, wanted) in (0_u64..).zip(lines.chunks(PAGE)) {
            let from = page * PAGE as u64;
            let (first, found) = bisected(&mut reader, Some(from + PAGE as u64), PAGE).unwrap().unwrap();
            assert_eq!(first, lines[0][..lines[0].len() - 1]);
            assert_eq!(found, numbered(wanted, from));
        }
        let read = reader.get_ref().bytes;
        assert!(read < 2 * log.len(), "{read} bytes of a log of {}", log.len());
        // The last record, which has the length of the log.
        let (_, found) = bisected(&mut reader, None, 1).unwrap().unwrap();
        assert_eq!(found, numbered(&lines[19_999..], 19_999));
        let more = reader.get_ref().bytes - read;
        assert!(more < log.len() / 10, "{more} bytes of a log of {}", log.len());
    }

    #[test]
    fn page_of_a_log_with_short_and_long_lines_and_a_torn_end_is_the_counted_one() {
        let lines = log_of(120, |seq| if seq % 7 == 3 { 12_000 } else { seq as usize });
        let whole = lines.concat();
        let torn = [&whole, &lines[3][..9_000]].concat();
        for log in [&whole[..], &torn, &whole[..whole.len() - 1]] {
            for before in [None, Some(0), Some(1), Some(4), Some(59), Some(119), Some(120), Some(500)] {
                for most in [0, 1, 2, 17, 119, 500] {
                    let found = bisected(&mut io::Cursor::new(log), before, most).unwrap().unwrap();
                    let counted = scanned(&mut io::Cursor::new(log), before, most).unwrap();
                    assert!(found == counted, "before {before:?}, most {most}, {} bytes", log.len());
                }
            }
        }
    }

    #[test]
    fn page_behind_damaged_lines_is_counted() {
        let mut lines = log_of(2_000, |_| 10);
        for line in &mut lines[500..1_500] {
            line[10] ^= 1;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.concat()).unwrap();
        assert!(bisected(&mut io::Cursor::new(lines.concat()), None, 100).unwrap().is_none());
        let (_, found) = lines_before(file.path(), None, 100).unwrap();
        assert_eq!(found, numbered(&lines[1_900..], 1_900));
    }

    #[test]
    fn page_of_a_log_that_was_cut_or_replaced_since_the_last_page_is_of_the_new_log() {
        let (long, other) = (log_of(2_000, |_| 10), log_of(900, |_| 3));
        let file = tempfile::NamedTempFile::new().unwrap();
        let page = || lines_before(file.path(), Some(1_500), 500).unwrap().1;
        for (lines, end) in [(&long, 2_000), (&long, 1_200), (&other, 900), (&long, 1_500)] {
            std::fs::write(file.path(), lines[..end].concat()).unwrap();
            let end = end.min(1_500);
            assert_eq!(page(), numbered(&lines[end - 500..end], end as u64 - 500));
        }
    }
}
