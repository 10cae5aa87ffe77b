//! Counts the calls of each tool, their time and their success.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The statistics of one tool, and the numbers of its calls that run or wait now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUsage {
    /// The statistics of the calls that have ended.
    pub stats: ToolStats,
    /// Number of calls that run now.
    pub running: u64,
    /// Number of calls that wait now because of the tool's rate limit.
    pub waiting: u64,
}

/// Statistics of the calls of one tool that have ended. Calls that were refused before they ran do not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolStats {
    /// Number of calls that ran.
    pub total_calls: u64,
    /// Number of calls without an error.
    pub successful_calls: u64,
    /// Number of retries by the engine: of calls outside of runs, and of the calls of a composite. Other calls of a run
    /// are retried by the agent loop, and each attempt counts as a call.
    #[serde(default)]
    pub retries: u64,
    /// Total time of all calls.
    pub total_time: Duration,
    /// Time of the shortest call; zero without calls.
    pub min_time: Duration,
    /// Time of the longest call; zero without calls.
    pub max_time: Duration,
}

impl ToolStats {
    /// Returns the mean time of a call; zero without calls.
    pub fn avg_time(&self) -> Duration {
        let calls = u32::try_from(self.total_calls).unwrap_or(u32::MAX);
        self.total_time.checked_div(calls).unwrap_or_default()
    }

    /// Returns the share of calls without an error, from 0 to 1; 0 without calls.
    pub fn success_rate(&self) -> f64 {
        if self.total_calls == 0 { 0.0 } else { self.successful_calls as f64 / self.total_calls as f64 }
    }

    fn count(&mut self, took: Duration, succeeded: bool, retries: u32) {
        self.retries += u64::from(retries);
        self.min_time = if self.total_calls == 0 { took } else { self.min_time.min(took) };
        self.max_time = self.max_time.max(took);
        self.total_time = self.total_time.saturating_add(took);
        self.total_calls += 1;
        self.successful_calls += u64::from(succeeded);
    }
}

/// The statistics of one engine and its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statistics(Arc<Mutex<BTreeMap<String, ToolUsage>>>);

/// The phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Waiting,
    Running,
}

/// A call that is counted in a phase until this value is dropped.
pub(crate) struct Under<'s> {
    statistics: &'s Statistics,
    tool: &'s str,
    phase: Phase,
}

impl Statistics {
    pub(crate) fn count(&self, tool: &str, took: Duration, succeeded: bool, retries: u32) {
        self.with(tool, |usage| usage.stats.count(took, succeeded, retries));
    }

    /// Counts a call in a phase until the returned value is dropped.
    pub(crate) fn under<'s>(&'s self, tool: &'s str, phase: Phase) -> Under<'s> {
        self.with(tool, |usage| *usage.calls_in(phase) += 1);
        Under { statistics: self, tool, phase }
    }

    /// Returns the statistics of the tools that were called.
    pub(crate) fn all(&self) -> BTreeMap<String, ToolStats> {
        let called = self.usage().into_iter().filter(|(_, usage)| usage.stats.total_calls > 0);
        called.map(|(tool, usage)| (tool, usage.stats)).collect()
    }

    pub(crate) fn usage(&self) -> BTreeMap<String, ToolUsage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with(&self, tool: &str, change: impl FnOnce(&mut ToolUsage)) {
        let mut tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tools.get_mut(tool) {
            Some(usage) => change(usage),
            None => change(tools.entry(tool.to_owned()).or_default()),
        }
    }
}

impl ToolUsage {
    fn calls_in(&mut self, phase: Phase) -> &mut u64 {
        match phase {
            Phase::Waiting => &mut self.waiting,
            Phase::Running => &mut self.running,
        }
    }
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.statistics.with(self.tool, |usage| *usage.calls_in(self.phase) -= 1);
    }
}

/// Formats the statistics in the text format of Prometheus, for an application's metrics page.
pub fn prometheus(usage: &BTreeMap<String, ToolUsage>) -> String {
    type Value = fn(&ToolUsage) -> f64;
    let metrics: [(&str, &str, &str, Value); 6] = [
        ("calls_total", "counter", "Calls that ran.", |u| u.stats.total_calls as f64),
        ("failures_total", "counter", "Calls with an error.", |u| {
            (u.stats.total_calls - u.stats.successful_calls) as f64
        }),
        ("retries_total", "counter", "Retries of calls by the engine.", |u| u.stats.retries as f64),
        ("seconds_total", "counter", "Total time of all calls, in seconds.", |u| {
            u.stats.total_time.as_secs_f64()
        }),
        ("running", "gauge", "Running calls.", |u| u.running as f64),
        ("waiting", "gauge", "Calls that wait for the rate limit of their tool.", |u| u.waiting as f64),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in metrics {
        text.push_str(&format!("# HELP archon_tool_{name} {help}\n# TYPE archon_tool_{name} {kind}\n"));
        for (tool, usage) in usage {
            // Names of tools need no escaping.
            text.push_str(&format!("archon_tool_{name}{{tool=\"{tool}\"}} {}\n", value(usage)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TE-35
    #[test]
    fn calls_are_counted_and_timed() {
        let statistics = Statistics::default();
        for (ms, worked) in [(30, true), (10, false), (20, true), (20, true)] {
            statistics.count("t", Duration::from_millis(ms), worked, 0);
        }
        let stats = &statistics.all()["t"];
        assert_eq!((stats.total_calls, stats.successful_calls), (4, 3));
        assert_eq!((stats.min_time, stats.max_time), (Duration::from_millis(10), Duration::from_millis(30)));
        assert_eq!(
            (stats.total_time, stats.avg_time()),
            (Duration::from_millis(80), Duration::from_millis(20))
        );
        assert_eq!(stats.success_rate(), 0.75);
        assert_eq!(
            (ToolStats::default().avg_time(), ToolStats::default().success_rate()),
            (Duration::ZERO, 0.0)
        );
    }

    // spec: OB-11
    #[test]
    fn statistics_are_exported_in_prometheus_format() {
        let statistics = Statistics::default();
        statistics.count("t", Duration::from_millis(1_500), true, 2);
        statistics.count("t", Duration::from_millis(500), false, 0);
        let running = [statistics.under("t", Phase::Running), statistics.under("u", Phase::Waiting)];
        let text = prometheus(&statistics.usage());
        for line in [
            "# TYPE archon_tool_calls_total counter",
            "archon_tool_calls_total{tool=\"t\"} 2",
            "archon_tool_failures_total{tool=\"t\"} 1",
            "archon_tool_retries_total{tool=\"t\"} 2",
            "archon_tool_seconds_total{tool=\"t\"} 2",
            "archon_tool_running{tool=\"t\"} 1",
            "archon_tool_waiting{tool=\"u\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
        drop(running);
        let text = prometheus(&statistics.usage());
        assert!(text.contains("running{tool=\"t\"} 0") && text.contains("waiting{tool=\"u\"} 0"), "{text}");
        assert_eq!(statistics.all().len(), 1, "what was never called has no statistics");
    }
}
