//! `archon tools`: lists the tools of an agent, and calls one without a model.

use std::sync::Arc;

use archon::{
    RandomIds, SystemClock,
    tools::{EngineOptions, ToolEngine, ToolRegistry},
    types::{Context, Ids, Json, RunId, SessionId, ToolResultStatus},
};
use clap::Subcommand;
use serde_json::json;

use super::ToolFlags;
use crate::{
    app::App,
    config::Settings,
    exit::Exit,
    failure::Failure,
    interrupt,
    text::one_line,
    toolset::{self, Picked},
};

/// Arguments of `archon tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// The tools that an agent gets
    List {
        #[command(flatten)]
        flags: ToolFlags,
    },
    /// Call a tool and print its result
    Call {
        #[command(flatten)]
        flags: ToolFlags,
        /// The tool's name
        name: String,
        /// Its arguments: a JSON object, or NAME=VALUE pairs
        #[arg(value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
}

impl ToolsCommand {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let (Self::List { flags } | Self::Call { flags, .. }) = self;
        flags.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::List { .. } => list(app),
            Self::Call { name, arguments, .. } => call(app, name, &arguments).await,
        }
    }
}

fn list(app: &App) -> Result<Exit, Failure> {
    let Picked { tools, agents } = toolset::chosen(app)?;
    for tool in tools {
        let spec = tool.spec();
        app.item(spec, || format!("{:<12}  {}", spec.name, one_line(&spec.description, 100)));
    }
    for name in agents {
        let described = app.config.settings.agents.as_ref().and_then(|agents| agents.get(&name));
        let about = described.map(|agent| agent.description.clone()).unwrap_or_default();
        app.item(&json!({"name": name, "description": about, "agent": true}), || {
            format!("{name:<12}  {}", one_line(&about, 100))
        });
    }
    Ok(Exit::Finished)
}

async fn call(app: &App, name: String, arguments: &[String]) -> Result<Exit, Failure> {
    let Picked { tools, agents } = toolset::recorded(std::iter::once(name.as_str()), app)?;
    if !agents.is_empty() {
        let what = format!("{name} is an agent, which only another agent can call");
        return Err(Failure::usage(
            what,
            format!("start an agent that may call it: archon run --tools {name} TASK"),
        ));
    }
    let arguments = read_arguments(arguments)?;
    let registry = ToolRegistry::new();
    registry.register_all(tools).map_err(|e| Failure::failed(e.to_string(), "choose other tools"))?;
    let ids = Arc::new(RandomIds);
    let (run, session) = (RunId::new(ids.fresh("run")), SessionId::new(ids.fresh("session")));
    let context = Context::new(run, session, Arc::new(SystemClock), ids);
    let listener = interrupt::listen(context.cancel.clone(), app.output.clone());
    app.output.wait(&name);
    // A person who types a call agrees to it. A tool with side effects is called in a run, which asks.
    let engine = ToolEngine::new(registry).with_options(EngineOptions::default().granting(["network"]));
    let result = engine.execute_tool_call(&name, arguments, &context).await;
    listener.abort();
    app.output.stop_waiting();
    app.item(&result, || result.text());
    Ok(match result.status {
        ToolResultStatus::Success => Exit::Finished,
        ToolResultStatus::Cancelled => Exit::Interrupted,
        _ => Exit::Failed,
    })
}

/// Parses one JSON object, or `name=value` pairs whose values are JSON if they parse, else text.
fn read_arguments(words: &[String]) -> Result<Json, Failure> {
    let advice = "say them as a JSON object, '{\"expression\": \"2+2\"}', or as pairs, expression=2+2";
    if let [word] = words
        && word.trim_start().starts_with('{')
    {
        return serde_json::from_str(word)
            .map_err(|e| Failure::usage(format!("the arguments are no JSON object: {e}"), advice));
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
