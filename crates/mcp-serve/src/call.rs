//! One call of a client: starts a run, follows the run until it has ended or is suspended, and returns its result. If
//! the run has a question, a person is asked through the client, if the client supports that.

use std::sync::Arc;

use archon_types::{
    AgentMessage, Answer, Content, Event, Json, Message, Origin, Outcome, PendingApproval, Record,
    RecordBody, RunError, RunId, RunStarted, SessionId, Speaker, StartRun, pending_approvals,
};
use futures_util::StreamExt;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, CreateTaskResult,
        ElicitResult, InputRequest, InputRequests, InputRequiredResult, InputResponses, ProtocolVersion,
        ServerRequest,
    },
    service::RequestContext,
};

use crate::{
    client_calls,
    progress::Progress,
    question, result,
    server::{Offer, Questions, ToolServer, What},
};

/// A call under way.
pub(crate) struct Call<'s> {
    server: &'s ToolServer,
    offer: Offer,
    name: String,
    prompt: String,
    context: RequestContext<RoleServer>,
    abilities: Abilities,
}

/// The abilities of a client that decide how its calls are answered.
#[derive(Clone, Copy, Debug)]
struct Abilities {
    /// The client can show a form to a person.
    forms: bool,
    /// The client polls tasks.
    tasks: bool,
    /// The client answers questions by repeating the call with the answers (revision 2026-07-28).
    repeats: bool,
}

impl Abilities {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let capabilities = context.client_capabilities().unwrap_or_default();
        // A client that names no mode can show forms.
        let forms = capabilities.elicitation.as_ref().is_some_and(|of| of.form.is_some() || of.url.is_none());
        let version = context.protocol_version();
        let repeats = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        Self { forms, tasks: capabilities.supports_tasks(), repeats }
    }
}

/// The reason why a run is not followed any more.
enum Rest {
    /// The run has ended or is suspended; the value is its whole log.
    Log(Vec<Arc<Record>>),
    /// The client cancelled the call.
    Cancelled,
}

impl<'s> Call<'s> {
    /// Reads a client's request to call a tool or an agent.
    ///
    /// # Errors
    /// The server offers nothing with this name, or the call of an agent has no prompt.
    pub(crate) fn new(
        server: &'s ToolServer,
        params: &CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let name = params.name.to_string();
        let Some(offer) = server.offer(&name) else {
            let what = format!("this server offers no tool '{name}': list its tools");
            return Err(ErrorData::invalid_params(what, None));
        };
        let arguments = Json::Object(params.arguments.clone().unwrap_or_default());
        let prompt = match offer.what {
            What::Tool { .. } => client_calls::prompt(&name, &arguments),
            What::Agent => match arguments.get("prompt").and_then(Json::as_str).map(str::trim) {
                Some(prompt) if !prompt.is_empty() => prompt.to_owned(),
                _ => {
                    let what = format!("'{name}' is an agent and needs a `prompt`: a text with the task");
                    return Err(ErrorData::invalid_params(what, None));
                }
            },
        };
        let abilities = Abilities::of(&context);
        Ok(Self { server, offer, name, prompt, context, abilities })
    }

    /// Executes the call, and returns the response to the client.
    ///
    /// # Errors
    /// The client repeats the call with the state of another call, or with a response that is not an elicitation
    /// result.
    pub(crate) async fn answer(self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let begun = match params.request_state {
            Some(state) => {
                self.repeated(RunId::new(state), params.input_responses.unwrap_or_default()).await?
            }
            None => self.start().await,
        };
        let response = match begun {
            Ok(run) if matches!(self.offer.what, What::Agent) && self.abilities.tasks => {
                self.server.task(&run).await.map(|task| CreateTaskResult::new(task.task).into())
            }
            Ok(run) => self.finish(run).await,
            Err(error) => Err(error),
        };
        Ok(response.unwrap_or_else(|error| result::failure(&error).into()))
    }

    async fn start(&self) -> Result<RunId, RunError> {
        // The client's model wrote it, as far as this program knows.
        let prompt = AgentMessage::from(self.prompt.as_str()).with_speaker(Speaker::Model);
        let request = StartRun::with_messages(vec![prompt]);
        let mut request = request.agent(self.offer.agent.clone()).kind(self.offer.kind);
        if let What::Tool { toolbox, reads_only } = &self.offer.what {
            request = request.tools([self.name.as_str()]);
            if !reads_only && !self.server.seen.is_empty() {
                let session = SessionId::new(self.server.ids.fresh("session"));
                self.server.seen.recall(&session, &**toolbox);
                request = request.session(session);
            }
        }
        Ok(self.server.runs.start(request).await?.run)
    }

    /// Continues a call that the server answered with questions. The client got the id `run` with the questions, and
    /// sends it back with the answers.
    ///
    /// # Errors
    /// `run` is not the run of the same call, or a response is not an elicitation result.
    async fn repeated(
        &self,
        run: RunId,
        responses: InputResponses,
    ) -> Result<Result<RunId, RunError>, ErrorData> {
        let foreign = || {
            let what = "`requestState` is not that of this call: send back the one that the server sent";
            ErrorData::invalid_params(what, None)
        };
        let records = self.server.log(&run).await.map_err(|_| foreign())?;
        if !self.is_own(&records) {
            return Err(foreign());
        }
        let answers = answers(&records, responses)?;
        Ok(self.server.give(&answers).await.map(|_| run))
    }

    fn is_own(&self, records: &[Arc<Record>]) -> bool {
        let is_of_agent = RunStarted::of(records).is_some_and(|started| {
            started.agent == self.offer.agent
                && started.kind == self.offer.kind
                && !matches!(started.origin, Origin::CalledBy { .. })
        });
        // Plans and teams have their task elsewhere.
        is_of_agent && prompt(records).is_none_or(|prompt| prompt == self.prompt)
    }

    /// Follows a run until it has a result.
    async fn finish(&self, run: RunId) -> Result<CallToolResponse, RunError> {
        let mut progress = Progress::new(&self.context, &self.offer.what);
        let mut seen = None;
        loop {
            let records = match self.rest(&run, seen, &mut progress).await? {
                Rest::Log(records) => records,
                Rest::Cancelled => return Ok(self.cancelled(&run).await.into()),
            };
            let open = pending_approvals(&records);
            let last = records.last().map(|record| record.seq);
            if open.is_empty() || last == seen {
                return Ok(self.result(&run, &records).await?.into());
            }
            seen = last;
            if let Some(response) = self.ask(&run, &records, &open).await? {
                return Ok(response);
            }
        }
    }

    /// Waits until a run has ended or is suspended, or the client cancels the call.
    async fn rest(&self, run: &RunId, after: Option<u64>, progress: &mut Progress) -> Result<Rest, RunError> {
        let mut events = self.server.runs.watch(run, after).await?;
        loop {
            let event: Event = tokio::select! {
                event = events.next() => match event {
                    Some(event) => event?,
                    None => return Ok(Rest::Log(self.server.log(run).await?)),
                },
                () = self.context.ct.cancelled() => return Ok(Rest::Cancelled),
            };
            progress.report(&event).await;
        }
    }

    /// Cancels the run of a call that the client cancelled.
    async fn cancelled(&self, run: &RunId) -> CallToolResult {
        if let Err(error) = self.server.runs.cancel(run, "the client cancelled the call").await {
            tracing::debug!(target: "archon::mcp", %run, %error, "a cancelled call had ended");
        }
        match Outcome::of_result(self.server.runs.reply(run).await) {
            Ok(outcome) => result::of_agent(&outcome),
            Err(error) => result::failure(&error),
        }
    }

    async fn result(&self, run: &RunId, records: &[Arc<Record>]) -> Result<CallToolResult, RunError> {
        if let (What::Tool { .. }, Some(result)) = (&self.offer.what, result::tool_result(records)) {
            self.server.seen.note(&self.name, result);
            return Ok(result::of_tool(result, run));
        }
        Ok(result::of_agent(&Outcome::of_result(self.server.runs.reply(run).await)?))
    }

    /// Gets answers to the open questions of a suspended run; or returns the response to the client, if the
    /// answers come later or not at all.
    async fn ask(
        &self,
        run: &RunId,
        records: &[Arc<Record>],
        open: &[PendingApproval],
    ) -> Result<Option<CallToolResponse>, RunError> {
        if self.server.questions == Questions::Here {
            let questions: Vec<_> = open.iter().map(|open| open.request.action_summary.clone()).collect();
            return Ok(Some(match self.offer.what {
                What::Tool { .. } => result::waiting(run, &questions).into(),
                What::Agent => self.result(run, records).await?.into(),
            }));
        }
        if self.abilities.forms && self.abilities.repeats {
            let requests = requests(open);
            return Ok(Some(InputRequiredResult::new(Some(requests), Some(run.to_string())).into()));
        }
        let mut answers = Vec::new();
        for pending in open {
            let asked = match self.abilities.forms {
                true => tokio::select! {
                    asked = self.elicit(pending) => asked,
                    () = self.context.ct.cancelled() => return Ok(Some(self.cancelled(run).await.into())),
                },
                false => None,
            };
            let answer = asked.unwrap_or_else(|| question::withdrawn(&pending.request));
            answers.push((pending.request.request_id.clone(), answer));
        }
        self.server.give(&answers).await?;
        Ok(None)
    }

    /// Asks the person at a client that does not answer questions by repeating the call. `None` if there is no
    /// answer.
    async fn elicit(&self, pending: &PendingApproval) -> Option<Answer> {
        let form = question::elicit_request(&pending.request).ok()?;
        match self.context.peer.send_request(ServerRequest::ElicitRequest(form)).await {
            Ok(ClientResult::ElicitResult(result)) => Some(question::answer(result)),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(target: "archon::mcp", %error, "a client did not ask its person");
                None
            }
        }
    }
}

/// Returns the text of the first message in a log, the prompt, without the text that a memory added.
fn prompt(records: &[Arc<Record>]) -> Option<String> {
    records
        .iter()
        .find_map(|record| match &record.body {
            RecordBody::MessageAdded { message, .. } => {
                AgentMessage::as_llm(message).map(Message::own_content)
            }
            _ => None,
        })
        .map(|content| Content::join_text(content).into_owned())
}

/// Returns the questions as requests for input, by their ids.
pub(crate) fn requests(open: &[PendingApproval]) -> InputRequests {
    let request = |pending: &PendingApproval| {
        let form = question::elicit_request(&pending.request).ok()?;
        Some((pending.request.request_id.clone(), InputRequest::Elicitation(form)))
    };
    open.iter().filter_map(request).collect()
}

/// Returns the answers to open questions among a client's responses; other responses are ignored.
///
/// # Errors
/// A response is not an elicitation result.
pub(crate) fn answers(
    records: &[Arc<Record>],
    mut responses: InputResponses,
) -> Result<Vec<(String, Answer)>, ErrorData> {
    let mut answers = Vec::new();
    for pending in pending_approvals(records) {
        let id = pending.request.request_id;
        let Some(response) = responses.remove(&id) else { continue };
        let result: ElicitResult = serde_json::from_value(response).map_err(|e| {
            ErrorData::invalid_params(format!("the response to '{id}' is no elicitation result: {e}"), None)
        })?;
        answers.push((id, question::answer(result)));
    }
    Ok(answers)
}

impl ToolServer {
    /// Returns the whole log of a run.
    pub(crate) async fn log(&self, run: &RunId) -> Result<Vec<Arc<Record>>, RunError> {
        Ok(self.runs.records(run, None).await?.whole()?)
    }

    /// Passes answers to the run service. An answer to a question that was already answered has no effect.
    pub(crate) async fn give(&self, answers: &[(String, Answer)]) -> Result<(), RunError> {
        for (question, answer) in answers {
            self.runs.answer(question, answer.clone()).await?;
        }
        Ok(())
    }
}
