//! Retention: replaces old runs by a one-line summary each, and keeps important runs whole.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use archon_types::{
    JournalError, RecordBody, Removed, RunError, RunFilter, RunHead, RunId, RunStatus, Timestamp,
};
use archon_views::AuditTrail;
use serde_json::json;

use super::Runs;

impl Runs {
    /// Deletes ended runs that were last written before `before`, as [`prune`](archon_types::ManageRuns::prune) does.
    /// Before that, it appends one line of JSON for each of these runs to a file: the head of the run, its agent, its
    /// number of turns and its spending.
    ///
    /// The following runs are kept whole: runs that failed, runs in which a person was asked, runs for which
    /// `is_important` returns true, runs whose log cannot be read, and the child runs and branches of all runs that
    /// are kept. A run may get its line but not be deleted, for instance because another run needs it. The next time,
    /// it gets another line only if its summary has changed.
    ///
    /// ```
    /// use archon::{Runs, types::{RunError, Timestamp}};
    ///
    /// async fn tidy(runs: &Runs, before: Timestamp) -> Result<(), RunError> {
    ///     let file = std::path::Path::new("data/summaries.jsonl");
    ///     let removed = runs.prune_with_summaries(before, file, |head| head.task.contains("refund")).await?;
    ///     println!("{} runs are a line each now", removed.runs.len());
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The journal cannot be listed, or does not support deletion; or the file cannot be read or written, and then
    /// nothing is deleted.
    pub async fn prune_with_summaries(
        &self,
        before: Timestamp,
        file: &Path,
        is_important: impl Fn(&RunHead) -> bool + Send,
    ) -> Result<Removed, RunError> {
        let (mut kept, mut old) = (HashSet::new(), Vec::new());
        for head in self.archon().journal.list(&RunFilter::all()).await? {
            let is_old = head.status.has_ended() && head.updated_at < before;
            let matters = !is_old || head.status == RunStatus::Failed || is_important(&head);
            let summary = if matters { None } else { self.summary(&head).await };
            match summary {
                Some(summary) => old.push((head, summary)),
                None => _ = kept.insert(head.run_id),
            }
        }
        let old = without_parts(old, kept);
        let lines: Vec<&str> = old.iter().map(|(_, line)| line.as_str()).collect();
        add_lines(file, &lines).map_err(|source| JournalError::Storage {
            action: "write",
            place: file.display().to_string(),
            source,
        })?;
        self.remove(old.into_iter().map(|(head, _)| head.run_id).collect()).await
    }

    /// Returns the line about a run; `None` if a person was asked in it, or if its log cannot be read.
    async fn summary(&self, head: &RunHead) -> Option<String> {
        let records = self.archon().journal.read(&head.run_id).await.ok()?;
        let trail = AuditTrail::of(&records)?;
        if trail.questions().next().is_some() {
            return None;
        }
        let outcome = records.iter().rev().find_map(|record| match &record.body {
            RecordBody::RunFinished(outcome) => Some(outcome),
            _ => None,
        })?;
        let (turns, spent) = (outcome.turns, outcome.spending());
        Some(json!({ "run": head, "agent": trail.agent, "turns": turns, "spent": spent }).to_string())
    }
}

/// Returns the old runs without those that are a child run or a branch of a kept run, directly or indirectly.
fn without_parts(mut old: Vec<(RunHead, String)>, mut kept: HashSet<RunId>) -> Vec<(RunHead, String)> {
    loop {
        let is_part = |(head, _): &(RunHead, String)| {
            [&head.called_by, &head.branch_of].into_iter().flatten().any(|run| kept.contains(run))
        };
        let (parts, rest): (Vec<_>, Vec<_>) = old.into_iter().partition(is_part);
        if parts.is_empty() {
            return rest;
        }
        kept.extend(parts.into_iter().map(|(head, _)| head.run_id));
        old = rest;
    }
}

/// Appends the lines that a file does not contain yet. When this function returns, they are on the storage medium.
fn add_lines(file: &Path, lines: &[&str]) -> io::Result<()> {
    let mut missing: HashSet<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
    let earlier = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        earlier => earlier?,
    };
    for line in earlier.split(|byte| *byte == b'\n') {
        missing.remove(line);
    }
    let new = lines.iter().filter(|line| missing.contains(line.as_bytes()));
    let mut text: String = new.flat_map(|line| [*line, "\n"]).collect();
    if text.is_empty() {
        return Ok(());
    }
    if earlier.last().is_some_and(|byte| *byte != b'\n') {
        // A crash cut off the last line.
        text.insert(0, '\n');
    }
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.create(true).append(true).open(file)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_lines_after_a_line_that_was_cut_off_begins_a_new_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("summaries.jsonl");
        add_lines(&file, &["one", "two"]).unwrap();
        fs::write(&file, "one\ntw").unwrap();
        add_lines(&file, &["one", "two", "three"]).unwrap();
        add_lines(&file, &["three"]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntw\ntwo\nthree\n");
    }
}
