//! Circuit breakers: a tool that keeps failing is blocked for a while.

use std::collections::BTreeMap;

use archon_types::{CircuitBreaker, Json, RunConfig, Timestamp, ToolResult, ToolResultStatus, metadata};
use serde::{Deserialize, Serialize};

use crate::calls::refusal;

/// The failures of a run's tools, by tool name. A tool whose last call succeeded has no entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Circuits(BTreeMap<String, Circuit>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Circuit {
    /// Number of failures in a row.
    failures: u32,
    /// The tool is blocked until this time. After it, one call tests whether the tool works again.
    open_until: Option<Timestamp>,
}

/// The state of a tool's circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Breaker {
    /// The tool may be called.
    Closed {
        /// Number of failures in a row.
        failures: u32,
    },
    /// The tool is blocked.
    Open {
        /// Time at which the block ends.
        until: Timestamp,
    },
    /// The block has ended, and the next call tests whether the tool works again. If that call fails, the tool is
    /// blocked again.
    HalfOpen,
}

impl Circuits {
    /// Returns the states of the breakers of the tools whose last call failed.
    pub(crate) fn states(&self, now: Timestamp) -> BTreeMap<String, Breaker> {
        let state = |circuit: &Circuit| match circuit.open_until {
            Some(until) if now < until => Breaker::Open { until },
            Some(_) => Breaker::HalfOpen,
            None => Breaker::Closed { failures: circuit.failures },
        };
        self.0.iter().map(|(tool, circuit)| (tool.clone(), state(circuit))).collect()
    }

    /// Updates the breaker of `tool` with the result of a call.
    pub(crate) fn ended(&mut self, tool: &str, result: &ToolResult, at: Timestamp, config: &CircuitBreaker) {
        match verdict(result) {
            Verdict::Works => {
                self.0.remove(tool);
            }
            Verdict::Fails => {
                let circuit = self.0.entry(tool.to_owned()).or_default();
                circuit.failures = circuit.failures.saturating_add(1);
                if circuit.failures >= config.max_failures.max(1) {
                    let until = at.as_millis().saturating_add(config.cool_down_ms);
                    circuit.open_until = Some(Timestamp::from_millis(until));
                }
            }
            Verdict::SaysNothing => {}
        }
    }

    /// Returns true if one more failure of the tool opens its breaker.
    pub(crate) fn is_last_try(&self, tool: &str, config: &CircuitBreaker) -> bool {
        let failures = self.0.get(tool).map_or(0, |circuit| circuit.failures);
        failures.saturating_add(1) >= config.max_failures.max(1)
    }

    /// Returns true if the tool is blocked now.
    pub(crate) fn is_open(&self, tool: &str, now: Timestamp) -> bool {
        self.0.get(tool).and_then(|circuit| circuit.open_until).is_some_and(|until| now < until)
    }

    /// Returns true if the next call tests whether the tool works again.
    pub(crate) fn is_half_open(&self, tool: &str, now: Timestamp) -> bool {
        self.0.get(tool).and_then(|circuit| circuit.open_until).is_some_and(|until| now >= until)
    }

    /// Returns the result of a call of a blocked tool.
    pub(crate) fn answer(&self, tool: &str, config: &RunConfig, now: Timestamp) -> ToolResult {
        let mut text = format!("Tool {tool} is temporarily unavailable");
        let stand_in = config.tool(tool).and_then(|spec| {
            let usable = |name: &&String| config.tool(name).is_some() && !self.is_open(name, now);
            spec.alternatives.iter().find(usable)
        });
        if let Some(name) = stand_in {
            text.push_str(&format!(". Tool {name} can do about the same."));
        }
        refusal(text, "circuit_open")
    }
}

/// The meaning of a result for the circuit breaker of its tool.
enum Verdict {
    Works,
    Fails,
    SaysNothing,
}

fn verdict(result: &ToolResult) -> Verdict {
    let kind = || result.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str).unwrap_or_default();
    match result.status {
        ToolResultStatus::Success => Verdict::Works,
        ToolResultStatus::Cancelled => Verdict::SaysNothing,
        _ if NOT_THE_TOOL.contains(&kind()) => Verdict::SaysNothing,
        _ => Verdict::Fails,
    }
}

/// Error types that the tool did not cause: invalid arguments, a refusal, or the death of this process.
const NOT_THE_TOOL: &[&str] =
    &["validation_error", "invalid_parameters", "permission_denied", "not_found", "cancelled", "in_doubt"];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archon_types::{Encoded, ToolError, ToolSpec};
    use serde_json::json;

    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Returns the circuits of a run after these results of one tool, one each second.
    fn after(results: &[ToolResult]) -> Circuits {
        let mut circuits = Circuits::default();
        for (second, result) in (1..).zip(results) {
            circuits.ended("t", result, at(second * 1000), &CircuitBreaker::default());
        }
        circuits
    }

    fn failed() -> ToolResult {
        ToolError::Failed("no".into()).into()
    }

    // spec: ER-06, OB-11
    #[test]
    fn five_failures_in_a_row_open_the_circuit_for_a_minute() {
        let circuits = after(&[failed(), failed(), failed(), failed()]);
        assert!(!circuits.is_open("t", at(4000)));
        let circuits = after(&[failed(), failed(), "ok".into(), failed(), failed(), failed(), failed()]);
        assert!(!circuits.is_open("t", at(7000)), "not in a row");
        let mut circuits = after(&[failed(), failed(), failed(), failed(), ToolResult::timeout(1.0)]);
        assert!(circuits.is_open("t", at(5000)) && circuits.is_open("t", at(64_999)));
        let state = |circuits: &Circuits, ms| circuits.states(at(ms)).get("t").copied();
        assert_eq!(state(&circuits, 64_999), Some(Breaker::Open { until: at(65_000) }));
        assert_eq!(state(&circuits, 65_000), Some(Breaker::HalfOpen));
        assert_eq!(state(&after(&[failed(), failed()]), 9), Some(Breaker::Closed { failures: 2 }));
        assert!(!circuits.is_open("u", at(5000)), "the other tools go on");
        assert!(!circuits.is_half_open("t", at(64_999)) && circuits.is_half_open("t", at(65_000)));
        circuits.ended("t", &failed(), at(66_000), &CircuitBreaker::default());
        assert!(circuits.is_open("t", at(125_999)), "one failure begins another pause");
        circuits.ended("t", &"ok".into(), at(127_000), &CircuitBreaker::default());
        assert_eq!(circuits, Circuits::default(), "one success ends it");
    }

    // spec: ER-06
    #[test]
    fn circuit_breaker_ignores_invalid_arguments_refusals_and_cancels() {
        let errors = [
            ToolError::InvalidArgs("x".into()),
            ToolError::PermissionDenied("x".into()),
            ToolError::NotFound("x".into()),
            ToolError::Cancelled,
        ];
        for error in errors {
            assert_eq!(after(&vec![error.into(); 9]), Circuits::default());
        }
        let refused = ToolResult::error("x").with_metadata(metadata::ERROR_TYPE, "validation_error");
        assert_eq!(after(&vec![refused; 9]), Circuits::default());
    }

    // spec: ER-06, ER-07
    #[test]
    fn circuit_breaker_names_a_working_alternative() {
        let spec = |name: &str| ToolSpec::new(name, "d", json!({"type": "object"}));
        let tools = [spec("t").with_alternatives(["gone", "u", "v"]), spec("u"), spec("v")];
        let mut circuits = after(&[failed(), failed(), failed(), failed(), failed()]);
        let text = |circuits: &Circuits, tools: &[ToolSpec]| {
            let mut config = RunConfig::default();
            config.tools = Arc::new(Encoded::new(tools.to_vec()));
            circuits.answer("t", &config, at(6000)).text()
        };
        let plain = "Tool t is temporarily unavailable";
        assert_eq!(text(&circuits, &[spec("t"), spec("u")]), plain);
        assert_eq!(text(&circuits, &tools), format!("{plain}. Tool u can do about the same."));
        for _ in 0..5 {
            circuits.ended("u", &failed(), at(5000), &CircuitBreaker::default());
        }
        assert_eq!(text(&circuits, &tools), format!("{plain}. Tool v can do about the same."));
    }
}
