//! Detects runs without progress: repeated calls, and turns in which every call failed.

use std::collections::BTreeMap;

use archon_types::{ContentHash, ExecutionLimits, Json, LimitReached, ToolCall, ToolResultStatus, metadata};
use serde::{Deserialize, Serialize, Serializer};

use crate::CallState;

/// Counts of equal calls and of failing turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repetition {
    /// Number of equal calls so far, by the hash of the call.
    repeats: BTreeMap<u64, u32>,
    most: u32,
    /// Number of turns in a row in which every call failed.
    failing_turns: u32,
}

impl Repetition {
    /// Counts the calls of a turn and returns a hint for the model, if one is due. Calls that never ran
    /// do not count.
    pub(crate) fn turn_ended(&mut self, calls: &[CallState], limits: &ExecutionLimits) -> Option<String> {
        let (mut repeated, mut failed, mut ran) = (false, true, false);
        for call in calls {
            let Some((result, _)) = call.result() else { continue };
            if result.status == ToolResultStatus::Cancelled {
                continue;
            }
            ran = true;
            failed &= result.is_error();
            let is_new = result.metadata.get(metadata::IS_NEW) == Some(&Json::Bool(true));
            repeated |= !is_new && self.count(&call.call);
        }
        match ran && failed {
            true => self.failing_turns += 1,
            false if ran => self.failing_turns = 0,
            false => {}
        }
        if repeated {
            return Some(REPEATED.to_owned());
        }
        (limits.stuck_after > 0 && self.failing_turns >= limits.stuck_after).then(|| {
            let turns = std::mem::take(&mut self.failing_turns);
            format!("The last {turns} turns brought no progress: every tool call failed. {STUCK}")
        })
    }

    /// Resets the counts of all calls except `call`, because `call` has an effect, after which the other
    /// calls may give new results.
    pub(crate) fn world_changed_by(&mut self, call: &ToolCall) {
        let key = key(call);
        self.repeats.retain(|k, _| *k == key);
    }

    pub(crate) fn reached(&self, limits: &ExecutionLimits) -> Option<LimitReached> {
        (self.most > limits.max_repeats).then_some(LimitReached::Repeats { max: limits.max_repeats })
    }

    /// Counts a call. Returns true if the same tool was called before with the same arguments.
    fn count(&mut self, call: &ToolCall) -> bool {
        let seen = self.repeats.entry(key(call)).or_default();
        *seen += 1;
        self.most = self.most.max(*seen);
        *seen > 1
    }
}

/// Returns the hash of a call. The order of keys in the arguments does not matter.
fn key(call: &ToolCall) -> u64 {
    ContentHash::of(&(&call.name, Sorted(&call.arguments)))
}

/// Serializes JSON with sorted keys.
struct Sorted<'a>(&'a Json);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            Json::Object(entries) => {
                let mut entries: Vec<_> = entries.iter().map(|(key, value)| (key, Sorted(value))).collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                serializer.collect_map(entries)
            }
            other => other.serialize(serializer),
        }
    }
}

const REPEATED: &str =
    "You already tried this action with the same arguments. Consider a different approach.";
const STUCK: &str = "Try a different tool or a different approach. If there is none, give the best answer \
                     that the information gathered so far allows, and say what is missing.";

#[cfg(test)]
mod tests {
    use archon_types::{CallId, CommandId, Json, Timestamp, ToolResult};
    use serde_json::json;

    use super::*;

    fn turn(arguments: Json, result: ToolResult) -> Vec<CallState> {
        let id = CallId::new(CommandId(0), 0);
        let mut call = CallState::requested(id, ToolCall::new("c", "t", arguments));
        call.finish(result.into(), Timestamp::default());
        vec![call]
    }

    // spec: R-24, TE-31
    #[test]
    fn repeated_call_is_detected_for_any_order_of_arguments() {
        let limits = ExecutionLimits::default();
        let mut seen = Repetition::default();
        let mut told = |arguments| seen.turn_ended(&turn(arguments, "ok".into()), &limits).is_some();
        assert!(!told(json!({"a": 1, "b": {"c": 2, "d": [1, 2]}})));
        assert!(told(json!({"b": {"d": [1, 2], "c": 2}, "a": 1})));
        for other in [json!({"a": 1, "b": {"c": 2, "d": [2, 1]}}), json!({"a": "1"}), json!({"a": 1})] {
            assert!(!told(other));
        }
        assert!(told(json!({"a": 1})));
    }

    #[test]
    fn repeated_call_with_new_output_does_not_count() {
        let limits = ExecutionLimits::default();
        let mut seen = Repetition::default();
        let mut read = |result| {
            let is_pointed_out = seen.turn_ended(&turn(json!({"id": "cmd_1"}), result), &limits).is_some();
            (is_pointed_out, seen.reached(&limits).is_some())
        };
        for _ in 0..9 {
            assert_eq!(read(ToolResult::from("more").with_metadata(metadata::IS_NEW, true)), (false, false));
        }
        assert_eq!(read("nothing".into()), (false, false));
        assert_eq!([read("nothing".into()), read("nothing".into())], [(true, false); 2]);
        assert_eq!(read("nothing".into()), (true, true));
    }

    // spec: R-30
    #[test]
    fn turns_in_which_every_call_fails_are_pointed_out() {
        let limits = ExecutionLimits::default();
        let mut seen = Repetition::default();
        let mut n = 0;
        let mut told = |result: ToolResult| {
            n += 1;
            seen.turn_ended(&turn(json!({ "n": n }), result), &limits)
        };
        let failed = || ToolResult::error("no");
        assert_eq!((told(failed()), told(failed())), (None, None));
        assert_eq!(told("ok".into()), None);
        assert_eq!((told(failed()), told(failed())), (None, None));
        assert_eq!(told(ToolResult::cancelled("Cancelled")), None, "neither progress nor failure");
        let text = told(failed()).expect("three in a row");
        assert!(text.starts_with("The last 3 turns brought no progress"), "{text}");
        assert_eq!(told(failed()), None, "said once, then counted anew");
    }
}
