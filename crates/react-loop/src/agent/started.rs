//! Builds the first record of a run: its configuration, limits and origin.

use std::{collections::BTreeSet, sync::Arc};

use archon_types::{
    Context, Encoded, ExecutionLimits, FailurePolicy, Json, LoopId, Origin, RetryConfig, RunConfig, RunId,
    RunStarted, TenantId, ThinkingLevel, ToolMode, ToolSpec, TurnTrigger,
};

use super::ReactAgent;
use crate::{fallback, fork::branch_id, text_mode};

impl ReactAgent {
    pub(crate) fn started(
        &self,
        origin: Origin,
        earlier: usize,
        parallel: Option<&RunId>,
        context: &Context,
    ) -> RunStarted {
        let options = &self.options;
        let limits = self.limits(context);
        let may_call = context.depth < limits.max_depth;
        let mut config = self.config_with(limits, may_call);
        config.result_tag =
            (config.tool_mode == ToolMode::Text).then(|| text_mode::mark_of(&context.ids.fresh("mark")));
        config.approvals = context.can_ask.then(|| options.approvals.clone());
        if context.called_by().is_none() {
            config.memory = self.driver.memory.as_ref().and_then(|memory| memory.config());
            config.project_files = self.driver.instructions.as_ref().map(|i| i.files()).unwrap_or_default();
        }
        let is_called = matches!(origin, Origin::CalledBy { .. });
        let mut loop_id = match is_called {
            true => LoopId::new(format!("{}.sub.1", clean(context.session.as_str()))),
            false => loop_id(context, &config, options.config_id.as_deref(), earlier + 1),
        };
        if parallel.is_some() {
            loop_id = branch_id(&loop_id, &context.run);
        }
        let mut started = RunStarted::new(
            context.run.clone(),
            context.session.clone(),
            options.agent_id.clone(),
            loop_id,
            config,
        );
        started.tenant = TenantId::clone(&context.tenant);
        started.origin = origin;
        started.parallel_run = parallel.cloned();
        started.first_trigger = if is_called { TurnTrigger::SubAgent } else { options.first_turn };
        started
    }

    /// Returns the configuration of a run with these limits, without the settings that depend on the context
    /// of the run. The run has agents as tools only if `may_call` is true.
    pub(super) fn config_with(&self, limits: ExecutionLimits, may_call: bool) -> RunConfig {
        let options = &self.options;
        let capabilities = self.driver.provider.capabilities(&options.model);
        let mut config = RunConfig::default();
        self.driver.provider.id().clone_into(&mut config.provider);
        config.model.clone_from(&options.model);
        config.limits = limits;
        (config.tools, config.deferred_tools) = self.tools(may_call);
        let has_tool = |name: &str| config.tools.iter().any(|tool| tool.name == name);
        let notes =
            options.tool_notes.iter().filter(|(tool, _)| has_tool(tool)).map(|(_, note)| note.as_str());
        // The system text of a recorded configuration has its notes already.
        let system = options.system.as_deref().unwrap_or_default();
        let notes = notes.filter(|note| !system.contains(note));
        let parts: Vec<&str> = options.system.as_deref().into_iter().chain(notes).collect();
        config.system = (!parts.is_empty()).then(|| Arc::new(Encoded::new(parts.join("\n\n"))));
        config.options = Arc::new(options.request.clone());
        config.retry = if capabilities.retries { RetryConfig::none() } else { options.retry.clone() };
        config.failure_policy = Some(self.failure_policy());
        config.tool_mode = options.tool_mode.unwrap_or(match capabilities.native_tools {
            true => ToolMode::Native,
            false => ToolMode::Text,
        });
        config.tool_execution = options.tool_execution;
        config.workspace.clone_from(&options.workspace);
        config.expected_output.clone_from(&options.expected_output);
        (config.goal_check, config.output_check) = (options.goal_check, options.output_check);
        config.context.clone_from(&options.context);
        config.reads = capabilities.reads;
        (config.price, config.steering_mode, config.follow_up_mode) =
            (options.price.or(capabilities.price), options.steers, options.follow_ups);
        config
    }

    fn failure_policy(&self) -> FailurePolicy {
        let mut policy = fallback::policy(&self.driver.keys, &self.driver.fallbacks, &self.options.retry);
        policy.tool_retry = self.options.tool_retry.clone();
        policy.circuit_breaker = self.options.breaker;
        policy
    }

    /// Returns the limits of a run: the agent's own limits, narrowed by those of the caller.
    pub(super) fn limits(&self, context: &Context) -> ExecutionLimits {
        context.limits(self.options.limits.clone())
    }

    /// Returns the tools that requests define, and the deferred tools. Neither list has tools that the
    /// options leave out, nor agents if `may_call` is false.
    fn tools(&self, may_call: bool) -> (Arc<Encoded<Vec<ToolSpec>>>, Arc<[ToolSpec]>) {
        let all = self.driver.toolbox.specs();
        let chosen = self.options.tools.as_ref();
        let is_told = |tool: &ToolSpec| {
            chosen.is_none_or(|own| own.contains(&tool.name)) && (may_call || !tool.annotations.agent)
        };
        let is_deferred =
            |tool: &ToolSpec| chosen.is_none() && self.options.deferred_tools.contains(&tool.name);
        let sources = self.options.tool_sources.iter().filter(|_| chosen.is_none());
        let deferred = all.iter().filter(|tool| is_told(tool) && is_deferred(tool)).chain(sources);
        let deferred: Arc<[ToolSpec]> = deferred.map(without_definition).collect();
        let is_offered = |tool: &ToolSpec| is_told(tool) && !is_deferred(tool);
        // The toolbox does not list the tools of sources; a run that names one defines it.
        let named: BTreeSet<&String> = chosen.into_iter().flatten().collect();
        let sourced = named.into_iter().filter_map(|name| self.driver.toolbox.sourced_spec(name));
        let sourced: Vec<ToolSpec> = sourced.filter(is_told).collect();
        match sourced.is_empty() && all.iter().all(is_offered) {
            true => (all, deferred),
            false => {
                let offered = all.iter().filter(|tool| is_offered(tool)).cloned().chain(sourced).collect();
                (Arc::new(Encoded::new(offered)), deferred)
            }
        }
    }
}

/// Returns the part of a deferred tool's spec that the log stores.
fn without_definition(tool: &ToolSpec) -> ToolSpec {
    let mut stored = ToolSpec::new(&tool.name, "", Json::Null)
        .with_annotations(tool.annotations.clone())
        .with_alternatives(tool.alternatives.iter());
    stored.version.clone_from(&tool.version);
    stored
}

/// Returns a loop id `{session}.{config}.{n}`. Dots inside the session id and the configuration name are
/// replaced. `n` is the number of the run in its conversation.
fn loop_id(context: &Context, config: &RunConfig, config_id: Option<&str>, n: usize) -> LoopId {
    let config = match (config_id, config.options.thinking) {
        (Some(id), _) => id.to_owned(),
        (None, ThinkingLevel::Off) => format!("{}-{}", config.provider, config.model),
        (None, level) => {
            format!("{}-{}-{}", config.provider, config.model, format!("{level:?}").to_lowercase())
        }
    };
    LoopId::new(format!("{}.{}.{n}", clean(context.session.as_str()), clean(&config)))
}

fn clean(segment: &str) -> String {
    segment.replace(['.', '/', ':'], "-")
}

#[cfg(test)]
mod tests {
    use archon_testkit::{SeededIds, VirtualClock};

    use super::*;

    // spec: R-32
    #[test]
    fn a_loop_is_named_by_its_session_its_configuration_and_its_number() {
        let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
        let context = Context::new("run_1".into(), "anna.1".into(), clock, ids);
        let mut config = RunConfig::default();
        (config.provider, config.model) = ("openai".into(), "org/model:2.5".into());
        let name = |config: &RunConfig, id, n| loop_id(&context, config, id, n).to_string();
        assert_eq!(name(&config, None, 1), "anna-1.openai-org-model-2-5.1");
        assert_eq!(name(&config, Some("v1.2"), 7), "anna-1.v1-2.7");
        let mut options = archon_types::RequestOptions::default();
        options.thinking = ThinkingLevel::High;
        config.options = Arc::new(options);
        assert_eq!(name(&config, None, 2), "anna-1.openai-org-model-2-5-high.2");
    }
}
