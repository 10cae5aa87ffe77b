//! The messages and the requests of a person that the last run of a session left unread in its inbox. The next
//! run of the session begins with them, so that none is lost.

use std::pin::pin;

use archon_react_loop::Opening;
use archon_types::{
    AgentMessage, CancellationToken, Context, Inbox, InboxEntry, InboxRequest, JournalError, Message, Origin,
    Outcome, RunFilter, RunHead, RunId, SessionId, SessionMode, TenantId,
};
use futures_util::future::{Either, select};

use crate::{
    Archon, RunError, RunOptions,
    claim::{Claim, Start, drop_at_first_record},
};

/// The requests of a person in the inbox of a run.
#[derive(Default)]
pub(crate) struct PersonRequests {
    /// The run, and the ids of the messages.
    of: Option<(RunId, Vec<String>)>,
    pub(crate) mode: Option<SessionMode>,
    /// The instructions for the summary, which may be empty.
    pub(crate) compaction: Option<String>,
}

/// The entries that the opening of a run contains, and that stay in an inbox until the run has begun.
#[derive(Default)]
pub(crate) struct Unread {
    /// The claim on the run that did not read the messages. A caller that waits for one of the messages must not take
    /// it back until it is removed.
    _claim: Option<Claim>,
    /// The run that did not read the messages, and their ids.
    messages: Option<(RunId, Vec<String>)>,
    /// The requests of a person. Those that the opening does not contain go to the inbox of the run.
    requests: PersonRequests,
}

impl Archon {
    /// Prepares a run with this task. A run that continues a session also gets what the last run of the session
    /// did not read; a branch gets only the mode, since the other run may still read the rest.
    pub(crate) async fn prepare_task(
        &self,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<(Context, Origin, Opening, Unread), RunError> {
        let (is_new, is_branch) = (options.session.is_none(), options.branch);
        let (mut context, start) = self.prepare_start(options).await?;
        let prompt: AgentMessage = Message::user(task, self.clock.now()).into();
        let (mut opening, mut unread) = (Opening::new(vec![prompt]), Unread::default());
        if is_branch && !is_new {
            opening.mode = self.person_requests_for(&context.session, &context.tenant).await?.mode;
        } else if !is_new {
            unread = self.add_unread(&mut opening, &start, &context.session, &context.tenant).await?;
        }
        let origin = start.release_at_first_record(&mut context);
        Ok((context, origin, opening, unread))
    }

    /// Adds to an opening the messages that the run to continue did not read, and the requests of a person that
    /// wait in the session. After an error the opening is as before.
    pub(crate) async fn add_unread(
        &self,
        opening: &mut Opening,
        start: &Start,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<Unread, RunError> {
        let requests = self.person_requests_for(session, tenant).await?;
        let mut unread = Unread { _claim: start.claim.clone(), messages: None, requests };
        if let (Origin::Continues { run, .. }, Some(inbox)) = (&start.origin, self.journal.inbox()) {
            let (ids, messages) = unread_messages(&*inbox, run).await?;
            for message in messages {
                match message {
                    InboxRequest::Steer { message } => opening.steers.push(message),
                    InboxRequest::FollowUp { message } => opening.follow_ups.push(message),
                    _ => {}
                }
            }
            unread.messages = Some((run.clone(), ids));
        }
        opening.mode = unread.requests.mode.take();
        // Without a message the run would end after the compaction, and answer nothing.
        if !opening.is_continuation() {
            opening.compaction = unread.requests.compaction.take();
        }
        Ok(unread)
    }

    /// Begins a run and drives it until it ends or is suspended. The entries that the opening contains are removed as
    /// soon as the run has its first record: if the run does not begin, they are still there for the next run. If the
    /// process dies between the two, they stay in the inbox of a run that is no longer the newest of its session, where
    /// the next run does not look.
    pub(crate) async fn begin_with(
        &self,
        opening: Opening,
        origin: Origin,
        unread: Unread,
        context: &Context,
    ) -> Result<Outcome, RunError> {
        let (mut context, has_begun) = (context.clone(), CancellationToken::new());
        drop_at_first_record(&mut context, has_begun.clone().drop_guard());
        let work = pin!(self.agent.begin(opening, origin, &context));
        match select(work, pin!(has_begun.cancelled())).await {
            Either::Left((outcome, _)) => {
                let outcome = outcome?;
                self.remove(unread, &context.run).await;
                Ok(outcome)
            }
            Either::Right(((), work)) => {
                self.remove(unread, &context.run).await;
                Ok(work.await?)
            }
        }
    }

    /// Removes the entries with which a run began, and moves the others to its inbox. A failure is only a warning,
    /// because the run has begun.
    async fn remove(&self, unread: Unread, begun: &RunId) {
        let removed = async {
            if let Some((run, ids)) = unread.messages {
                self.remove_entries(&run, &ids).await?;
            }
            self.move_requests(unread.requests, begun).await
        };
        if let Err(error) = removed.await {
            tracing::warn!(run = %begun, %error, "messages that this run has read stay in an inbox");
        }
    }

    /// Returns the requests of a person that wait for the next run of a session.
    pub(crate) async fn person_requests_for(
        &self,
        session: &SessionId,
        tenant: &TenantId,
    ) -> Result<PersonRequests, RunError> {
        match self.newest_of(session, Some(tenant)).await? {
            Some(head) => self.person_requests_of(&head.run_id).await,
            None => Ok(PersonRequests::default()),
        }
    }

    /// Returns the requests of a person in the inbox of a run; the latest mode counts.
    pub(crate) async fn person_requests_of(&self, run: &RunId) -> Result<PersonRequests, RunError> {
        let mut requests = PersonRequests::default();
        let Some(inbox) = self.journal.inbox() else { return Ok(requests) };
        let mut ids = Vec::new();
        for InboxEntry { id, request, .. } in inbox.waiting(run).await? {
            match request {
                InboxRequest::SetMode { mode } => requests.mode = Some(mode),
                InboxRequest::Compact { instructions } => {
                    requests.compaction = Some(instructions.unwrap_or_default());
                }
                _ => continue,
            }
            ids.push(id);
        }
        requests.of = Some((run.clone(), ids));
        Ok(requests)
    }

    /// Moves requests of a person to the inbox of the run `started`, which did not begin with them.
    pub(crate) async fn move_requests(
        &self,
        requests: PersonRequests,
        started: &RunId,
    ) -> Result<(), RunError> {
        let mode = requests.mode.map(|mode| InboxRequest::SetMode { mode });
        let compaction = requests
            .compaction
            .clone()
            .map(|text| InboxRequest::Compact { instructions: Some(text).filter(|text| !text.is_empty()) });
        for request in mode.into_iter().chain(compaction) {
            self.leave(started, request).await?;
        }
        self.remove_requests(requests).await
    }

    /// Removes requests of a person with which a run has begun.
    pub(crate) async fn remove_requests(&self, requests: PersonRequests) -> Result<(), RunError> {
        match requests.of {
            Some((run, ids)) => self.remove_entries(&run, &ids).await,
            None => Ok(()),
        }
    }

    async fn remove_entries(&self, run: &RunId, ids: &[String]) -> Result<(), RunError> {
        match self.journal.inbox() {
            Some(inbox) if !ids.is_empty() => Ok(inbox.remove(run, ids).await?),
            _ => Ok(()),
        }
    }

    /// Leaves a request in the inbox of a run, also if the run has ended.
    pub(crate) async fn leave(&self, run: &RunId, request: InboxRequest) -> Result<(), RunError> {
        let unsupported = JournalError::Unsupported { action: "deliver messages to runs" };
        let inbox = self.journal.inbox().ok_or(unsupported)?;
        Ok(inbox.post(run, self.inbox_entry(request)).await?)
    }

    /// Returns the newest top-level run of a session.
    pub(crate) async fn newest_of(
        &self,
        session: &SessionId,
        tenant: Option<&TenantId>,
    ) -> Result<Option<RunHead>, RunError> {
        let mut newest = RunFilter::of_session(session.clone()).top_level();
        newest.tenant = tenant.cloned();
        self.newest(newest).await
    }
}

/// Returns the ids and the requests of the steering messages and follow-ups in the inbox of a run.
pub(crate) async fn unread_messages(
    inbox: &dyn Inbox,
    run: &RunId,
) -> Result<(Vec<String>, Vec<InboxRequest>), JournalError> {
    let is_message = |request: &InboxRequest| {
        matches!(request, InboxRequest::Steer { .. } | InboxRequest::FollowUp { .. })
    };
    let waiting = inbox.waiting(run).await?.into_iter().filter(|entry| is_message(&entry.request));
    Ok(waiting.map(|entry| (entry.id, entry.request)).unzip())
}
