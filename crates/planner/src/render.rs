//! Renders a plan as SVG, Mermaid, DOT, JSON or plain text, with colours for states and a mark for the
//! critical path.

mod layout;
mod svg;

use std::fmt::Write as _;

use archon_types::{Json, Plan, SubTask, SubTaskId, SubTaskStatus, Task, shorten};
use serde_json::json;

use crate::{
    PlanGraph, plan_of,
    texts::{join, one_line, tool_mark},
};

/// The output format of a rendered plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanFormat {
    /// A self-contained SVG picture.
    Svg,
    /// A Mermaid flowchart.
    Mermaid,
    /// A Graphviz digraph.
    Dot,
    /// The task, its graph, its order and its critical path, as JSON.
    Json,
    /// One line for each subtask.
    Text,
}

/// Renders a task with its current states. The critical path is computed from the expected times; a
/// subtask without an expected time counts as 1,000 ms.
pub fn render(task: &Task, format: PlanFormat) -> String {
    let drawing = Drawing::new(task);
    match format {
        PlanFormat::Svg => drawing.svg(),
        PlanFormat::Mermaid => drawing.mermaid(),
        PlanFormat::Dot => drawing.dot(),
        PlanFormat::Json => format!("{:#}", drawing.json()),
        PlanFormat::Text => drawing.text(),
    }
}

struct Drawing<'a> {
    task: &'a Task,
    plan: Plan,
    critical: Vec<SubTaskId>,
}

impl<'a> Drawing<'a> {
    fn new(task: &'a Task) -> Self {
        let length = |id: &SubTaskId| task.get_subtask(id).and_then(|s| s.rules.expected_ms).unwrap_or(1_000);
        let (critical, _) = PlanGraph::new(&task.subtasks).critical_path(length);
        Self { task, plan: plan_of(task), critical }
    }

    /// Returns the edges in the order of the plan. The flag is true for edges on the critical path.
    fn edges(&self) -> Vec<(usize, usize, bool)> {
        let place = |id: &SubTaskId| self.task.subtasks.iter().position(|s| s.id == *id);
        let mut edges = Vec::new();
        for (to, subtask) in self.task.subtasks.iter().enumerate() {
            for dependency in subtask.dependencies() {
                let Some(from) = place(dependency) else { continue };
                let is_step = |pair: &[SubTaskId]| pair[0] == *dependency && pair[1] == subtask.id;
                edges.push((from, to, self.critical.windows(2).any(is_step)));
            }
        }
        edges
    }

    fn mermaid(&self) -> String {
        let mut out = "flowchart TD\n".to_owned();
        for (place, subtask) in self.task.subtasks.iter().enumerate() {
            let label = label(subtask).replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
            let _ = writeln!(out, "    n{place}[\"{label}\"]:::{}", subtask.status());
        }
        let edges = self.edges();
        for (from, to, is_critical) in &edges {
            let _ = writeln!(out, "    n{from} {} n{to}", if *is_critical { "==>" } else { "-->" });
        }
        for (status, colour) in COLOURS {
            let _ = writeln!(out, "    classDef {status} fill:{colour}");
        }
        out
    }

    fn dot(&self) -> String {
        let mut out = "digraph plan {\n    node [shape=box, style=filled]\n".to_owned();
        for (place, subtask) in self.task.subtasks.iter().enumerate() {
            let label = label(subtask).replace('\\', "\\\\").replace('"', "\\\"");
            let width = if self.critical.contains(&subtask.id) { ", penwidth=3" } else { "" };
            let colour = colour(subtask.status());
            let _ = writeln!(out, "    n{place} [label=\"{label}\", fillcolor=\"{colour}\"{width}]");
        }
        for (from, to, is_critical) in self.edges() {
            let _ = writeln!(out, "    n{from} -> n{to}{}", if is_critical { " [penwidth=3]" } else { "" });
        }
        out.push_str("}\n");
        out
    }

    fn json(&self) -> Json {
        json!({
            "task": self.task,
            "subtask_dag": self.plan.subtask_dag,
            "execution_order": self.plan.execution_order,
            "critical_path": self.critical,
        })
    }

    fn text(&self) -> String {
        let mut out = format!("{}\n", one_line(&self.task.goal));
        let order = &self.plan.execution_order;
        // Subtasks on a cycle have no order and are shown last.
        let ordered = order.iter().filter_map(|id| self.task.get_subtask(id));
        let rest = self.task.subtasks.iter().filter(|s| !order.contains(&s.id));
        for subtask in ordered.chain(rest) {
            let mark = if self.critical.contains(&subtask.id) { '*' } else { ' ' };
            let after = match subtask.dependencies() {
                [] => String::new(),
                ids => format!(" <- {}", join(ids, ", ")),
            };
            let (status, what) = (subtask.status().to_string(), one_line(&subtask.description));
            let (id, tool) = (&subtask.id, tool_mark(subtask));
            let _ = writeln!(out, "{mark} {status:<9} {id}: {what}{tool}{after}");
        }
        out
    }
}

const COLOURS: [(SubTaskStatus, &str); 5] = [
    (SubTaskStatus::Pending, "#ffffff"),
    (SubTaskStatus::Executing, "#ffe680"),
    (SubTaskStatus::Completed, "#9fdf9f"),
    (SubTaskStatus::Failed, "#ff9f9f"),
    (SubTaskStatus::Blocked, "#d9d9d9"),
];

fn colour(status: SubTaskStatus) -> &'static str {
    COLOURS.iter().find(|(known, _)| *known == status).map_or("#ffffff", |(_, colour)| colour)
}

fn label(subtask: &SubTask) -> String {
    shorten(&format!("{}: {}", subtask.id, one_line(&subtask.description)), LONGEST, "…")
}

/// Maximum length of a label, in characters.
const LONGEST: usize = 80;

#[cfg(test)]
mod tests {
    use archon_types::ToolResult;
    use expect_test::expect;

    use super::*;

    fn task() -> Task {
        let executing = |s: SubTask| s.with_status(SubTaskStatus::Executing).unwrap();
        let a = executing(SubTask::new("a", "Search \"x\" & <y>").with_tool("web", None));
        let b = executing(SubTask::new("b", "Look")).with_result(ToolResult::error("no")).unwrap();
        let c = SubTask::new("c", "Write\nit").after(["a", "b"]);
        let a = a.with_result(ToolResult::success("ok")).unwrap();
        Task::new("t", "A report").with_subtasks(vec![a, b, c])
    }

    // spec: PL-26, PL-05
    #[test]
    fn a_plan_is_drawn_with_its_edges_to_the_dependent_and_colours() {
        expect![[r##"
            flowchart TD
                n0["a: Search &quot;x&quot; &amp; &lt;y>"]:::completed
                n1["b: Look"]:::failed
                n2["c: Write it"]:::blocked
                n0 ==> n2
                n1 --> n2
                classDef pending fill:#ffffff
                classDef executing fill:#ffe680
                classDef completed fill:#9fdf9f
                classDef failed fill:#ff9f9f
                classDef blocked fill:#d9d9d9
        "##]]
        .assert_eq(&render(&task(), PlanFormat::Mermaid));
        expect![[r##"
            digraph plan {
                node [shape=box, style=filled]
                n0 [label="a: Search \"x\" & <y>", fillcolor="#9fdf9f", penwidth=3]
                n1 [label="b: Look", fillcolor="#ff9f9f"]
                n2 [label="c: Write it", fillcolor="#d9d9d9", penwidth=3]
                n0 -> n2 [penwidth=3]
                n1 -> n2
            }
        "##]]
        .assert_eq(&render(&task(), PlanFormat::Dot));
    }

    #[test]
    fn a_plan_as_text_and_as_json() {
        expect![[r#"
            A report
            * completed a: Search "x" & <y> [web]
              failed    b: Look
            * blocked   c: Write it <- a, b
        "#]]
        .assert_eq(&render(&task(), PlanFormat::Text));
        let json: Json = serde_json::from_str(&render(&task(), PlanFormat::Json)).unwrap();
        assert_eq!(json["critical_path"], json!(["a", "c"]));
        assert_eq!(json["subtask_dag"], json!({"a": ["c"], "b": ["c"], "c": []}));
        let circle = Task::new("t", "g")
            .with_subtasks(vec![SubTask::new("a", "x").after(["b"]), SubTask::new("b", "y").after(["a"])]);
        assert!(render(&circle, PlanFormat::Text).contains("blocked   b: y <- a"));
    }
}
