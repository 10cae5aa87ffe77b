//! What may happen to the files of a run while nobody works on it.

use std::{fs, ops::Range, path::PathBuf};

use archon_testkit::Chance;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Damage {
    /// A bit anywhere.
    BitFlipped,
    /// A bit of the last two records.
    BitFlippedLate,
    /// Cut within a record, anywhere.
    Cut,
    /// Cut within one of the last two records.
    CutLate,
    ZerosBehind,
    /// Zeros in place of the end.
    ZerosAtEnd,
    LineDoubled,
    LineLost,
    /// Whole lines are gone from the end.
    EndLost,
    Crlf,
    ForeignLine,
    Emptied,
    LockRemoved,
    BlobRemoved,
    BlobCut,
    BlobFlipped,
    BlobSwapped,
}

impl Damage {
    pub(crate) const ALL: [Self; 17] = [
        Self::BitFlipped,
        Self::CutLate,
        Self::ZerosAtEnd,
        Self::BlobRemoved,
        Self::LineLost,
        Self::BitFlippedLate,
        Self::Emptied,
        Self::LineDoubled,
        Self::BlobSwapped,
        Self::Cut,
        Self::ForeignLine,
        Self::EndLost,
        Self::ZerosBehind,
        Self::BlobFlipped,
        Self::Crlf,
        Self::LockRemoved,
        Self::BlobCut,
    ];

    pub(crate) fn is_of_blob(self) -> bool {
        matches!(self, Self::BlobRemoved | Self::BlobCut | Self::BlobFlipped | Self::BlobSwapped)
    }
}

/// The log of a run, and what stands beside it.
pub(crate) struct Files {
    pub(crate) log: PathBuf,
    pub(crate) before: Vec<u8>,
    pub(crate) blobs: Vec<PathBuf>,
    /// The first record that is not as it was, if there is one.
    pub(crate) damaged: Option<usize>,
}

impl Files {
    pub(crate) fn of(log: PathBuf) -> Self {
        let before = fs::read(&log).unwrap();
        let blobs = fs::read_dir(log.with_extension("blobs")).into_iter().flatten().flatten();
        let mut blobs: Vec<PathBuf> = blobs.map(|entry| entry.path()).collect();
        blobs.sort();
        Self { log, before, blobs, damaged: None }
    }

    /// The lines of the log with their ends; the last may have none.
    pub(crate) fn lines(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let lines = self.before.split_inclusive(|byte| *byte == b'\n').map(|line| {
            start += line.len();
            start - line.len()..start
        });
        lines.collect()
    }

    /// Does it, and returns where; none where there is nothing that it could be done to.
    pub(crate) fn damage(&mut self, damage: Damage, chance: &mut Chance) -> Option<String> {
        let at = self.change(damage, chance)?;
        let after = fs::read(&self.log).unwrap();
        let same = self.before.iter().zip(&after).take_while(|(a, b)| a == b).count();
        let changed = same < self.before.len().max(after.len());
        self.damaged = changed.then(|| self.before[..same].iter().filter(|byte| **byte == b'\n').count());
        Some(at)
    }

    fn change(&self, damage: Damage, chance: &mut Chance) -> Option<String> {
        if damage.is_of_blob() {
            return self.damage_blob(damage, chance);
        }
        let (mut bytes, lines) = (self.before.clone(), self.lines());
        let end = bytes.len();
        let mut below = |n: usize| usize::try_from(chance.below(n as u64)).unwrap();
        let late = lines[lines.len().saturating_sub(2)].start;
        let at = match damage {
            Damage::BitFlipped | Damage::BitFlippedLate => {
                let from = if damage == Damage::BitFlipped { 0 } else { late };
                let at = from + below(end - from);
                bytes[at] ^= 1 << below(8);
                at
            }
            Damage::Cut | Damage::CutLate => {
                let from = if damage == Damage::Cut { 0 } else { late };
                let at = from + below(end - from);
                // Between two records the end is lost, and that is another damage.
                let at = if lines.iter().any(|line| line.start == at) { at + 1 } else { at };
                bytes.truncate(at);
                at
            }
            Damage::ZerosBehind => {
                bytes.resize(end + 1 + below(4_096), 0);
                end
            }
            Damage::ZerosAtEnd => {
                let at = late + below(end - late);
                bytes[at..].fill(0);
                at
            }
            Damage::LineDoubled => {
                let line = lines[below(lines.len())].clone();
                let again = bytes[line.clone()].to_vec();
                bytes.splice(line.end..line.end, again);
                line.end
            }
            Damage::LineLost => {
                let line = lines[below(lines.len() - 1)].clone();
                bytes.drain(line.clone());
                line.start
            }
            Damage::EndLost => {
                let at = lines[(lines.len() - 1 - below(2)).max(1)].start;
                bytes.truncate(at);
                at
            }
            Damage::Crlf => {
                bytes = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
                0
            }
            Damage::ForeignLine => {
                let foreign: [&[u8]; 3] = [b"Hello.\n", b"{\"seq\":1,\"type\":\"hint_added\"}\n", b"\n"];
                let at = lines[below(lines.len())].end;
                bytes.splice(at..at, foreign[below(3)].iter().copied());
                at
            }
            Damage::Emptied => {
                bytes.clear();
                0
            }
            Damage::LockRemoved => {
                // A writer that was killed leaves it there.
                fs::remove_file(self.log.with_extension("lock")).ok()?;
                return Some("its lock".to_owned());
            }
            _ => return None,
        };
        fs::write(&self.log, bytes).unwrap();
        Some(format!("byte {at} of {end}"))
    }

    fn damage_blob(&self, damage: Damage, chance: &mut Chance) -> Option<String> {
        let blob = self.blobs.first()?;
        let mut bytes = fs::read(blob).unwrap();
        let at = usize::try_from(chance.below(bytes.len() as u64)).unwrap();
        match damage {
            Damage::BlobRemoved => fs::remove_file(blob).unwrap(),
            Damage::BlobCut => fs::write(blob, &bytes[..at]).unwrap(),
            Damage::BlobSwapped => fs::copy(self.blobs.get(1)?, blob).map(|_| ()).unwrap(),
            _ => {
                bytes[at] ^= 1 << chance.below(8);
                fs::write(blob, bytes).unwrap();
            }
        }
        Some(format!("{}, byte {at}", blob.display()))
    }
}
