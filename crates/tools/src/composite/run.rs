//! Runs a composite: starts each call when the calls that it waits for have ended, and passes results on.

use std::time::Duration;

use archon_types::{Context, Json, Preview, Tool, ToolContext, ToolError, ToolResult, ToolResultStatus};
use futures_util::{
    StreamExt,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use serde_json::{Map, json};

use super::{CompositeTool, ForEachItem, OnNodeFailure, ToolNode, parameters::required};
use crate::{
    ToolEngine,
    arguments::call_beginning,
    builtin::tool_methods,
    guards::millis,
    output::{self, error_type},
    retry,
};

/// Maximum number of items of a list that are processed concurrently.
const ITEMS_AT_ONCE: usize = 8;

type Arguments = Map<String, Json>;

impl CompositeTool {
    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let run = context.below(&self.spec.name)?;
        let states = self.composite.nodes.iter().map(|_| State::Waiting).collect();
        let running = Running { tool: self, arguments, context, run, states, trace: Vec::new() };
        Ok(running.until_end().await)
    }
}

impl Tool for CompositeTool {
    tool_methods!(run);

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let steps: Vec<_> = self.composite.nodes.iter().map(|node| self.step(node)).collect();
        let arguments = call_beginning(arguments);
        let text = format!("Run {} with {arguments}. Its steps: {}", self.spec.name, steps.join("; "));
        Ok(Some(Preview::new(text)))
    }

    fn calls(&self) -> &[String] {
        &self.tools
    }
}

/// One run of a composite.
struct Running<'r> {
    tool: &'r CompositeTool,
    arguments: Json,
    context: &'r ToolContext,
    run: Context,
    states: Vec<State>,
    trace: Vec<Json>,
}

enum State {
    Waiting,
    Running,
    Done(Output),
    /// The call failed; the other calls go on if its `on_failure` is `Continue`.
    Failed,
    /// The call was not made, because a result that it needs is missing.
    Skipped,
}

/// A call's result, as text and as JSON.
struct Output {
    text: String,
    value: Json,
}

/// An error of a call.
struct Failure {
    kind: String,
    text: String,
}

/// A call that has ended.
struct Ended {
    node: usize,
    outcome: Result<Output, Failure>,
    calls: u32,
    took: Duration,
}

/// The reason why a call cannot be made.
enum Lacking {
    /// A result that the call needs is missing; the text names the call that should have given the result.
    NoResult(String),
    /// A result that the call needs has no value at the JSON pointer of the mapping.
    NoValue(Failure),
}

impl<'r> Running<'r> {
    async fn until_end(mut self) -> ToolResult {
        let mut running = FuturesUnordered::new();
        let mut alone = false;
        loop {
            while let Some(node) = self.startable(running.is_empty(), alone) {
                match self.arguments(node) {
                    Ok(arguments) => {
                        alone = !self.may_run_in_parallel(node);
                        running.push(self.started(node, arguments));
                    }
                    Err(Lacking::NoResult(why)) => self.skip(node, &why),
                    Err(Lacking::NoValue(failure)) => {
                        let (calls, took) = (0, Duration::ZERO);
                        if let Some(end) = self.settle(Ended { node, outcome: Err(failure), calls, took }) {
                            return end;
                        }
                    }
                }
            }
            let Some(ended) = running.next().await else { break };
            alone = false;
            // Calls still running are dropped with their futures.
            if let Some(end) = self.settle(ended) {
                return end;
            }
        }
        self.result()
    }

    /// Returns the first call that waits for no unfinished call and may run beside the running calls.
    fn startable(&self, nothing_runs: bool, alone: bool) -> Option<usize> {
        let is_settled = |node: &usize| !matches!(self.states[*node], State::Waiting | State::Running);
        (0..self.states.len()).find(|node| {
            matches!(self.states[*node], State::Waiting)
                && self.tool.waits_for[*node].iter().all(is_settled)
                && (nothing_runs || !alone && self.may_run_in_parallel(*node))
        })
    }

    fn may_run_in_parallel(&self, node: usize) -> bool {
        let tool = self.tool.engine.registry().get(&self.node(node).tool);
        tool.is_some_and(|tool| tool.spec().annotations.concurrency_safe)
    }

    fn started(&mut self, place: usize, arguments: Arguments) -> BoxFuture<'r, Ended> {
        self.states[place] = State::Running;
        let node = self.node(place);
        self.context.on_progress(format!("{}: {}\n", node.id, node.tool));
        let at_once = if self.may_run_in_parallel(place) { ITEMS_AT_ONCE } else { 1 };
        let mut run = self.run.clone();
        let tool = self.tool.engine.registry().get(&node.tool);
        run.agreed_above = self.context.is_agreed && tool.is_some_and(|tool| self.tool.covers(tool.spec()));
        let call = NodeCall { engine: &self.tool.engine, node, run };
        Box::pin(async move {
            let began = call.run.clock.now();
            let (outcome, calls) = match &call.node.for_each {
                None => call.once(arguments).await,
                Some(each) => call.each(each, arguments, at_once).await,
            };
            Ended { node: place, outcome, calls, took: call.run.clock.now().since(began) }
        })
    }

    /// Builds the arguments of a call: constants, arguments of the composite, and mapped results.
    fn arguments(&self, place: usize) -> Result<Arguments, Lacking> {
        let node = self.node(place);
        let mut arguments = node.arguments.clone();
        for source in self.tool.sources.iter().filter(|source| source.node == node.id) {
            if let Some(value) = self.arguments.get(&source.parameter) {
                arguments.insert(source.argument.clone(), value.clone());
            }
        }
        let spec = self.tool.engine.registry().get(&node.tool).map(|tool| tool.spec().clone());
        let needed = spec.as_ref().map(required).unwrap_or_default();
        let is_needed = |argument: &str| {
            needed.contains(&argument) || node.for_each.as_ref().is_some_and(|each| each.argument == argument)
        };
        for (other, from) in self.tool.composite.nodes.iter().enumerate() {
            for mapping in from.gives.iter().filter(|mapping| mapping.node == node.id) {
                let State::Done(output) = &self.states[other] else {
                    if is_needed(&mapping.argument) {
                        return Err(Lacking::NoResult(format!("'{}' has no result", from.id)));
                    }
                    continue;
                };
                let wants_text = spec
                    .as_ref()
                    .is_some_and(|spec| spec.parameters["properties"][&mapping.argument]["type"] == "string")
                    && node.for_each.as_ref().is_none_or(|each| each.argument != mapping.argument);
                match output.at(&mapping.pointer, wants_text) {
                    Some(value) => drop(arguments.insert(mapping.argument.clone(), value)),
                    None if is_needed(&mapping.argument) => {
                        return Err(Lacking::NoValue(Failure {
                            kind: "not_found".to_owned(),
                            text: format!("the result of '{}' has nothing at '{}'", from.id, mapping.pointer),
                        }));
                    }
                    None => {}
                }
            }
        }
        Ok(arguments)
    }

    fn skip(&mut self, place: usize, why: &str) {
        self.states[place] = State::Skipped;
        let node = self.node(place);
        self.trace.push(json!({ "node": node.id, "tool": node.tool, "status": "left_out", "error": why }));
    }

    /// Records how a call ended. Returns the composite's result if the failure of the call ends the
    /// composite.
    fn settle(&mut self, ended: Ended) -> Option<ToolResult> {
        let node = self.node(ended.node);
        let mut entry = json!({
            "node": node.id, "tool": node.tool, "status": "done", "calls": ended.calls, "ms": millis(ended.took),
        });
        match ended.outcome {
            Ok(output) => {
                self.states[ended.node] = State::Done(output);
                self.trace.push(entry);
                None
            }
            Err(failure) => {
                self.states[ended.node] = State::Failed;
                entry["status"] = "failed".into();
                entry["error"] = failure.text.as_str().into();
                self.trace.push(entry);
                let goes_on = node.on_failure == OnNodeFailure::Continue;
                (!goes_on).then(|| {
                    let text =
                        format!("The step '{}' (tool '{}') failed: {}", node.id, node.tool, failure.text);
                    self.failed(&failure.kind, &text)
                })
            }
        }
    }

    fn result(&mut self) -> ToolResult {
        let outputs: Vec<(usize, &str)> = self
            .tool
            .composite
            .output_ids()
            .into_iter()
            .filter_map(|id| Some((self.tool.composite.nodes.iter().position(|node| node.id == id)?, id)))
            .collect();
        let done = |place: usize| match &self.states[place] {
            State::Done(output) => Some(output),
            _ => None,
        };
        let text = match outputs.as_slice() {
            [(one, _)] => done(*one).map(|output| output.text.clone()),
            several => {
                let values: Map<_, _> = several
                    .iter()
                    .filter_map(|(place, id)| Some(((*id).to_owned(), done(*place)?.value.clone())))
                    .collect();
                (!values.is_empty()).then(|| Json::from(values).to_string())
            }
        };
        match text {
            Some(text) => ToolResult::success(text).with_metadata("trace", std::mem::take(&mut self.trace)),
            None => {
                let why: Vec<_> = self.trace.iter().filter(|entry| entry["status"] != "done").collect();
                let why = why.first().map(|entry| format!("{}: {}", entry["node"], entry["error"]));
                self.failed("execution_error", &format!("There is no result. {}", why.unwrap_or_default()))
            }
        }
    }

    fn failed(&mut self, kind: &str, text: &str) -> ToolResult {
        let mut partial = Map::new();
        for (node, state) in self.tool.composite.nodes.iter().zip(&self.states) {
            if let State::Done(output) = state {
                partial.insert(node.id.clone(), output.value.clone());
            }
        }
        let done: Vec<&str> = partial.keys().map(String::as_str).collect();
        let before =
            if done.is_empty() { String::new() } else { format!(" Done before: {}.", done.join(", ")) };
        let text = format!("{}.{before}", text.trim_end_matches(['.', ' ']));
        output::error_of_type(kind, text)
            .with_metadata("trace", std::mem::take(&mut self.trace))
            .with_metadata("partial_results", partial)
    }

    fn node(&self, place: usize) -> &'r ToolNode {
        &self.tool.composite.nodes[place]
    }
}

/// A call of one tool through the engine.
struct NodeCall<'r> {
    engine: &'r ToolEngine,
    node: &'r ToolNode,
    run: Context,
}

impl NodeCall<'_> {
    /// Calls the tool, with retries. Returns the last result and the number of calls that were made.
    async fn once(&self, arguments: Arguments) -> (Result<Output, Failure>, u32) {
        let tries = match self.node.on_failure {
            OnNodeFailure::Retry(times) => times.saturating_add(1),
            _ => 1,
        };
        let mut calls = 0;
        loop {
            calls += 1;
            let arguments = Json::from(arguments.clone());
            let may_repeat = self.may_repeat();
            let result = self.engine.execute_tool_call(&self.node.tool, arguments, &self.run).await;
            if !result.is_error() {
                return (Ok(Output::of(&result)), calls);
            }
            // A call that may have had a side effect is never repeated silently.
            if !may_repeat && is_unknown(&result) {
                return (Err(Failure::in_doubt(&result)), calls);
            }
            let delay = self.engine.options().retry.delay_before(calls + 1);
            if calls >= tries || retry::wait(&*self.run.clock, delay, &self.run.cancel).await {
                return (Err(Failure::of(&result)), calls);
            }
        }
    }

    /// Returns whether the tool, as it is registered now, may run twice.
    fn may_repeat(&self) -> bool {
        let tool = self.engine.registry().get(&self.node.tool);
        tool.is_some_and(|tool| {
            let annotations = &tool.spec().annotations;
            annotations.effect.may_repeat() && !annotations.agent
        })
    }

    /// Calls the tool for all items of a list; the results are in the list's order.
    async fn each(
        &self,
        each: &ForEachItem,
        arguments: Arguments,
        at_once: usize,
    ) -> (Result<Output, Failure>, u32) {
        let Some(Json::Array(items)) = arguments.get(&each.argument).cloned() else {
            let text = format!("'{}' is not a list", each.argument);
            return (Err(Failure { kind: "invalid_parameters".to_owned(), text }), 0);
        };
        let one = |(number, item): (usize, Json)| {
            let mut arguments = arguments.clone();
            async move {
                let Some(value) = item.pointer(&each.pointer) else {
                    let text =
                        format!("item {number} of '{}' has nothing at '{}'", each.argument, each.pointer);
                    return (Err(Failure { kind: "not_found".to_owned(), text }), 0);
                };
                arguments.insert(each.argument.clone(), value.clone());
                let (result, calls) = self.once(arguments).await;
                let named = |failure: Failure| Failure {
                    text: format!("item {number}: {}", failure.text),
                    ..failure
                };
                (result.map_err(named), calls)
            }
        };
        let mut results = stream::iter(items.into_iter().enumerate().map(one)).buffered(at_once);
        let (mut values, mut calls) = (Vec::new(), 0);
        while let Some((result, more)) = results.next().await {
            calls += more;
            match result {
                Ok(output) => values.push(output.value),
                Err(_) if self.node.on_failure == OnNodeFailure::Continue => {}
                Err(failure) => return (Err(failure), calls),
            }
        }
        let value = Json::from(values);
        (Ok(Output { text: value.to_string(), value }), calls)
    }
}

impl Output {
    fn of(result: &ToolResult) -> Self {
        let text = result.text();
        let value = serde_json::from_str(&text).unwrap_or_else(|_| Json::from(text.as_str()));
        Self { text, value }
    }

    /// Returns the part of the result at a JSON pointer; if `wants_text`, as a JSON string.
    fn at(&self, pointer: &str, wants_text: bool) -> Option<Json> {
        if wants_text && pointer.is_empty() {
            return Some(self.text.as_str().into());
        }
        let value = self.value.pointer(pointer)?;
        Some(if wants_text && !value.is_string() { value.to_string().into() } else { value.clone() })
    }
}

/// Returns whether the effect of a failed call is unknown, for instance because the call was cut off.
fn is_unknown(result: &ToolResult) -> bool {
    result.status == ToolResultStatus::Timeout
        || matches!(error_type(result), Some("panic" | IN_DOUBT))
        || result.metadata.contains_key("left_behind")
}

/// The error type of a call whose effect is unknown: the same as for a call of a run.
const IN_DOUBT: &str = "in_doubt";

impl Failure {
    /// Makes the error for a failed call that may have taken effect, from the call's result.
    fn in_doubt(result: &ToolResult) -> Self {
        let Self { text, .. } = Self::of(result);
        let text = format!(
            "{}. Its effect is unknown and it was not run again: check what it did before you repeat it",
            text.lines().next().unwrap_or_default().trim_end_matches(['.', ' '])
        );
        Self { kind: IN_DOUBT.to_owned(), text }
    }

    fn of(result: &ToolResult) -> Self {
        let kind = error_type(result).unwrap_or("execution_error").to_owned();
        let text = result.text();
        let text = text.strip_prefix("Error: ").unwrap_or(&text).to_owned();
        Self { kind, text }
    }
}
