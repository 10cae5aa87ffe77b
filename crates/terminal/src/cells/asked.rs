//! A question to a person, with its answer.

use archon_types::{Answer, ApprovalRequest, CallId, PLAN_TOOL, one_line};

use crate::{
    row::Row,
    theme::{Look, Page},
    wrap,
};

/// A question to a person. While the question is open, the program shows it with the keys that answer it; afterwards,
/// this cell shows the question and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedCell {
    /// The call that the question is about.
    pub call: CallId,
    /// The question.
    pub request: ApprovalRequest,
    /// The answer; `None` while the question is open, and also if a closed question has no answer in this run's log,
    /// such as a question of a child run. A cell without an answer has no rows.
    pub answer: Option<Answer>,
}

/// The maximum number of characters of a question or of an answer.
const SHOWN: usize = 400;

impl AskedCell {
    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let Some((look, answer)) = self.answer.as_ref().map(describe) else { return Vec::new() };
        let mut summary = self.request.action_summary.as_str();
        if self.request.details["tool"] == PLAN_TOOL {
            // The plan itself was shown with the question.
            summary = summary.lines().next().unwrap_or_default();
        }
        let question = format!("? {}", one_line(summary, SHOWN));
        let style = page.theme.style(look);
        let mut rows = wrap::rows(&question, page.theme.style(Look::Plain), page.width);
        let room = rows.last().map_or(0, |last| page.width.saturating_sub(last.width()));
        let answer = format!("  {answer}");
        match rows.last_mut() {
            Some(last) if crate::row::width(&answer) <= room => last.push(answer, style),
            _ => rows.extend(wrap::rows(&answer, style, page.width)),
        }
        rows
    }
}

fn describe(answer: &Answer) -> (Look, String) {
    let because = |text: &str, reason: &str| match reason.trim() {
        "" => text.to_owned(),
        reason => format!("{text}: {}", one_line(reason, SHOWN)),
    };
    match answer {
        Answer::Approve => (Look::Good, "yes".to_owned()),
        Answer::Edit { arguments } => {
            (Look::Good, because("yes, with other arguments", &arguments.to_string()))
        }
        Answer::Trust { rules } => (Look::Good, because("yes, from now on", &rules.join(", "))),
        Answer::Reply { text } => (Look::Good, because("answered", text)),
        Answer::Cancel { reason } => (Look::Warning, because("no", reason)),
        Answer::Expired => (Look::Warning, "nobody answered in time".to_owned()),
        Answer::Withdrawn { reason } => (Look::Warning, because("withdrawn", reason)),
        _ => (Look::Dim, "answered".to_owned()),
    }
}
