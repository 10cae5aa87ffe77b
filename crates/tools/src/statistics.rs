//! How often each tool was called, how long it took and how often it worked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// What an engine counted of one tool. Calls that a guard refused are not in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolStats {
    /// Calls that ran.
    pub total_calls: u64,
    /// Those that did what was asked.
    pub successful_calls: u64,
    /// Time of all calls together.
    pub total_time: Duration,
    /// The shortest call.
    pub min_time: Duration,
    /// The longest call.
    pub max_time: Duration,
}

impl ToolStats {
    /// Mean time of a call; zero without calls.
    pub fn avg_time(&self) -> Duration {
        let calls = u32::try_from(self.total_calls).unwrap_or(u32::MAX);
        self.total_time.checked_div(calls).unwrap_or_default()
    }

    /// Share of the calls that did what was asked, 0 to 1; 0 without calls.
    pub fn success_rate(&self) -> f64 {
        if self.total_calls == 0 { 0.0 } else { self.successful_calls as f64 / self.total_calls as f64 }
    }

    fn count(&mut self, took: Duration, succeeded: bool) {
        self.min_time = if self.total_calls == 0 { took } else { self.min_time.min(took) };
        self.max_time = self.max_time.max(took);
        self.total_time = self.total_time.saturating_add(took);
        self.total_calls += 1;
        self.successful_calls += u64::from(succeeded);
    }
}

/// The counts of one engine and its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statistics(Arc<Mutex<BTreeMap<String, ToolStats>>>);

impl Statistics {
    pub(crate) fn count(&self, tool: &str, took: Duration, succeeded: bool) {
        let mut tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tools.get_mut(tool) {
            Some(stats) => stats.count(took, succeeded),
            None => tools.entry(tool.to_owned()).or_default().count(took, succeeded),
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<String, ToolStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TE-35
    #[test]
    fn calls_are_counted_and_timed() {
        let statistics = Statistics::default();
        for (ms, worked) in [(30, true), (10, false), (20, true), (20, true)] {
            statistics.count("t", Duration::from_millis(ms), worked);
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
}
