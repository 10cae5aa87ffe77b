//! A tool of a server, as a tool of an agent.

use std::{pin::pin, sync::Arc, time::Duration};

use archon_types::{
    BoxFuture, Content, Effect, Json, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec,
};
use futures_util::future::{Either, select};
use rmcp::model::{CallToolRequestParams, CallToolResult};

use crate::{
    Definition, McpError, McpOptions, McpProblem, McpServer, Phase,
    connection::{CallWay, Called, Connection},
    input::Asker,
    model_name,
    result::{failure, links, shaped},
    round::Round,
    supervise::Server,
    talk::{ANSWER, Talk},
    text::{one_line, plain},
};

/// Maximum number of characters of a description that a model reads.
const DESCRIPTION: usize = 4_000;
/// Maximum number of characters of a text in the schema of the arguments.
const SCHEMA_TEXT: usize = 1_000;
/// Time by which a tool's time limit exceeds the sum of the server's time limits, so that a slow server fails
/// with its own error first.
const MARGIN: Duration = Duration::from_secs(5);
/// The pause before a call is repeated because the server wants the same call again without asking anybody.
const PAUSE: Duration = Duration::from_millis(500);

/// A tool of a server.
///
/// The tool's effect comes from the settings of the server, never from the server's own description: unless
/// the settings declare less, a call may change something and destroy data.
#[derive(Clone)]
pub struct McpTool {
    spec: ToolSpec,
    server: Arc<Server>,
    /// The tool's name on the server.
    tool: String,
    /// The hash of the definition that the model was given.
    hash: String,
}

impl McpTool {
    /// Makes the tool of a definition with this hash.
    pub(crate) fn new(server: Arc<Server>, definition: &Definition, hash: &str) -> Self {
        let mut spec = spec(&server.name, &server.settings, definition, hash);
        spec.annotations = with_time_to_ask(spec.annotations, &server.options);
        spec.annotations.deferrable = true;
        Self { spec, server, tool: definition.name.clone(), hash: hash.to_owned() }
    }

    /// Returns the configured name of the server.
    pub fn server(&self) -> &str {
        &self.server.name
    }

    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let source = format!("mcp://{}/{}", self.server.name, plain(&self.tool, DESCRIPTION));
        let may_change = self.spec.annotations.effect != Effect::ReadOnly;
        let talk = Arc::new(Talk::new(context.clone(), self.server.clone(), self.tool.clone()));
        let work = pin!(self.answer(arguments, context, &talk));
        let mut result = match select(work, pin!(context.cancel.cancelled())).await {
            Either::Left((Ok(answer), _)) => shaped(answer, &source),
            Either::Left((Err(Stopped::Failed(error)), _)) => failure(&error, may_change, &source),
            Either::Left((Err(Stopped::Refused(error)), _)) => return Err(error),
            Either::Right(_) => return Err(ToolError::Cancelled),
        };
        result.content.extend(talk.notes().into_iter().map(Content::text));
        self.server.redactor.clean_result(&mut result);
        Ok(result)
    }

    /// Calls the tool until the server needs no more input. A question to a person suspends the call; after
    /// the answer, the call begins here again.
    async fn answer(
        &self,
        arguments: Json,
        context: &ToolContext,
        talk: &Arc<Talk>,
    ) -> Result<CallToolResult, Stopped> {
        context.run.redactor.include(&self.server.redactor);
        let mut round = self.answered(context)?;
        let connection = self.connection().await?;
        if let (Some(processes), Some(group)) = (&context.processes, connection.group()) {
            processes.uses(group).await.map_err(Stopped::Refused)?;
        }
        let mut call = CallToolRequestParams::new(self.tool.clone());
        if let Json::Object(fields) = arguments {
            call = call.with_arguments(fields);
        }
        loop {
            let asked = round.as_ref().map_or_else(|| call.clone(), |round| round.repeated(call.clone()));
            let asked = match connection.call(asked, self.way(context, talk)).await? {
                Called::Done(answer) => {
                    self.server.names(links(&answer));
                    return Ok(answer);
                }
                Called::Asks(asked) => asked,
            };
            let number = round.map_or(0, |round| round.number) + 1;
            let next = Round::new(number, &self.hash, asked, &context.run.redactor);
            let next = next.map_err(|why| {
                self.server.error(Phase::Call, McpProblem::Protocol(why)).cleaned(&self.server.redactor)
            })?;
            self.ask(&next, &[], context)?;
            self.server.options.clock.sleep_until(self.server.options.clock.now() + PAUSE).await;
            round = Some(next);
        }
    }

    fn way<'t>(&self, context: &ToolContext, talk: &'t Arc<Talk>) -> CallWay<'t> {
        let (shown, redactor) = (context.clone(), self.server.redactor.clone());
        let talking = talk.clone();
        CallWay {
            on_progress: Arc::new(move |text| shown.on_progress(redactor.clean(text))),
            may_ask: context.may_suspend(),
            on_question: Arc::new(move |request| {
                let talking = talking.clone();
                Box::pin(async move { talking.reply(request).await })
            }),
            person_time: &talk.person_time,
        }
    }

    /// Returns the round of questions that a person has answered; `None` if nobody was asked.
    ///
    /// # Errors
    /// A question is left, so the call is suspended again, or the answer is for another definition of the
    /// tool.
    fn answered(&self, context: &ToolContext) -> Result<Option<Round>, Stopped> {
        let Some(answered) = context.answered() else { return Ok(None) };
        let problem =
            |why: &str| Stopped::from(self.server.error(Phase::Call, McpProblem::HeldBack(why.to_owned())));
        let mut round = Round::of(&answered.request)
            .ok_or_else(|| problem("its question is of another version of this program"))?;
        if round.hash != self.hash {
            return Err(problem("its definition is another one than when it asked"));
        }
        let problems = round.answered(&answered.answer);
        self.ask(&round, &problems, context)?;
        Ok(Some(round))
    }

    /// Suspends the call with the next question of a round, if there is one.
    fn ask(&self, round: &Round, problems: &[String], context: &ToolContext) -> Result<(), Stopped> {
        let asker = Asker { server: &self.server.name, tool: &self.tool, name: &self.spec.name };
        let id = || context.run.ids.fresh("question");
        let Some(mut question) = round.question(id, asker, problems) else { return Ok(()) };
        if !context.may_suspend() {
            let why = format!("it asks for input, and nobody can be asked here: {}", round.message());
            let error = self.server.error(Phase::Call, McpProblem::Protocol(why));
            return Err(error.cleaned(&self.server.redactor).into());
        }
        self.server.redactor.clean_json(&mut question.details);
        question.action_summary = self.server.redactor.clean(question.action_summary);
        Err(Stopped::Refused(ToolError::Suspended(Box::new(question))))
    }

    /// Waits for the connection, and checks that the tool is still the one that was agreed to.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let ready = self.server.ready().await?;
        let agreed = ready.judged.allowed.get(&self.tool);
        if agreed.is_some_and(|agreed| agreed.hash == self.hash) {
            return Ok(ready.connection.clone());
        }
        let problem = match ready.judged.held.iter().find(|held| held.tool == self.tool) {
            Some(held) => held.problem(),
            None if agreed.is_some() => {
                McpProblem::HeldBack("the tool's definition changed since the start of this run".to_owned())
            }
            None => McpProblem::NoSuchTool(plain(&self.tool, DESCRIPTION)),
        };
        Err(self.server.error(Phase::Call, problem))
    }
}

/// The reason why a call ends without a result: the server failed, or the tool refuses or suspends the call.
enum Stopped {
    Failed(McpError),
    Refused(ToolError),
}

impl From<McpError> for Stopped {
    fn from(error: McpError) -> Self {
        Self::Failed(error)
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(self.run(arguments, context))
    }
}

archon_types::debug_fields!(McpTool: name = spec.name);

/// Describes a tool for models and guards. The tool's version contains the beginning of the definition's hash,
/// so that an approval of one definition is not valid for another.
fn spec(server: &str, settings: &McpServer, definition: &Definition, hash: &str) -> ToolSpec {
    let description = format!("[MCP server {server}] {}", plain(definition.description.trim(), DESCRIPTION));
    let mut parameters = definition.input_schema.clone();
    clear_texts(&mut parameters);
    if let Json::Object(schema) = &mut parameters {
        schema.entry("type").or_insert_with(|| "object".into());
    }
    let mut spec = ToolSpec::new(model_name(server, &definition.name), description, parameters)
        .with_annotations(annotations(settings, &definition.name));
    spec.label = match definition.title.as_deref() {
        Some(title) => format!("{server}: {}", one_line(title, 100)),
        None => format!("{server}: {}", plain(&definition.name, 100)),
    };
    spec.version = format!("sha256:{}", hash.get(..16).unwrap_or(hash));
    spec
}

/// Returns the annotations of a tool by the server's settings; with the name `*`, those that hold for any tool.
pub(crate) fn annotations(settings: &McpServer, tool: &str) -> ToolAnnotations {
    let names = |list: &[String]| list.iter().any(|name| name == "*" || name == tool);
    let mut annotations = match names(&settings.read_only) {
        true => ToolAnnotations::read_only(),
        false if names(&settings.reversible) => ToolAnnotations::default(),
        false => ToolAnnotations::destructive(),
    };
    let limits = settings.timeouts;
    // A call may have to wait for the connection.
    annotations =
        annotations.with_timeout(limits.initialize + limits.list + limits.call + 3 * limits.close + MARGIN);
    annotations
}

/// Adds the time that a person has to answer to the tool's time limit, if servers may ask while a call is
/// open. A call without a question still ends at the server's own time limits.
pub(crate) fn with_time_to_ask(annotations: ToolAnnotations, options: &McpOptions) -> ToolAnnotations {
    match annotations.timeout() {
        Some(limit) if options.questions_during_calls => annotations.with_timeout(limit + ANSWER),
        _ => annotations,
    }
}

/// Removes invisible characters from the texts of a schema that a model reads, and cuts long texts. The parts
/// that arguments are checked against stay unchanged.
fn clear_texts(schema: &mut Json) {
    match schema {
        Json::Array(items) => items.iter_mut().for_each(clear_texts),
        Json::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Json::String(text) if matches!(&**key, "description" | "title" | "$comment") => {
                        *text = plain(text, SCHEMA_TEXT);
                    }
                    value => clear_texts(value),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::tests::definition;

    fn spec_of(settings: &McpServer, definition: &Definition) -> ToolSpec {
        spec("files", settings, definition, &definition.hash("npx files"))
    }

    #[test]
    fn tool_spec_ignores_the_servers_hints() {
        let mut tool = definition("read");
        for annotations in [
            json!({ "readOnlyHint": true }),
            json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true }),
            json!(null),
        ] {
            tool.annotations = annotations;
            let spec = spec_of(&McpServer::stdio("npx", ["files"]), &tool);
            assert_eq!(spec.annotations.effect, Effect::SideEffect);
            assert!(spec.annotations.destructive && !spec.annotations.concurrency_safe);
        }
    }

    #[test]
    fn tool_spec_is_relaxed_by_configuration() {
        let effect = |settings: &McpServer, tool: &str| {
            let annotations = spec_of(settings, &definition(tool)).annotations;
            (annotations.effect, annotations.destructive)
        };
        let mut server = McpServer::stdio("npx", ["files"]).with_read_only(["read"]);
        server.reversible = vec!["write".to_owned()];
        assert_eq!(effect(&server, "read"), (Effect::ReadOnly, false));
        assert_eq!(effect(&server, "write"), (Effect::SideEffect, false));
        assert_eq!(effect(&server, "delete"), (Effect::SideEffect, true));
        server.read_only = vec!["*".to_owned()];
        assert_eq!(effect(&server, "delete"), (Effect::ReadOnly, false));
    }

    #[test]
    fn spec_of_a_tool_names_its_server_and_has_no_hidden_text() {
        let mut tool = definition("read");
        tool.description = "Reads\u{e0041}.".to_owned();
        tool.input_schema =
            json!({ "properties": { "path": { "description": "a\u{200b}b", "const": "\u{200b}" } } });
        let spec = spec_of(&McpServer::stdio("npx", ["files"]), &tool);
        assert_eq!(spec.name, "files__read");
        assert_eq!(spec.description, "[MCP server files] Reads.");
        let path = json!({ "description": "ab", "const": "\u{200b}" });
        assert_eq!(spec.parameters, json!({ "properties": { "path": path }, "type": "object" }));
        assert_ne!(spec.version, spec_of(&McpServer::stdio("npx", ["files"]), &definition("read")).version);
    }
}
