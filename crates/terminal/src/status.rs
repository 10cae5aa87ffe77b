//! The status line below the draft.

use archon_types::SessionMode;

use crate::{
    cells::Meter,
    composer::ViMode,
    row::Row,
    theme::{Look, Page},
    work::Work,
    wrap,
};

/// The content of the status line.
///
/// ```
/// use archon_terminal::{Meter, Page, Status, Theme, Work};
/// use archon_types::SessionMode;
///
/// let meter = Meter::default();
/// let (mode, branch) = (SessionMode::Plan, Some("main"));
/// let status = Status {
///     meter: &meter,
///     model: "gpt-5-mini",
///     vi: None,
///     mode,
///     work: Work::Model,
///     branch,
///     is_sandboxed: true,
///     questions: 0,
/// };
/// let page = Page::new(79, Theme::new(true));
/// assert_eq!(status.row(&page).text(), "plan mode · gpt-5-mini · main · sandbox · the model works, Esc stops it");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Status<'a> {
    /// Tokens, money and context used by the conversation.
    pub meter: &'a Meter,
    /// The model for the next message; shown while the conversation has no run.
    pub model: &'a str,
    /// The mode of vi keys; `None` without them.
    pub vi: Option<ViMode>,
    /// The mode of the session, which the line names unless it is [`SessionMode::Ask`].
    pub mode: SessionMode,
    /// The present work of the conversation.
    pub work: Work,
    /// The branch of the folder's git repository; `None` shows no branch.
    pub branch: Option<&'a str>,
    /// True if commands run in a sandbox.
    pub is_sandboxed: bool,
    /// The number of open questions.
    pub questions: usize,
}

impl Status<'_> {
    /// Returns the status line, cut to the width of the page.
    pub fn row(&self, page: &Page) -> Row {
        let model = if self.meter.model.is_empty() { self.model } else { &self.meter.model };
        let questions = match self.questions {
            0 => None,
            1 => Some("1 question waits".to_owned()),
            many => Some(format!("{many} questions wait")),
        };
        let parts = [
            self.vi.map(|vi| format!("vi: {}", vi.name())),
            mode(self.mode).map(str::to_owned),
            Some(model.to_owned()).filter(|model| !model.is_empty()),
            self.meter.share().map(|share| format!("{share} %")),
            self.meter.money(),
            self.branch.map(str::to_owned),
            self.is_sandboxed.then(|| "sandbox".to_owned()),
            questions,
            working(self.work, if self.vi == Some(ViMode::Insert) { "Esc Esc" } else { "Esc" }),
        ];
        let line = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        let line = crate::row::harmless(&line).into_owned();
        Row::of(wrap::one_row(&line, page.width), Look::Dim, page)
    }
}

fn mode(mode: SessionMode) -> Option<&'static str> {
    match mode {
        SessionMode::AcceptEdits => Some("edits accepted"),
        SessionMode::Plan => Some("plan mode"),
        _ => None,
    }
}

/// Returns the work as text, with the keys that stop it.
fn working(work: Work, keys: &str) -> Option<String> {
    match work {
        Work::Model => Some(format!("the model works, {keys} stops it")),
        Work::Tools => Some(format!("tools run, {keys} stops them")),
        Work::Elsewhere => Some("watching a run of another process".to_owned()),
        _ => None,
    }
}
