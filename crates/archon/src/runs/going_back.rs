//! Goes back in a session: lists the messages of people, and finds the point before one of them.

use archon_react_loop::{LoopError, continuation_point, messages_of_people, point_before};
use archon_types::{
    EarlierMessage, MessagePlace, Origin, RecordBody, RunError, RunStarted, SessionId, StartRun, TenantId,
};

use super::Runs;

/// A point of a session, at which a new run continues the session.
pub(super) struct PointOfSession {
    pub(super) session: SessionId,
    pub(super) origin: Origin,
}

/// The maximum number of runs of one conversation. A larger number means that they continue each other in a
/// circle.
const LONGEST: usize = 100_000;

impl Runs {
    /// Returns the messages of people in a session, oldest first: those of the newest run, and of the runs that it
    /// continues. Other runs are not included, such as those that the session left when it went back. With `None` as
    /// `tenant`, the session may belong to any tenant.
    ///
    /// To send another text in place of a message, start a run with
    /// [`StartRun::instead_of`](archon_types::StartRun::instead_of). The session then continues from the point before
    /// that message; the later records stay in their logs.
    ///
    /// ```no_run
    /// use archon::{RunError, Runs, SessionId, types::{StartRun, StartRuns}};
    ///
    /// async fn say_it_better(runs: &Runs, session: &SessionId, text: &str) -> Result<(), RunError> {
    ///     let messages = runs.earlier_messages(session, None).await?;
    ///     if let Some(last) = messages.iter().rfind(|message| message.is_replaceable) {
    ///         println!("{} later messages are left", last.later);
    ///         runs.start(StartRun::new(text).instead_of(last.place.clone())).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// A log of the session cannot be read.
    pub async fn earlier_messages(
        &self,
        session: &SessionId,
        tenant: Option<&TenantId>,
    ) -> Result<Vec<EarlierMessage>, RunError> {
        let journal = &*self.archon().journal;
        let Some(head) = self.archon().newest_of(session, tenant).await? else { return Ok(Vec::new()) };
        let records = journal.read(&head.run_id).await?;
        // After a parallel loop this is the chosen branch.
        let mut next = continuation_point(journal, &head.run_id, &records).await?;
        let (mut found, mut later) = (Vec::new(), 0);
        for _ in 0..LONGEST {
            let Origin::Continues { run, records, .. } = next else { break };
            let log = journal.salvage(&run).await?.first(records)?;
            next = RunStarted::of(&log).map_or(Origin::Prompt, |started| started.origin.clone());
            let mut messages = messages_of_people(journal, &run, &log).await?;
            for record in log.iter().rev() {
                if let Some(message) = messages.pop_if(|message| message.seq == record.seq) {
                    let place = MessagePlace::new(run.clone(), message.seq);
                    let mut earlier = EarlierMessage::new(place, record.at, message.text);
                    (earlier.later, earlier.is_replaceable) = (later, message.before.is_some());
                    found.push(earlier);
                }
                later += usize::from(is_message(&record.body));
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Returns the point of the session before the message that a request replaces with `instead_of`; `None` if the
    /// request continues its session at the end.
    pub(super) async fn point_of(
        &self,
        request: &StartRun,
        tenant: &TenantId,
    ) -> Result<Option<PointOfSession>, RunError> {
        let Some(MessagePlace { run, seq }) = &request.instead_of else { return Ok(None) };
        let journal = &*self.archon().journal;
        let log = self.with_similar_ids(run, journal.read(run).await).await?;
        let Some(started) = RunStarted::of(&log).filter(|started| started.tenant == *tenant) else {
            return Err(self.unknown(run).await);
        };
        if request.session.as_ref().is_some_and(|session| *session != started.session) {
            return Err(LoopError::NoSuchMessage { run: run.clone(), seq: *seq }.into());
        }
        let origin = point_before(journal, run, &log, *seq).await?;
        Ok(Some(PointOfSession { session: started.session.clone(), origin }))
    }
}

/// Returns true for a record that adds a message, an answer or a tool result to the conversation.
fn is_message(body: &RecordBody) -> bool {
    matches!(
        body,
        RecordBody::MessageAdded { .. }
            | RecordBody::ModelCallFinished { .. }
            | RecordBody::ToolCallFinished { .. }
            | RecordBody::ToolCallRefused { .. }
    )
}
