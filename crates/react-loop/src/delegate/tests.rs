//! Tests that no tree of runs spends more than its budget.

use std::sync::Arc;

use archon_types::{
    AssistantMessage, CallId, CommandId, Content, ContextConfig, Effect, Encoded, ExecutionLimits, Message,
    ModelPrice, PromptSource, Record, RecordBody, RunConfig, RunId, RunStarted, Spending, StopReason,
    Timestamp, ToolAnnotations, ToolCall, ToolResult, ToolSpec, Usage,
};
use proptest::prelude::*;
use serde_json::json;

use crate::{CallStage, Machine, Next, ReactMachine, ReactTask};

/// Maximum number of calls of one turn.
const FAN: usize = 3;
/// Maximum number of levels below the root.
const LEVELS: usize = 2;
/// Maximum number of tokens of one model call.
const OUTPUT: u64 = 200;

/// A run of the tree, and the real spending of the run's own model calls.
struct Node {
    machine: ReactMachine,
    depth: usize,
    caller: Option<(usize, CallId)>,
    seq: u64,
    used: Spending,
    largest_call: u64,
}

/// A tree of runs that are driven in random order, as their drivers would drive them.
struct Tree {
    nodes: Vec<Node>,
    price: ModelPrice,
}

impl Tree {
    fn new(tokens: u64, cost: Option<u64>) -> Self {
        let mut limits = ExecutionLimits::default();
        (limits.max_total_tokens, limits.max_cost_micros, limits.max_turns) = (tokens, cost, 5);
        // The test is about leases, so equal calls must not stop the run.
        limits.max_repeats = 1_000;
        let mut tree = Self { nodes: Vec::new(), price: ModelPrice::new(3_000_000, 15_000_000) };
        tree.add("root".into(), limits, None, 0);
        tree
    }

    fn add(&mut self, run: RunId, limits: ExecutionLimits, caller: Option<(usize, CallId)>, depth: usize) {
        let mut config = RunConfig::default();
        config.limits = limits;
        config.price = Some(self.price);
        config.context = Some(ContextConfig::default());
        let mut options = archon_types::RequestOptions::default();
        options.max_tokens = u32::try_from(OUTPUT).ok();
        config.options = Arc::new(options);
        let mut annotations = ToolAnnotations::default();
        (annotations.agent, annotations.effect) = (true, Effect::Idempotent);
        let spec = ToolSpec::new("ask", "Asks.", json!({"type": "object"})).with_annotations(annotations);
        config.tools = Arc::new(Encoded::new(vec![spec]));
        let started = RunStarted::new(run, "s".into(), "a".into(), "l".into(), config);
        let machine = ReactMachine::new(&started, Timestamp::default(), Default::default());
        let node = Node { machine, depth, caller, seq: 0, used: Spending::default(), largest_call: 0 };
        self.nodes.push(node);
        let message = Message::user("do it", Timestamp::default()).into();
        self.apply(self.nodes.len() - 1, RecordBody::MessageAdded { message, source: PromptSource::Prompt });
    }

    fn apply(&mut self, at: usize, body: RecordBody) {
        let node = &mut self.nodes[at];
        node.seq += 1;
        node.machine.apply(&Record { seq: node.seq, at: Timestamp::from_millis(node.seq), body });
    }

    /// Takes one step of one run. Returns false if the run can take no step now.
    fn step(&mut self, at: usize, choice: u8) -> bool {
        if let Some((command, attempt)) = self.nodes[at].machine.open_request() {
            self.answer(at, command, attempt, choice);
            return true;
        }
        match self.nodes[at].machine.next() {
            Next::Done(_) => false,
            Next::Append(body) => {
                self.apply(at, body);
                true
            }
            Next::Do(ReactTask::AskModel { command, attempt, turn }) => {
                let asked =
                    RecordBody::ModelCallStarted { command, attempt, turn, request_hash: String::new() };
                self.apply(at, asked);
                true
            }
            Next::Do(ReactTask::RunCalls) => self.calls(at),
            Next::Do(ReactTask::WaitUntil(_)) => {
                self.apply(at, RecordBody::ClockRead);
                true
            }
            other => panic!("{other:?}"),
        }
    }

    /// Answers the model call, within the reserved amount.
    fn answer(&mut self, at: usize, command: CommandId, attempt: u32, choice: u8) {
        let node = &mut self.nodes[at];
        let input = node.machine.window().request_tokens();
        let usage = Usage { input, output: u64::from(choice) % OUTPUT, ..Usage::default() };
        node.used += Spending::new(usage.total(), self.price.cost(&usage));
        node.largest_call = node.largest_call.max(usage.total());
        let calls = if node.depth < LEVELS { usize::from(choice) % (FAN + 1) } else { 0 };
        let ask = |n| Content::from(ToolCall::new(format!("c{n}"), "ask", json!({"task": n})));
        let content = match calls {
            0 => vec![Content::text("done")],
            n => (0..n).map(ask).collect(),
        };
        let stop_reason = if calls == 0 { StopReason::Stop } else { StopReason::ToolUse };
        let message = AssistantMessage { content, stop_reason, usage, ..AssistantMessage::default() };
        self.apply(at, RecordBody::ModelCallFinished { command, attempt, message: Box::new(message) });
    }

    /// Starts all waiting calls, and ends those whose child runs have ended.
    fn calls(&mut self, at: usize) -> bool {
        let calls = self.nodes[at].machine.calls().to_vec();
        let mut any = false;
        for one in &calls {
            if let Some(granted) = self.nodes[at].machine.lease_due(one.id) {
                self.apply(at, granted);
            }
        }
        for one in calls {
            any |= match one.stage {
                CallStage::Requested { attempts } => self.start(at, one.id, attempts),
                CallStage::Started { .. } => self.end(at, one.id),
                _ => false,
            };
        }
        any
    }

    fn start(&mut self, at: usize, call: CallId, attempt: u32) -> bool {
        let effect = Effect::Idempotent;
        self.apply(at, RecordBody::ToolCallStarted { call, attempt, effect, child_run: None });
        if self.child(at, call).is_none() {
            let lease = self.nodes[at].machine.lease(call).expect("a lease");
            let limits = lease.narrow(self.nodes[at].machine.config().limits.clone());
            let depth = self.nodes[at].depth + 1;
            self.add(format!("run of {at} {call}").into(), limits, Some((at, call)), depth);
        }
        true
    }

    fn end(&mut self, at: usize, call: CallId) -> bool {
        let child = self.child(at, call).expect("it was started");
        let Some(outcome) = self.nodes[child].machine.ended() else { return false };
        let spent = outcome.spending();
        self.apply(at, RecordBody::LeaseSettled { call, child_run: "c".into(), spent });
        let result = Box::new(ToolResult::success("ok"));
        self.apply(at, RecordBody::ToolCallFinished { call, result: result.into() });
        true
    }

    fn child(&self, at: usize, call: CallId) -> Option<usize> {
        self.nodes.iter().position(|node| node.caller == Some((at, call)))
    }

    /// Simulates a crash of the process and resumes all runs.
    fn crash(&mut self) {
        for at in 0..self.nodes.len() {
            if self.nodes[at].machine.ended().is_some() {
                continue;
            }
            self.apply(at, RecordBody::Resumed);
            if let Some((command, attempt)) = self.nodes[at].machine.open_request() {
                self.apply(at, RecordBody::ModelCallLost { command, attempt });
            }
        }
    }

    fn used(&self) -> Spending {
        let mut all = Spending::default();
        self.nodes.iter().for_each(|node| all += node.used);
        all
    }
}

fn cases() -> u32 {
    if std::env::var_os("ARCHON_ACCEPT").is_some_and(|v| v == "full") { 20_000 } else { 200 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    // spec: R-14, MA-28
    #[test]
    fn no_tree_of_runs_spends_more_than_its_root_has(
        tokens in 0u64..40_000,
        cost in prop_oneof![Just(None), (0u64..400_000).prop_map(Some)],
        choices in prop::collection::vec((any::<u8>(), any::<u8>()), 1..120),
    ) {
        let mut tree = Tree::new(tokens, cost);
        let mut crashes = 0;
        for (who, choice) in &choices {
            if *who == 0 {
                crashes += 1;
                tree.crash();
            }
            let at = usize::from(*who) % tree.nodes.len();
            tree.step(at, *choice);
        }
        // Drives everything open to its end.
        for round in 0.. {
            prop_assert!(round < 10_000, "it does not end");
            let any = (0..tree.nodes.len()).fold(false, |any, at| tree.step(at, (round % 7) as u8) | any);
            if !any {
                break;
            }
        }
        let root = tree.nodes[0].machine.ended().expect("the root has ended").spending();
        let used = tree.used();
        // Calls lost in a crash count with the reserved amount.
        let is_counted = root.tokens == used.tokens || (crashes > 0 && root.tokens > used.tokens);
        prop_assert!(is_counted, "nothing is left out or counted twice: {:?} {:?}", root, used);
        prop_assert!(root.cost_micros >= used.cost_micros && (crashes > 0 || root.cost_micros == used.cost_micros), "{:?} {:?}", root, used);
        if let Some(cost) = cost {
            prop_assert!(used.cost_micros <= cost, "{} of {cost}", used.cost_micros);
        }
        // Tokens are known only after a call, so each open call may exceed the budget.
        let in_flight = (FAN.pow(u32::try_from(LEVELS).unwrap())) as u64;
        let largest = tree.nodes.iter().map(|node| node.largest_call).max().unwrap_or_default();
        prop_assert!(used.tokens <= tokens + in_flight * largest, "{} of {tokens}", used.tokens);
        for node in &tree.nodes {
            prop_assert_eq!(&node.machine.ended().map(|o| o.spending()), &Some(node.machine.spending()));
        }
    }
}
