//! Times the tool `tool_search` itself, as a model's call reaches it.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use archon_testkit::{LateTools, SeededIds, VirtualClock};
use archon_tool_search::{DEFINITION_TOKENS, Deferral};
use archon_types::{BoxFuture, Context, Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use serde_json::json;

use crate::bfcl::Questions;

/// Number of sources.
const SOURCES: usize = 20;
/// Number of tools of each source.
const TOOLS: usize = 50;

/// A tool that is only searched for.
struct Listed(ToolSpec);

impl Tool for Listed {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async { Ok(ToolResult::error("it is only searched for")) })
    }
}

/// Searches for each question in 20 sources of 50 tools, and prints the time of the first search, which makes the
/// index, and the median and the 99th percentile of the others. The sources have their tools in memory; those of MCP
/// servers take longer.
pub(crate) fn print(set: &Questions) -> Result<()> {
    let sources = set.tools.chunks(TOOLS).take(SOURCES).enumerate();
    let sources: Vec<Arc<dyn Tool>> = sources.map(|(n, specs)| source(n, specs)).collect();
    let none = std::iter::empty::<&ToolSpec>();
    let deferral = Deferral::new(none, sources, &BTreeSet::new(), DEFINITION_TOKENS, None);
    let [search, _] = deferral.context("no tool is deferred")?.tools;
    let ids = Arc::new(SeededIds::new(1));
    let run = Context::new("run".into(), "session".into(), Arc::new(VirtualClock::new()), ids);
    let context = ToolContext::new(run, "call".into(), "tool_search");
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut times = Vec::new();
    for question in set.by_file.iter().flat_map(|(_, questions)| questions) {
        let begun = Instant::now();
        let result = runtime.block_on(search.call(json!({ "query": question.text }), &context));
        times.push(begun.elapsed());
        let result = result.map_err(|error| anyhow!("the search failed: {error}"))?;
        ensure!(!result.is_error(), "the search failed: {}", result.text());
    }
    ensure!(times.len() > 1, "there are no questions");
    let first = times.remove(0);
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    println!(
        "`tool_search` with {SOURCES} sources of {TOOLS} tools: {} µs at the median, {} µs at the 99th percentile; \
         {} ms for the first",
        at(50),
        at(99),
        first.as_millis()
    );
    Ok(())
}

/// Makes a source with these tools, which are known.
fn source(number: usize, specs: &[ToolSpec]) -> Arc<dyn Tool> {
    let name = format!("service_{number}");
    let tool = |spec: &ToolSpec| {
        let mut spec = spec.clone();
        spec.name = format!("{name}__{}", spec.name);
        Arc::new(Listed(spec)) as Arc<dyn Tool>
    };
    let source = LateTools::new(&name, specs.iter().map(tool).collect());
    source.answer();
    source
}
