//! Notices for a person who looks elsewhere: decides when they are due, and makes the bytes of a notice on the
//! desktop.

use std::time::Duration;

use archon_types::{ApprovalRequest, Timestamp, is_hidden};

use crate::ansi::{BEGIN_NOTICE, BELL};

/// A person who pressed no key for this time may look elsewhere.
const AWAY: Duration = Duration::from_secs(5);
/// The end of work is worth a notice if the work took at least this time.
const LONG: Duration = Duration::from_secs(10);
/// The maximum number of characters of a text that the desktop shows.
const MOST: usize = 80;

/// The reason for a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A question waits for its answer.
    Question,
    /// Work of at least 10 seconds has ended.
    End,
}

/// Decides when a person gets a notice: only if no key was pressed for 5 seconds. The notice about a question waits
/// until these 5 seconds have passed; a key that is pressed meanwhile cancels the notice, because the person is there.
///
/// ```
/// use archon_terminal::{Notice, Notifier};
/// use archon_types::Timestamp;
///
/// let at = |second: u64| Timestamp::from_millis(1_000 * second);
/// let mut notifier = Notifier::new(at(0));
/// assert_eq!(notifier.observe(None, true, at(1)), None);
/// assert_eq!(notifier.observe(None, false, at(12)), Some(Notice::End));
/// ```
#[derive(Clone, Debug)]
pub struct Notifier {
    key_at: Timestamp,
    work_since: Option<Timestamp>,
    /// The id of the question on the screen.
    question: Option<String>,
    /// True if the person may not have seen the question.
    is_unseen: bool,
}

impl Notifier {
    /// Creates a notifier for a person who begins the conversation at this time.
    pub const fn new(at: Timestamp) -> Self {
        Self { key_at: at, work_since: None, question: None, is_unseen: false }
    }

    /// Records that the person pressed a key at this time.
    pub fn note_key(&mut self, at: Timestamp) {
        self.key_at = at;
        self.is_unseen = false;
    }

    /// Returns the notice that is due at this time. `question` is the question on the screen, and `is_at_work` is true
    /// while a run works. Call it after each change, and at the time that [`due`](Self::due) returns.
    pub fn observe(
        &mut self,
        question: Option<&ApprovalRequest>,
        is_at_work: bool,
        at: Timestamp,
    ) -> Option<Notice> {
        let id = question.map(|question| question.request_id.as_str());
        if self.question.as_deref() != id {
            self.question = id.map(str::to_owned);
            self.is_unseen = id.is_some();
        }
        let is_away = at.since(self.key_at) >= AWAY;
        let has_ended = self.has_ended(is_at_work && question.is_none(), at);
        match question {
            Some(_) if self.is_unseen && is_away => {
                self.is_unseen = false;
                Some(Notice::Question)
            }
            None if has_ended && is_away => Some(Notice::End),
            _ => None,
        }
    }

    /// Returns the time at which the notice about the open question is due, unless a key is pressed before; `None` if
    /// no such notice waits.
    pub fn due(&self) -> Option<Timestamp> {
        self.is_unseen.then(|| self.key_at + AWAY)
    }

    /// Returns true if work of at least [`LONG`] ends at this time. Notes the time at which work begins.
    fn has_ended(&mut self, is_at_work: bool, at: Timestamp) -> bool {
        if is_at_work {
            self.work_since.get_or_insert(at);
            return false;
        }
        self.work_since.take().is_some_and(|since| at.since(since) >= LONG)
    }
}

/// Returns the bytes with which terminals that know OSC 9 show a text on the desktop. The text is cut to 80 characters
/// in one line without control characters. Begin it with a word: some terminals take a number for another command. The
/// bytes move no cursor and change no mode, so they may be written between two frames.
///
/// ```
/// assert_eq!(archon_terminal::desktop_notice("a\x1b\\b\n\x07c"), "\x1b]9;a \\b c\x07");
/// ```
pub fn desktop_notice(text: &str) -> String {
    let harmless = text.replace(is_hidden, " ");
    let line = harmless.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_long = line.chars().count() > MOST;
    let cut: String = if is_long { line.chars().take(MOST - 1).chain(['…']).collect() } else { line };
    format!("{BEGIN_NOTICE}{cut}{BELL}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: bool = true;
    const REST: bool = false;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(1_000 * second)
    }

    fn question(id: &str) -> ApprovalRequest {
        ApprovalRequest::new(id, "Run `ls`", serde_json::json!({}))
    }

    #[test]
    fn observe_of_a_question_gives_one_notice_as_soon_as_no_key_came_for_5_seconds() {
        let (one, two) = (question("approval_1"), question("approval_2"));
        let mut notifier = Notifier::new(at(0));
        notifier.note_key(at(100));
        assert_eq!(notifier.observe(None, WORK, at(102)), None);
        assert_eq!(notifier.due(), None);
        assert_eq!(notifier.observe(Some(&one), REST, at(103)), None);
        assert_eq!(notifier.due(), Some(at(105)));
        assert_eq!(notifier.observe(Some(&one), REST, at(105)), Some(Notice::Question));
        assert_eq!(notifier.observe(Some(&one), REST, at(106)), None);
        assert_eq!(notifier.due(), None);
        // Another terminal answers, and the next question follows at once.
        assert_eq!(notifier.observe(Some(&two), REST, at(107)), Some(Notice::Question));
    }

    #[test]
    fn observe_of_a_question_that_a_key_follows_gives_no_notice() {
        let one = question("approval_1");
        let mut notifier = Notifier::new(at(0));
        assert_eq!(notifier.observe(Some(&one), REST, at(3)), None);
        notifier.note_key(at(4));
        assert_eq!(notifier.due(), None);
        assert_eq!(notifier.observe(Some(&one), REST, at(60)), None);
        // It went away and comes back.
        assert_eq!(notifier.observe(None, WORK, at(61)), None);
        assert_eq!(notifier.observe(Some(&one), REST, at(62)), Some(Notice::Question));
    }

    #[test]
    fn observe_of_an_end_gives_a_notice_after_10_seconds_of_work_and_5_without_a_key() {
        for (begun, key, ended, expected) in
            [(1, 0, 11, Some(Notice::End)), (1, 0, 10, None), (1, 6, 11, Some(Notice::End)), (1, 7, 11, None)]
        {
            let mut notifier = Notifier::new(at(0));
            assert_eq!(notifier.observe(None, WORK, at(begun)), None);
            notifier.note_key(at(key));
            assert_eq!(notifier.observe(None, WORK, at(ended)), None);
            assert_eq!(notifier.observe(None, REST, at(ended)), expected, "{begun} {key} {ended}");
            assert_eq!(notifier.observe(None, REST, at(ended + 60)), None, "an end gives one notice at most");
        }
    }

    #[test]
    fn observe_of_a_question_at_the_end_of_work_gives_one_notice_and_work_begins_anew_behind_it() {
        let one = question("approval_1");
        let mut notifier = Notifier::new(at(0));
        assert_eq!(notifier.observe(None, WORK, at(1)), None);
        assert_eq!(notifier.observe(Some(&one), REST, at(20)), Some(Notice::Question));
        assert_eq!(notifier.observe(Some(&one), WORK, at(40)), None);
        assert_eq!(notifier.observe(None, WORK, at(41)), None);
        assert_eq!(notifier.observe(None, REST, at(50)), None, "9 seconds are not long");
    }

    #[test]
    fn desktop_notice_of_a_long_text_is_cut() {
        let notice = desktop_notice(&"\u{9c}ä\u{202e}".repeat(100));
        let text = notice.strip_prefix("\x1b]9;").and_then(|rest| rest.strip_suffix('\x07')).unwrap();
        assert!(text.starts_with("ä ä ") && text.ends_with('…'), "{text}");
        assert_eq!(text.chars().count(), 80);
        assert!(!text.contains(is_hidden), "{text:?}");
    }
}
