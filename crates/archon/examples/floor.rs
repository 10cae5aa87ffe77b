//! The floor under the cost of a turn: the least that does what `bench_driver.rs` does, written by hand. One request text
//! that only grows, and answers read with borrowed strings; no journal, no checks of arguments, no time limits, no
//! cancellation and no events. `cargo xtask accept speed` counts both.
//!
//! `floor serve` is the mock model server for both: `driver/models.rs`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

#[path = "driver/contract.rs"]
mod driver;
#[path = "driver/models.rs"]
mod models;

use std::{borrow::Cow, sync::Arc};

use anyhow::{Context as _, Result, bail};
use driver::{Args, Counters, PROMPT, SYSTEM, drive};
use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return models::serve().await;
    }
    let args = Args::parse()?;
    let counters = Counters::new();
    let http = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/chat/completions", args.base_url);
    let agent = |model: &str| {
        let start = start(model);
        Ok(Agent { http: http.clone(), url: url.clone(), start, counters: counters.clone() })
    };
    drive(&args, counters.clone(), agent, run).await
}

#[derive(Clone)]
struct Agent {
    http: reqwest::Client,
    url: String,
    /// The text of a request, up to the first message that is not in every one.
    start: String,
    counters: Arc<Counters>,
}

fn start(model: &str) -> String {
    let tool = json!({
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers",
            "parameters": {
                "type": "object",
                "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
                "required": ["a", "b"],
            },
        },
    });
    let messages =
        [json!({ "role": "system", "content": SYSTEM }), json!({ "role": "user", "content": PROMPT })];
    let request = json!({
        "model": model,
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": [tool],
        "messages": messages,
    });
    // Without the end of the list and of the object.
    let text = request.to_string();
    text.trim_end_matches("]}").to_owned()
}

/// A call of the tool, put together from its pieces.
#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// An answer, put together from its pieces.
#[derive(Default)]
struct Answer {
    text: String,
    calls: Vec<Call>,
    finish: String,
}

async fn run(agent: Agent) -> Result<()> {
    let mut request = agent.start.clone();
    loop {
        let answer = ask(&agent, format!("{request}]}}")).await?;
        match answer.finish.as_str() {
            "stop" => return Ok(()),
            "tool_calls" => append(&mut request, &answer, &agent.counters)?,
            other => bail!("the answer ended with {other:?}"),
        }
    }
}

async fn ask(agent: &Agent, request: String) -> Result<Answer> {
    let post = agent.http.post(&agent.url).header("content-type", "application/json").body(request);
    let response = post.send().await?.error_for_status()?;
    let mut events = response.bytes_stream().eventsource();
    let mut answer = Answer::default();
    // To the end of the body, so that the connection can be used again.
    while let Some(event) = events.next().await {
        let event = event?;
        if event.data != "[DONE]" {
            let chunk: Chunk<'_> = serde_json::from_str(&event.data)?;
            for choice in chunk.choices {
                take(&mut answer, choice, &agent.counters);
            }
        }
    }
    Ok(answer)
}

fn take(answer: &mut Answer, choice: Choice<'_>, counters: &Counters) {
    if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
        counters.count_delta();
        answer.text.push_str(&text);
    }
    for piece in choice.delta.tool_calls {
        if answer.calls.len() <= piece.index {
            answer.calls.resize_with(piece.index + 1, Call::default);
        }
        let call = &mut answer.calls[piece.index];
        call.id.push_str(&piece.id.unwrap_or_default());
        call.name.push_str(&piece.function.name.unwrap_or_default());
        call.arguments.push_str(&piece.function.arguments.unwrap_or_default());
    }
    if let Some(finish) = choice.finish_reason {
        finish.clone_into(&mut answer.finish);
    }
}

/// Appends the answer and what its calls gave to the text of the request.
fn append(request: &mut String, answer: &Answer, counters: &Counters) -> Result<()> {
    let quote = |text: &str| serde_json::to_string(text);
    *request += &format!(r#",{{"role":"assistant","content":{},"tool_calls":["#, quote(&answer.text)?);
    for (at, Call { id, name, arguments }) in answer.calls.iter().enumerate() {
        *request += &format!(
            r#"{}{{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}}}"#,
            if at == 0 { "" } else { "," },
            quote(id)?,
            quote(name)?,
            quote(arguments)?
        );
    }
    *request += "]}";
    for Call { id, name, arguments } in &answer.calls {
        if name != "add" {
            bail!("there is no tool {name:?}");
        }
        let Numbers { a, b } = serde_json::from_str(arguments).context("the arguments of the call")?;
        let sum = counters.add(a, b);
        *request += &format!(r#",{{"role":"tool","tool_call_id":{},"content":"{sum}"}}"#, quote(id)?);
    }
    Ok(())
}

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Vec<Piece<'a>>,
}

/// A piece of a call.
#[derive(Deserialize)]
struct Piece<'a> {
    index: usize,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<Cow<'a, str>>,
}
