//! Starts, resumes, lists and watches runs.

use std::{collections::BTreeSet, sync::Arc};

use archon_react_loop::{History, continuation_point, conversation, fold};
use archon_types::{
    AgentHead, AgentId, AgentMessage, BoxFuture, Content, Context, Inbox, InboxRequest, JournalError,
    Message, MoreLimits, Origin, Outcome, OutcomeStatus, Record, RecordBody, Reply, ResumedRuns, RunAgent,
    RunError, RunFilter, RunHead, RunId, RunKind, RunRefused, RunStarted, RunStatus, Salvaged, SessionId,
    SessionMode, StartRun, StartRuns, Started, StartedRun, TenantId, Watch, WhenBusy,
};
use futures_util::StreamExt;

use super::{Runs, delivery::delivery_of, going_back::PointOfSession, unread::NextRun, watching::POLL};
use crate::{RunOptions, archon::local, claim::run_named, unread::PersonRequests};

/// The maximum number of tries to queue a message for a session whose runs end before they read it.
const MOST_TRIES: u32 = 20;
/// The maximum number of checks whether the next run has taken a message that an ended run did not read.
const MOST_LOOKS: u32 = 4;

impl StartRuns for Runs {
    fn start<'a>(&'a self, request: StartRun) -> BoxFuture<'a, Result<StartedRun, RunError>> {
        Box::pin(self.start_run(request))
    }

    fn resume<'a>(
        &'a self,
        run: &'a RunId,
        more: &'a MoreLimits,
    ) -> BoxFuture<'a, Result<StartedRun, RunError>> {
        Box::pin(self.resume_run(run, more))
    }

    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, RunError>> {
        Box::pin(self.head(run))
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, RunError>> {
        Box::pin(async move { Ok(self.archon().journal.list(filter).await?) })
    }

    fn records<'a>(
        &'a self,
        run: &'a RunId,
        after: Option<u64>,
    ) -> BoxFuture<'a, Result<Salvaged, RunError>> {
        Box::pin(async move {
            let mut salvaged = self.with_similar_ids(run, self.archon().journal.salvage(run).await).await?;
            salvaged.records.retain(|record| after.is_none_or(|after| record.seq > after));
            Ok(salvaged)
        })
    }

    fn records_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, RunError>> {
        Box::pin(async move {
            let read = self.archon().journal.read_before(run, before, most).await;
            self.with_similar_ids(run, read).await
        })
    }

    fn agents(&self) -> Vec<AgentHead> {
        let own = self.archon().run_agent();
        let head = |(kind, id): &(RunKind, AgentId)| {
            let mut head = AgentHead::new(id.clone(), *kind);
            head.is_default = (*kind, id) == (own.kind(), &own.id());
            head
        };
        self.inner.agents.keys().map(head).collect()
    }

    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<Message>, RunError>> {
        Box::pin(self.history_of(session, tenant))
    }

    fn watch<'a>(&'a self, run: &'a RunId, after: Option<u64>) -> BoxFuture<'a, Result<Watch, RunError>> {
        Box::pin(self.watch_run(run, after))
    }

    fn resume_unfinished<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<ResumedRuns, RunError>> {
        Box::pin(async move {
            let mut filter = RunFilter::all().status([RunStatus::Interrupted]).top_level();
            filter.tenant = tenant.cloned();
            let mut roots = BTreeSet::new();
            for head in self.list(&filter).await? {
                roots.insert(self.root(&head.run_id).await?);
            }
            let mut resumed = Vec::new();
            for run in roots {
                let started = self.resume_run(&run, &MoreLimits::default()).await;
                resumed.push((run, started));
            }
            Ok(resumed.into_iter().collect())
        })
    }

    fn reply<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(async move {
            let mut events = self.watch(run, None).await?;
            while let Some(event) = events.next().await {
                event?;
            }
            let records = self.records_from(run, 0).await?;
            match records.last().map(|record| &record.body) {
                Some(RecordBody::RunFinished(outcome)) => Reply::of(outcome.clone()),
                Some(RecordBody::Suspended { .. }) => Reply::of(suspended(run, &records)?),
                _ => Err(RunError::Lost { run: run.clone() }),
            }
        })
    }
}

/// The target of the prompts of a request.
enum Place {
    /// A new run.
    Own(Box<Context>, Origin),
    /// The inbox of a busy run.
    Queued(StartedRun),
}

impl Runs {
    async fn start_run(&self, request: StartRun) -> Result<StartedRun, RunError> {
        let archon = self.archon();
        let now = archon.clock.now();
        let mut prompts: Vec<_> = request.prompts.iter().map(|prompt| prompt.clone().dated(now)).collect();
        // A loop's prompt may be a picture without text.
        let is_loop = matches!(request.kind, RunKind::Loop | RunKind::Parallel);
        if !(is_loop && prompts.iter().any(|prompt| !is_empty(prompt))) {
            AgentMessage::joined_text(&prompts)?;
        }
        let tenant = request.tenant.clone().unwrap_or_else(local);
        let keyed = request.key.as_ref().map(|key| run_named("run_key_", &tenant, key));
        let _one_by_one = match &keyed {
            Some(run) => Some(self.alone(run).await),
            None => None,
        };
        if let (Some(run), Some(key)) = (&keyed, &request.key)
            && let Some(before) = self.started_before(run, key, &tenant, &request).await?
        {
            return Ok(before);
        }
        if let Some(before) = self.find_delivered(&mut prompts, &request, keyed.as_ref(), &tenant).await? {
            return Ok(before);
        }
        let own = archon.agent.options().agent_id.clone();
        let agent = self.agent(request.kind, request.agent.as_ref().unwrap_or(&own))?;
        let point = self.point_of(&request, &tenant).await?;
        let session = point.as_ref().map(|point| point.session.clone()).or(request.session.clone());
        let options = RunOptions {
            run: keyed.clone(),
            session,
            branch: request.when_busy == WhenBusy::Branch,
            tenant: Some(tenant.clone()),
            ..RunOptions::default()
        };
        let place = match point {
            Some(point) => self.place_at(options, point).await,
            None => self.place(options, &request, &prompts).await,
        };
        let (context, origin) = match place? {
            Place::Own(context, origin) => (*context, origin),
            Place::Queued(queued) => return Ok(queued),
        };
        let started = self.begin(agent, prompts, &request, (context, origin)).await;
        match (started, keyed, &request.key) {
            // Another process was faster with the same key.
            (
                Err(RunError::Journal(JournalError::Exists { .. } | JournalError::Locked { .. })),
                Some(run),
                Some(key),
            ) => {
                let before = self.started_before(&run, key, &tenant, &request).await?;
                before.ok_or_else(|| JournalError::Locked { run }.into())
            }
            (started, ..) => started,
        }
    }

    /// Starts the run that `request` asks for, and passes on the requests of a person (mode, compaction) that wait in
    /// its session.
    async fn begin(
        &self,
        agent: Arc<dyn RunAgent>,
        prompts: Vec<AgentMessage>,
        request: &StartRun,
        (context, origin): (Context, Origin),
    ) -> Result<StartedRun, RunError> {
        let is_new = request.session.is_none() && request.instead_of.is_none();
        let requests = match is_new {
            true => PersonRequests::default(),
            false => self.archon().person_requests_for(&context.session, &context.tenant).await?,
        };
        if !is_new {
            self.check_plan_mode(request.kind, &context).await?;
        }
        let mut settings = request.settings.clone();
        let is_loop = request.kind == RunKind::Loop;
        if is_loop {
            settings.mode = settings.mode.or(requests.mode);
            settings.compaction = settings.compaction.or_else(|| requests.compaction.clone());
        }
        if is_loop && settings.mode.is_none() && request.instead_of.is_some() {
            // The point to which the session goes back may have had another mode.
            settings.mode = Some(self.mode(&context.session, Some(&context.tenant)).await?);
        }
        let started = self
            .work(context, Started::New, move |context| async move {
                agent.begin(prompts, origin, settings, &context).await
            })
            .await?;
        match is_loop {
            true => self.archon().remove_requests(requests).await?,
            false => self.archon().move_requests(requests, &started.run).await?,
        }
        Ok(started)
    }

    /// Checks that a run of this kind may start in its session. In plan mode only a loop may start, because a loop
    /// applies the mode to all of its calls.
    pub(super) async fn check_plan_mode(&self, kind: RunKind, context: &Context) -> Result<(), RunError> {
        let session = &context.session;
        if kind == RunKind::Loop || self.mode(session, Some(&context.tenant)).await? != SessionMode::Plan {
            return Ok(());
        }
        Err(RunError::PlanMode { session: session.clone(), kind })
    }

    /// Returns the run that an earlier request with this idempotency key has started; `None` if there is
    /// none.
    async fn started_before(
        &self,
        run: &RunId,
        key: &str,
        tenant: &TenantId,
        request: &StartRun,
    ) -> Result<Option<StartedRun>, RunError> {
        let records = match self.archon().journal.read(run).await {
            Err(JournalError::UnknownRun { .. }) => return Ok(None),
            records => records?,
        };
        let Some(started) = RunStarted::of(&records) else { return Ok(None) };
        let own = &self.archon().agent.options().agent_id;
        let differs = match started {
            started if started.tenant != *tenant => Some("tenant"),
            started if started.agent != *request.agent.as_ref().unwrap_or(own) => Some("agent"),
            started => differing_settings(started, &records, request),
        };
        if let Some(differs) = differs {
            return Err(RunError::KeyUsed { key: key.to_owned(), run: run.clone(), differs });
        }
        Ok(Some(StartedRun::new(run.clone(), started.session.clone(), Started::Before)))
    }

    /// Returns the target of the prompts of a request.
    async fn place(
        &self,
        options: RunOptions,
        request: &StartRun,
        prompts: &[AgentMessage],
    ) -> Result<Place, RunError> {
        let archon = self.archon();
        let mut tries = 0;
        if let (Some(session), Some(tenant), false) = (&options.session, &options.tenant, options.branch) {
            self.begin_unread(session, tenant).await?;
        }
        loop {
            let (run, status) = match archon.prepare(options.clone()).await {
                Err(RunError::SessionBusy { run, status })
                    if matches!(request.when_busy, WhenBusy::Queue | WhenBusy::Steer) =>
                {
                    (run, status)
                }
                prepared => return prepared.map(|(context, origin)| Place::Own(Box::new(context), origin)),
            };
            match self.queue(&run, prompts, request.when_busy).await? {
                Some(queued) => return Ok(Place::Queued(queued)),
                // The run has ended meanwhile, or another message starts the next run.
                None if tries < MOST_TRIES => tries += 1,
                None => return Err(RunError::SessionBusy { run, status }),
            }
            archon.clock.sleep_until(archon.clock.now() + POLL / 10).await;
        }
    }

    /// Returns a new run that continues its session at an earlier point, as the target of the prompts.
    async fn place_at(&self, options: RunOptions, point: PointOfSession) -> Result<Place, RunError> {
        let (context, origin) = self.archon().prepare_at(options, Some(point.origin)).await?;
        Ok(Place::Own(Box::new(context), origin))
    }

    async fn history_of(
        &self,
        session: &SessionId,
        tenant: Option<&TenantId>,
    ) -> Result<Vec<Message>, RunError> {
        let journal = &*self.archon().journal;
        let Some(head) = self.archon().newest_of(session, tenant).await? else { return Ok(Vec::new()) };
        let records = journal.read(&head.run_id).await?;
        // After a parallel loop this is the chosen branch.
        let Origin::Continues { run, .. } = continuation_point(journal, &head.run_id, &records).await? else {
            return Ok(Vec::new());
        };
        let messages = conversation(journal, &run).await?;
        Ok(messages.iter().map(|message| Message::clone(message)).collect())
    }

    /// Puts prompts into the inbox of a busy run of their session; `None` if the run ends without reading
    /// them.
    async fn queue(
        &self,
        run: &RunId,
        prompts: &[AgentMessage],
        when_busy: WhenBusy,
    ) -> Result<Option<StartedRun>, RunError> {
        let archon = self.archon();
        let mut ids = Vec::new();
        for message in prompts.iter().cloned() {
            let delivery = delivery_of(&message).map(str::to_owned);
            let mut entry = archon.inbox_entry(match when_busy {
                WhenBusy::Steer => InboxRequest::Steer { message },
                _ => InboxRequest::FollowUp { message },
            });
            entry.id = delivery.unwrap_or(entry.id);
            ids.push(entry.id.clone());
            match archon.post_entry(run, entry).await {
                // Another process has put in the message of a request with the same key.
                Err(RunError::Journal(JournalError::Posted { .. })) => {}
                Err(
                    RunError::Refused(RunRefused::Ended { .. })
                    | RunError::Journal(JournalError::UnknownRun { .. }),
                ) => return Ok(None),
                posted => posted?,
            }
        }
        let head = self.head(run).await?;
        let session = head.session.unwrap_or_else(|| SessionId::new(""));
        let mut queued = StartedRun::new(run.clone(), session.clone(), Started::Queued);
        queued.message_ids.clone_from(&ids);
        if when_busy == WhenBusy::Steer && head.status == RunStatus::Suspended {
            self.resume_for_inbox(run).await?;
            queued.how = Started::Resumed;
            return Ok(Some(queued));
        }
        match head.tenant {
            Some(tenant) if head.status.has_ended() => self.begin_next(queued, ids, &tenant).await,
            _ => Ok(Some(queued)),
        }
    }

    /// Waits until another run reads messages in the inbox of a run that has ended, or begins that run; `None` if no run
    /// does. The messages are then removed from the inbox.
    async fn begin_next(
        &self,
        mut queued: StartedRun,
        ids: Vec<String>,
        tenant: &TenantId,
    ) -> Result<Option<StartedRun>, RunError> {
        let archon = self.archon();
        let Some(inbox) = archon.journal.inbox() else { return Ok(Some(queued)) };
        let (run, session) = (&queued.run.clone(), queued.session.clone());
        let mut looks = 0;
        loop {
            let left = unread(&*inbox, run, &ids).await?;
            if left.is_empty() {
                return Ok(Some(queued));
            }
            // With the claim no other caller can begin a run with the messages. If they were removed without it and
            // sent again, the model could read them twice.
            if looks >= MOST_LOOKS
                && let Some(_claim) = archon.claim_run(run).await?
            {
                let left = unread(&*inbox, run, &ids).await?;
                inbox.remove(run, &left).await?;
                return Ok(left.is_empty().then_some(queued));
            }
            let next = self.begin_unread(&session, tenant).await?;
            // A caller that is about to start the next run may have read the messages already.
            looks += u32::from(!matches!(next, NextRun::Claimed));
            match next {
                NextRun::Begun(begun) => queued = begun,
                _ => archon.clock.sleep_until(archon.clock.now() + POLL / 10).await,
            }
        }
    }
}

/// Returns those of the ids whose messages are still in the inbox of the run.
async fn unread(inbox: &dyn Inbox, run: &RunId, ids: &[String]) -> Result<Vec<String>, JournalError> {
    let waiting = inbox.waiting(run).await?.into_iter().map(|entry| entry.id);
    Ok(waiting.filter(|id| ids.contains(id)).collect())
}

/// Returns the outcome of a suspended run. Only the outcome of a loop has the spending of the run so far.
fn suspended(run: &RunId, records: &[Arc<Record>]) -> Result<Outcome, RunError> {
    match RunStarted::of(records).map(|started| started.kind) {
        Some(RunKind::Loop) => Ok(fold(run, records, History::default())?.suspended_outcome()),
        _ => Ok(Outcome::new(run.clone(), OutcomeStatus::Suspended)),
    }
}

/// Returns the part of a repeated request that differs from the request that started the run; `None` if none
/// differs. Settings that the request leaves to the agent are not compared, since the agent may have changed.
fn differing_settings(
    started: &RunStarted,
    records: &[Arc<Record>],
    request: &StartRun,
) -> Option<&'static str> {
    let texts = |prompts: &[AgentMessage]| {
        let said = prompts.iter().filter_map(AgentMessage::as_llm).map(Message::own_content);
        said.map(Content::join_text).collect::<Vec<_>>().join("\n\n")
    };
    let (config, settings) = (&started.config, &request.settings);
    let tools = || config.tool_names().collect::<BTreeSet<_>>();
    let system = || config.system.as_deref().map(|own| &**own);
    let wanted = |names: &Vec<String>| names.iter().map(String::as_str).collect::<BTreeSet<_>>() == tools();
    let same = [
        ("kind", started.kind == request.kind),
        // A filter may have added to the prompt.
        ("prompt", has_lines(&texts(&first_prompts(records)), &texts(&request.prompts))),
        ("session", request.session.as_ref().is_none_or(|session| *session == started.session)),
        ("limits", settings.limits.as_ref().is_none_or(|limits| *limits == config.limits)),
        (
            "system text",
            settings.system.as_ref().is_none_or(|text| system().is_some_and(|own| is_of(own, text))),
        ),
        ("list of tools", settings.tools.as_ref().is_none_or(wanted)),
        ("earlier conversation", has_restored(records, &settings.restored)),
    ];
    same.into_iter().find(|(_, is_same)| !is_same).map(|(what, _)| what)
}

/// Returns true if `system` is `text`, perhaps with the list of skills that a run with skills adds.
fn is_of(system: &str, text: &str) -> bool {
    let added = system.strip_prefix(text);
    added.is_some_and(|added| added.is_empty() || added.ends_with("\n</available_skills>"))
}

/// Returns true if `text` contains `wanted` as whole lines.
fn has_lines(text: &str, wanted: &str) -> bool {
    text.match_indices(wanted).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + wanted.len()..]);
        (before.is_empty() || before.ends_with('\n')) && (behind.is_empty() || behind.starts_with('\n'))
    })
}

/// Returns true for a message without content: all of its text is blank and it has no picture, or no model reads it.
pub(super) fn is_empty(prompt: &AgentMessage) -> bool {
    let is_blank = |content: &Content| matches!(content, Content::Text { text } if text.trim().is_empty());
    match prompt.as_llm() {
        Some(Message::User(user)) => user.content.iter().all(is_blank),
        message => message.is_none_or(|message| message.text().trim().is_empty()),
    }
}

/// Returns the messages that a run began with.
fn first_prompts(records: &[Arc<Record>]) -> Vec<AgentMessage> {
    let mut prompts = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::MessageAdded { message, .. } => prompts.push(message.clone()),
            RecordBody::ParallelStarted { prompts: said, .. } => prompts.extend(said.iter().cloned()),
            RecordBody::ModelCallStarted { .. } => break,
            _ => {}
        }
    }
    prompts
}

/// Returns true if a run began with the restored conversation `wanted`, which came from outside of the journal;
/// also if both are empty.
fn has_restored(records: &[Arc<Record>], wanted: &[Message]) -> bool {
    let restored = records.iter().find_map(|record| match &record.body {
        RecordBody::ConversationRestored { messages } => Some(messages.as_slice()),
        _ => None,
    });
    let restored = restored.unwrap_or_default();
    // A filter may have added to a message.
    let is_same = |(said, wanted): (&Message, &Message)| has_lines(&said.text(), &wanted.text());
    restored.len() == wanted.len() && restored.iter().zip(wanted).all(is_same)
}
