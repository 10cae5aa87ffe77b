//! Shared parts of the tests: calls of the tool without an engine, and a toolbox with prepared answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_code::{CodeExecutor, CodeOptions};
use archon_testkit::{SeededIds, VirtualClock};
use archon_types::{
    BoxFuture, CallId, Context, Effect, Encoded, Executed, Json, Prepared, ReadyCall, Tool, ToolCall,
    ToolContext, ToolError, ToolResult, ToolSpec, Toolbox,
};
use serde_json::json;

pub(crate) const LANGUAGES: [&str; 2] = ["python", "javascript"];

pub(crate) fn context() -> ToolContext {
    let run = Context::new(
        "run".into(),
        "session".into(),
        Arc::new(VirtualClock::new()),
        Arc::new(SeededIds::new(1)),
    );
    ToolContext::new(run, "call".into(), "code_executor")
}

/// Bounds that no test of something else meets on a busy machine, where nothing is optimised.
pub(crate) fn roomy() -> CodeOptions {
    let mut options = CodeOptions::default();
    options.time = Duration::from_secs(60);
    options
}

pub(crate) fn executor() -> CodeExecutor {
    CodeExecutor::new(roomy())
}

pub(crate) async fn call(tool: &CodeExecutor, language: &str, code: &str) -> ToolResult {
    let arguments = json!({ "language": language, "code": code });
    match tool.call(arguments, &context()).await {
        Ok(result) => result,
        Err(error) => error.into(),
    }
}

pub(crate) async fn run(language: &str, code: &str) -> ToolResult {
    call(&executor(), language, code).await
}

pub(crate) async fn python(code: &str) -> String {
    run("python", code).await.text()
}

pub(crate) async fn javascript(code: &str) -> String {
    run("javascript", code).await.text()
}

/// The result of a call of a tool.
type Answer = Arc<dyn Fn(&str, &Json) -> Prepared + Send + Sync>;

/// Tools with prepared answers, which keep the arguments of their calls.
#[derive(Clone)]
pub(crate) struct Answering {
    specs: Arc<Encoded<Vec<ToolSpec>>>,
    answer: Answer,
    pub(crate) seen: Arc<Mutex<Vec<Json>>>,
    /// Calls that never end.
    pub(crate) hangs: bool,
}

impl Answering {
    pub(crate) fn new(
        specs: Vec<ToolSpec>,
        answer: impl Fn(&str, &Json) -> Result<ToolResult, Box<ToolResult>> + Send + Sync + 'static,
    ) -> Self {
        let answer = move |name: &str, arguments: &Json| match answer(name, arguments) {
            Ok(result) => {
                let call = ToolCall::new("c", name, arguments.clone());
                let mut ready =
                    ReadyCall::new(CallId::new(archon_types::CommandId(0), 0), call, Effect::ReadOnly);
                ready.notes = Some(Box::new(result));
                Prepared::Ready(ready)
            }
            Err(refused) => Prepared::Refused(refused),
        };
        Self {
            specs: Arc::new(Encoded::new(specs)),
            answer: Arc::new(answer),
            seen: Arc::default(),
            hangs: false,
        }
    }

    pub(crate) fn executor(&self, names: &[&str]) -> CodeExecutor {
        executor().with_tools(Arc::new(self.clone()), names.iter().copied()).unwrap()
    }

    pub(crate) fn take(&self) -> Vec<Json> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Toolbox for Answering {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.specs.clone()
    }

    fn prepare<'a>(&'a self, _: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        self.seen.lock().unwrap().push(call.arguments.clone());
        Box::pin(std::future::ready((self.answer)(&call.name, &call.arguments)))
    }

    fn execute<'a>(&'a self, mut ready: ReadyCall, _: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            let result = ready.notes.take().unwrap().downcast::<ToolResult>().unwrap();
            Executed::Done(result)
        })
    }
}

/// Two parameters, the second of which may be left out.
pub(crate) fn spec(name: &str) -> ToolSpec {
    let properties = json!({ "a": {}, "b": {} });
    ToolSpec::new(
        name,
        "Gives back what it was given.",
        json!({ "type": "object", "properties": properties, "required": ["a"] }),
    )
}

/// A tool that gives back its arguments.
pub(crate) fn echo() -> Answering {
    Answering::new(vec![spec("echo")], |_, arguments| Ok(arguments.to_string().into()))
}

/// An error as the tool gives it.
pub(crate) async fn error(arguments: Json) -> ToolError {
    executor().call(arguments, &context()).await.unwrap_err()
}
