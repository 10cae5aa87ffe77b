//! `/undo`, `/rewind` and `/redo`: take back what runs of the conversation changed in its folder.

use std::sync::Arc;

use archon::{
    RandomIds, Undo,
    snapshots::{Restored, SnapshotError},
    types::{
        Answer, ApprovalRequest, Approver, Decision, Ids, Record, RunFilter, RunStatus, SessionId, StartRuns,
    },
};
use serde_json::json;
use tokio::task::block_in_place;

use super::{Situation, Step};
use crate::{
    app::App,
    ask::Prompt,
    chat::history_of_session::newest,
    failure::Failure,
    undo::{OUT_OF_REACH, failed, nothing_to, of_run, report, rows},
};

/// The command, by the changes that it takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The last run that changed something.
    Undo,
    /// The last turns of that run.
    Rewind,
    /// The last undo.
    Redo,
}

/// A run with its changes to take back.
struct Found {
    undo: Undo,
    records: Vec<Arc<Record>>,
    preview: Restored,
}

/// Shows what will change, asks the person, and does it.
pub(super) fn run(way: Way, arguments: &str, situation: &Situation<'_>) -> Step {
    if !situation.is_at_rest {
        return Step::Refuse(
            "a run works, or waits for an answer: wait for its end or stop it with Esc, then try again"
                .to_owned(),
        );
    }
    let turns = match (way, arguments.parse::<u32>()) {
        (Way::Rewind, Ok(turns @ 1..)) => Some(turns),
        (Way::Rewind, _) => {
            return Step::Refuse(format!("write /rewind N with a number of turns, not {arguments:?}"));
        }
        _ => None,
    };
    let (app, session) = (situation.app.clone(), situation.session.cloned());
    situation.spawn(async move {
        let found = match &session {
            Some(session) => find(&app, session, way, turns).await?,
            None => None,
        };
        let Some(Found { undo, records, preview }) = found else {
            app.note(format!("there is nothing to {}", way.verb()));
            return Ok(());
        };
        if preview.is_empty() {
            report(&app, &preview, false);
            app.note(nothing_to(way.verb(), &preview, None));
        } else if is_agreed(&app, way, &preview).await {
            check_at_rest(&app, session.as_ref()).await?;
            let done = block_in_place(|| way.act(&undo, &records, turns)).map_err(|e| failed(&e))?;
            report(&app, &done, true);
            app.hint_if(
                way != Way::Redo,
                "/redo takes it back again; the agent does not know of it, so tell it in your next message",
            );
        } else {
            app.note("nothing was changed");
        }
        Ok(())
    });
    Step::Done
}

/// Finds the newest run of the session with changes that can be taken back. A run whose files are all left as they are
/// is skipped by `/undo`, which names these files; otherwise no earlier run could be undone.
async fn find(
    app: &App,
    session: &SessionId,
    way: Way,
    turns: Option<u32>,
) -> Result<Option<Found>, Failure> {
    let heads = app.runs()?.list(&RunFilter::of_session(session.clone()).top_level()).await?;
    let (mut failure, mut passed): (Option<Failure>, Option<Found>) = (None, None);
    for head in heads {
        let (undo, records) = match of_run(app, &head.run_id).await {
            Ok(found) => found,
            Err(why) => {
                failure = failure.or(Some(why));
                continue;
            }
        };
        let preview = block_in_place(|| way.preview(&undo, &records, turns)).map_err(|e| failed(&e))?;
        let found = Found { undo, records, preview };
        if !found.preview.is_empty() {
            if let Some(Found { preview, .. }) = &passed {
                report(app, preview, false);
            }
            return Ok(Some(found));
        }
        if !found.preview.left.is_empty() {
            if way != Way::Undo {
                return Ok(Some(found));
            }
            passed = passed.or(Some(found));
        }
    }
    match (passed, failure) {
        (None, Some(failure)) => Err(failure),
        (passed, _) => Ok(passed),
    }
}

/// Asks the person, on the screen or in a line.
async fn is_agreed(app: &App, way: Way, preview: &Restored) -> bool {
    let rows: Vec<String> = rows(preview, false).into_iter().map(|(_, row)| row).collect();
    let text = format!("Really {}?\n{}\n{OUT_OF_REACH}", way.verb(), rows.join("\n"));
    let mut request = ApprovalRequest::new(RandomIds.fresh("undo"), text, json!({}));
    request.options = vec!["approve".to_owned()];
    let decision = match &app.consent {
        Some(consent) => consent.approver.decide(&request).await,
        None if app.can_ask() => Prompt::of(app).for_a_call().decide(&request).await,
        None => Decision::Later,
    };
    matches!(decision, Decision::Now(Answer::Approve))
}

/// Checks that no run of the session has begun since the command was given, here or in another process.
async fn check_at_rest(app: &App, session: Option<&SessionId>) -> Result<(), Failure> {
    let Some(session) = session else { return Ok(()) };
    match newest(&app.runs()?, session).await?.is_some_and(|head| head.status == RunStatus::Running) {
        true => {
            let what = "a run has begun since the question, so nothing was changed";
            Err(Failure::usage(what, "wait for its end, then give the command again"))
        }
        false => Ok(()),
    }
}

impl Way {
    fn verb(self) -> &'static str {
        match self {
            Self::Undo | Self::Rewind => "undo",
            Self::Redo => "redo",
        }
    }

    fn preview(
        self,
        undo: &Undo,
        records: &[Arc<Record>],
        turns: Option<u32>,
    ) -> Result<Restored, SnapshotError> {
        match self {
            Self::Undo | Self::Rewind => undo.preview(records, turns),
            Self::Redo => undo.preview_redo(records),
        }
    }

    fn act(
        self,
        undo: &Undo,
        records: &[Arc<Record>],
        turns: Option<u32>,
    ) -> Result<Restored, SnapshotError> {
        match self {
            Self::Undo | Self::Rewind => undo.undo(records, turns),
            Self::Redo => undo.redo(records),
        }
    }
}
