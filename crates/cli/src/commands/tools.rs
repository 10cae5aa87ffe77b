//! `archon tools`: lists the tools of an agent, and calls a tool without a model.

use std::sync::Arc;

use archon::{
    RandomIds, SystemClock,
    tools::{ToolEngine, ToolRegistry},
    types::{Context, Ids, Json, RunId, SessionId, ToolResult, ToolResultStatus},
};
use clap::Subcommand;
use serde_json::json;

use super::{AllowFlags, ToolFlags};
use crate::{
    app::App,
    ask::{Asking, Prompt},
    assemble::engine_options,
    command_line::quoted,
    config::Settings,
    drive::find_missing_rule,
    exit::Exit,
    failure::Failure,
    interrupt, lists, mcp,
    servers::Tools,
    toolset::{self, Picked},
};

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools that an agent gets
    List {
        #[command(flatten)]
        flags: ToolFlags,
    },
    /// Call a tool and print its result; a tool that changes something asks first
    Call {
        #[command(flatten)]
        flags: ToolFlags,
        #[command(flatten)]
        allow: AllowFlags,
        /// The tool's name
        name: String,
        /// The arguments: a JSON object, or NAME=VALUE pairs
        #[arg(value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
}

impl ToolsCommand {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let (Self::List { flags } | Self::Call { flags, .. }) = self;
        flags.apply(&mut settings);
        if let Self::Call { allow, .. } = self {
            allow.apply(&mut settings);
        }
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List { .. } => list(app).await,
            Self::Call { name, arguments, .. } => call(app, name, &arguments).await,
        }
    }
}

async fn list(app: &App) -> Result<Exit, Failure> {
    toolset::settle(app).await;
    lists::tools::list(app, &toolset::chosen(app).await?);
    Ok(Exit::Finished)
}

async fn call(app: &App, name: String, arguments: &[String]) -> Result<Exit, Failure> {
    let names = std::iter::once(name.as_str()).chain((name != READ_FILE).then_some(READ_FILE));
    if !toolset::is_built_in(&name, app)? {
        // Its definition may have changed since it was pinned.
        mcp::settle(app, &[&name]).await;
    }
    let Picked { tools, agents } = toolset::by_name(names, app).await?;
    if !agents.is_empty() {
        let what = format!("{name} is an agent, which only another agent can call");
        let advice = format!("start an agent that may call it: archon run --tools {name} TASK");
        return Err(Failure::usage(what, advice));
    }
    let arguments = read_arguments(arguments)?;
    let writes = tools[0].spec().annotations.permissions.iter().any(|needed| needed == "fs_write");
    let engine = engine(app, tools)?;
    let ids = Arc::new(RandomIds);
    let (run, session) = (RunId::new(ids.fresh("run")), SessionId::new(ids.fresh("session")));
    let context = Context::new(run, session, Arc::new(SystemClock), ids);
    let listener = interrupt::listen(context.cancel.clone(), app.output.clone());
    app.output.wait(&name);
    // A tool changes no file that its session has not read: here it is the person who knows the file.
    if let Some(path) = arguments.get("path").filter(|_| writes) {
        engine.execute_tool_call(READ_FILE, json!({ "path": path }), &context).await;
    }
    let result = engine.execute_tool_call(&name, arguments, &context).await;
    listener.abort();
    app.output.stop_waiting();
    report(app, &name, &result)
}

/// The tool that reads a file. A tool changes only files that its session has read.
const READ_FILE: &str = "read_file";

/// Returns an engine with the rules of a run, which asks the person at the terminal.
fn engine(app: &App, tools: Tools) -> Result<ToolEngine, Failure> {
    let options = engine_options(app, &tools)?;
    let registry = ToolRegistry::new();
    registry.register_all(tools).map_err(|e| Failure::failed(e.to_string(), "choose other tools"))?;
    let engine = ToolEngine::new(registry).with_options(options);
    Ok(match Asking::of(app) {
        Asking::Here => engine.with_approver(Prompt::of(app).for_a_call()),
        // A call without a run cannot wait.
        Asking::Later | Asking::Nobody => engine,
    })
}

fn report(app: &App, name: &str, result: &ToolResult) -> Result<Exit, Failure> {
    let missing = find_missing_rule(result);
    if app.json || missing.is_none() {
        app.item(result, || result.text());
    }
    if let Some(rule) = missing {
        let what = format!("{name} needs an approval, but no person can be asked here");
        let at_terminal = "at a terminal, without --json and --ask-later";
        let advice = match rule.is_empty() {
            true => format!("call it {at_terminal}"),
            false => format!("allow it with --allow {}, or call it {at_terminal}", quoted(&rule)),
        };
        return Err(Failure::new(Exit::NotAllowed, what, advice));
    }
    Ok(match result.status {
        ToolResultStatus::Success => Exit::Finished,
        ToolResultStatus::Cancelled => Exit::Interrupted,
        _ => Exit::Failed,
    })
}

/// Parses one JSON object, or `name=value` pairs. A value is JSON if it can be parsed, otherwise text.
fn read_arguments(words: &[String]) -> Result<Json, Failure> {
    let advice = "write them as a JSON object, '{\"expression\": \"2+2\"}', or as pairs, expression=2+2";
    if let [word] = words
        && word.trim_start().starts_with('{')
    {
        return serde_json::from_str(word)
            .map_err(|e| Failure::usage(format!("the arguments are not a JSON object: {e}"), advice));
    }
    let pair = |word: &String| {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("the argument {word:?} has no name"), advice))?;
        let text = || Json::String(value.to_owned());
        Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| text())))
    };
    words.iter().map(pair).collect::<Result<serde_json::Map<_, _>, _>>().map(Json::Object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object_or_pairs() {
        for (words, expected) in [
            (&[][..], Some(json!({}))),
            (&[r#"{"a": 1, "b": "x"}"#], Some(json!({"a": 1, "b": "x"}))),
            (&["a=1", "b=x y", "c=", "d=2+2"], Some(json!({"a": 1, "b": "x y", "c": "", "d": "2+2"}))),
            (&["{a: 1}"], None),
            (&["a"], None),
        ] {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            assert_eq!(read_arguments(&words).ok(), expected, "{words:?}");
        }
    }
}
