//! The plan of a run or a team as a drawing.

use std::{collections::BTreeSet, sync::Arc};

use archon_types::{
    CallId, CommandId, Effect, PlanDiff, PlanRecord, Record, RecordBody, RunId, Spending, SubTask, Task,
    TeamRecord, ToolResult,
};
use archon_views::{GraphKind, NodeStatus, RunGraph};
use proptest::prelude::*;

use crate::{
    samples::{model_call_started, started},
    support::at,
};

fn log(bodies: Vec<(u64, RecordBody)>) -> Vec<Arc<Record>> {
    let first = (0, RecordBody::RunStarted(Box::new(started())));
    let record = |(seq, (ms, body))| Arc::new(Record { seq, at: at(ms), body });
    (0..).zip(std::iter::once(first).chain(bodies)).map(record).collect()
}

fn plan(record: PlanRecord) -> RecordBody {
    RecordBody::Plan(Box::new(record))
}

/// The records of a plan that the first request to the planner gave.
fn planned(subtasks: Vec<SubTask>) -> Vec<(u64, RecordBody)> {
    let (command, warnings) = (CommandId(0), vec![]);
    let task = Box::new(Task::new("run_1", "A report").with_subtasks(subtasks));
    vec![
        (0, plan(PlanRecord::PlanningStarted { command, attempt: 0, reason: None })),
        (0, plan(PlanRecord::Planned { command, task, warnings })),
    ]
}

fn step(id: &str, after: &[&str]) -> SubTask {
    SubTask::new(id, format!("Do {id}")).after(after.iter().copied())
}

fn begins(command: u64, child: Option<&str>) -> RecordBody {
    RecordBody::ToolCallStarted {
        call: CallId::new(CommandId(command), 0),
        attempt: 0,
        effect: Effect::ReadOnly,
        child_run: child.map(RunId::new),
    }
}

fn ends(command: u64, result: ToolResult) -> RecordBody {
    RecordBody::ToolCallFinished { call: CallId::new(CommandId(command), 0), result: Arc::new(result) }
}

fn states(graph: &RunGraph) -> Vec<(&str, NodeStatus)> {
    graph.nodes.iter().map(|node| (node.id.as_str(), node.status)).collect()
}

fn critical(graph: &RunGraph) -> Vec<&str> {
    graph.nodes.iter().filter(|node| node.is_critical).map(|node| node.id.as_str()).collect()
}

// spec: EX-10
#[test]
fn graph_of_a_plan_has_states_runs_and_the_critical_path_by_time() {
    let ok = || ToolResult::success("ok");
    let mut bodies = planned(vec![step("a", &[]), step("b", &[]), step("c", &["a", "b"])]);
    bodies.extend([
        (10, begins(1, None)),
        (10, begins(2, None)),
        (110, ends(1, ok())),
        (310, ends(2, ok())),
        (310, begins(3, Some("run_1.3-0"))),
        (320, plan(PlanRecord::Unpaused)),
    ]);
    let graph = RunGraph::of(&log(bodies));
    use NodeStatus::{Completed, Running};
    assert_eq!(graph.kind, GraphKind::Plan);
    assert_eq!(states(&graph), [("a", Completed), ("b", Completed), ("c", Running)]);
    assert_eq!(critical(&graph), ["b", "c"]);
    let times: Vec<_> = graph.nodes.iter().map(|node| node.worked_ms).collect();
    assert_eq!(times, [Some(100), Some(300), Some(10)]);
    assert_eq!(graph.nodes[2].run, Some(RunId::new("run_1.3-0")));
    let edges: Vec<_> =
        graph.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str(), edge.is_critical)).collect();
    assert_eq!(edges, [("a", "c", false), ("b", "c", true)]);
}

#[test]
fn critical_path_without_times_is_the_one_with_the_most_subtasks() {
    let subtasks = vec![step("d", &[]), step("a", &[]), step("b", &["a"]), step("c", &["b", "d"])];
    assert_eq!(critical(&RunGraph::of(&log(planned(subtasks)))), ["a", "b", "c"]);
}

#[test]
fn graph_follows_a_replan_and_a_loop() {
    let mut diff = PlanDiff::default();
    diff.replace.push(step("b", &["a"]));
    diff.add.push(step("c", &["b"]));
    let mut bodies = planned(vec![step("a", &[]), step("b", &["a"])]);
    bodies.extend([
        (0, begins(1, None)),
        (1, ends(1, ToolResult::success("ok"))),
        (1, begins(2, None)),
        (2, ends(2, ToolResult::error("no"))),
        (2, plan(PlanRecord::PlanningStarted { command: CommandId(3), attempt: 0, reason: None })),
        (2, plan(PlanRecord::Replanned { command: CommandId(3), diff: Box::new(diff), warnings: vec![] })),
    ]);
    use NodeStatus::{Completed, Pending, Running};
    let graph = RunGraph::of(&log(bodies.clone()));
    assert_eq!(states(&graph), [("a", Completed), ("b", Pending), ("c", Pending)]);
    // The new `b` has command 4, `c` has 5, and the subtasks of the loop come behind.
    let subtasks = vec![step("c_1", &[]), step("c_2", &[])];
    let call = CallId::new(CommandId(5), 0);
    bodies.extend([
        (3, plan(PlanRecord::LoopExpanded { call, subtasks, results: vec![] })),
        (3, begins(7, None)),
    ]);
    let graph = RunGraph::of(&log(bodies.clone()));
    assert_eq!(states(&graph)[2..], [("c", Running), ("c_1", Pending), ("c_2", Running)]);
    let into_c: Vec<_> =
        graph.edges.iter().filter(|edge| edge.to == "c").map(|edge| edge.from.as_str()).collect();
    assert_eq!(into_c, ["b", "c_1", "c_2"]);
    // Also the loop may be replaced: the new `c` has command 9, and `c_1` has 10.
    let mut diff = PlanDiff::default();
    diff.replace.extend([step("c", &["b"]), step("c_1", &[])]);
    bodies.extend([
        (4, begins(6, None)),
        (5, ends(6, ToolResult::error("no"))),
        (5, plan(PlanRecord::PlanningStarted { command: CommandId(8), attempt: 0, reason: None })),
        (5, plan(PlanRecord::Replanned { command: CommandId(8), diff: Box::new(diff), warnings: vec![] })),
        (6, begins(10, None)),
    ]);
    let graph = RunGraph::of(&log(bodies));
    assert_eq!(states(&graph)[2..], [("c_2", Running), ("c", Pending), ("c_1", Running)]);
}

#[test]
fn graph_of_a_team_has_its_members_and_what_they_asked_for() {
    let team = |record| RecordBody::Team(Box::new(record));
    let steps = vec![step("a", &[]), step("b", &["a"])];
    let task = Box::new(Task::new("run_1", "A report").with_subtasks(steps));
    let call = |command| CallId::new(CommandId(command), 0);
    let delegated = |command, member: &str, task: &str| {
        team(TeamRecord::Delegated {
            call: call(command),
            member: member.into(),
            chain: vec![],
            task: task.into(),
        })
    };
    let asks = TeamRecord::DelegationRequested {
        requester: call(1),
        task: "Sum up".into(),
        assignee: "calculator".into(),
    };
    let graph = RunGraph::of(&log(vec![
        (0, team(TeamRecord::Planned { task, spent: Spending::default() })),
        (0, delegated(1, "ann", "a: Do a")),
        (0, begins(1, Some("run_1.1-0"))),
        (1, team(asks)),
        (1, delegated(7, "bob", "Sum up")),
    ]));
    assert_eq!(graph.kind, GraphKind::Team);
    use NodeStatus::{Pending, Running};
    assert_eq!(states(&graph), [("a", Running), ("b", Pending), ("delegation 7", Pending)]);
    let by: Vec<_> = graph.nodes.iter().map(|node| node.by.as_deref()).collect();
    assert_eq!(by, [Some("ann"), None, Some("bob")]);
    let edges: Vec<_> = graph.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str())).collect();
    assert_eq!(edges, [("a", "b"), ("a", "delegation 7")]);
}

#[test]
fn graph_of_a_loop_has_no_nodes() {
    let graph = RunGraph::of(&log(vec![(0, model_call_started(0, 0))]));
    assert_eq!(graph, RunGraph::default());
}

/// Subtasks that depend on any others, so that there may be circles.
fn subtasks(is_plan: bool) -> impl Strategy<Value = Vec<SubTask>> {
    let after = proptest::collection::vec(0..40_usize, 0..4);
    proptest::collection::vec(after, 0..40).prop_map(move |all| {
        let count = all.len();
        let of = |(n, after): (usize, Vec<usize>)| {
            let last = if is_plan { n } else { count };
            let after: BTreeSet<usize> = after.into_iter().filter(|other| *other < last).collect();
            SubTask::new(format!("s{n}"), "a step").after(after.iter().map(|other| format!("s{other}")))
        };
        all.into_iter().enumerate().map(of).collect()
    })
}

proptest! {
    #[test]
    fn boxes_do_not_overlap_and_edges_go_down_between_them(subtasks in subtasks(false)) {
        let graph = RunGraph::of(&log(planned(subtasks.clone())));
        prop_assert_eq!(&graph, &RunGraph::of(&log(planned(subtasks))));
        for (place, node) in graph.nodes.iter().enumerate() {
            prop_assert!(node.x + node.width <= graph.width && node.y + node.height <= graph.height);
            for other in &graph.nodes[place + 1..] {
                let is_beside = node.x + node.width <= other.x || other.x + other.width <= node.x;
                let is_above = node.y + node.height <= other.y || other.y + other.height <= node.y;
                prop_assert!(is_beside || is_above, "{:?} {:?}", node, other);
            }
        }
        let node = |id: &str| graph.nodes.iter().find(|node| node.id == id).unwrap();
        for edge in &graph.edges {
            let (from, to) = (node(&edge.from), node(&edge.to));
            prop_assert_eq!(edge.points[0], (from.x + from.width / 2, from.y + from.height));
            prop_assert_eq!(edge.points[edge.points.len() - 1], (to.x + to.width / 2, to.y));
            prop_assert!(edge.points.windows(2).all(|pair| pair[0].1 < pair[1].1), "{:?}", edge);
            for (x, y) in &edge.points[1..edge.points.len() - 1] {
                let hits = graph.nodes.iter().find(|node| {
                    (node.x..=node.x + node.width).contains(x) && (node.y..=node.y + node.height).contains(y)
                });
                prop_assert!(hits.is_none(), "{:?} {:?}", edge, hits);
            }
        }
    }

    #[test]
    fn graph_of_a_valid_plan_has_all_of_its_edges(subtasks in subtasks(true)) {
        let wanted: BTreeSet<(String, String)> = subtasks
            .iter()
            .flat_map(|task| task.dependencies().iter().map(|id| (id.to_string(), task.id.to_string())))
            .collect();
        let graph = RunGraph::of(&log(planned(subtasks)));
        let found: BTreeSet<_> =
            graph.edges.iter().map(|edge| (edge.from.clone(), edge.to.clone())).collect();
        prop_assert_eq!(found, wanted);
    }
}
