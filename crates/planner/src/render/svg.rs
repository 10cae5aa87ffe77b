//! Draws a plan as SVG: a box for each subtask in the colour of its state, and the critical path in bold.

use std::fmt::Write as _;

use archon_types::{SubTask, shorten};

use super::{Drawing, colour, layout::layout};
use crate::texts::{one_line, tool_mark};

/// Width of a character, height of a line, and space around the text of a box, in pixels.
const CHARACTER: f64 = 7.2;
const LINE: f64 = 16.0;
const PADDING: f64 = 10.0;
/// Maximum length of a line, in characters.
const LONGEST: usize = 32;
/// Height of a box in pixels, for three lines: id, description and state.
const HEIGHT: f64 = 3.0 * LINE + PADDING;

impl Drawing<'_> {
    /// Returns the picture, which is well-formed XML for all texts of subtasks.
    pub(super) fn svg(&self) -> String {
        let texts: Vec<[String; 3]> = self.task.subtasks.iter().map(lines).collect();
        let width = |lines: &[String; 3]| {
            let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            longest as f64 * CHARACTER + 2.0 * PADDING
        };
        let widths: Vec<f64> = texts.iter().map(width).collect();
        let edges = self.edges();
        let ends: Vec<(usize, usize)> = edges.iter().map(|(from, to, _)| (*from, *to)).collect();
        let drawn = layout(&widths, HEIGHT, &ends);
        let (all_wide, all_high) = (drawn.width, drawn.height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all_wide:.0}\" height=\"{all_high:.0}\" \
             viewBox=\"0 0 {all_wide:.0} {all_high:.0}\" font-family=\"monospace\" font-size=\"12\">\n"
        );
        let _ = writeln!(out, "  <title>{}</title>", escaped(&one_line(&self.task.goal)));
        out.push_str(
            "  <defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
             markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\"/>\
             </marker></defs>\n",
        );
        for (from, to, is_critical) in edges {
            let ((x1, y1), (x2, y2)) = (drawn.places[from], drawn.places[to]);
            let (y1, y2) = (y1 + HEIGHT / 2.0, y2 - HEIGHT / 2.0);
            let (bend, thick) = ((y1 + y2) / 2.0, if is_critical { 3 } else { 1 });
            let class = if is_critical { "edge critical" } else { "edge" };
            let _ = writeln!(
                out,
                "  <path class=\"{class}\" d=\"M{x1:.1},{y1:.1} C{x1:.1},{bend:.1} {x2:.1},{bend:.1} \
                 {x2:.1},{y2:.1}\" fill=\"none\" stroke=\"#333333\" stroke-width=\"{thick}\" \
                 marker-end=\"url(#end)\"/>"
            );
        }
        for (place, subtask) in self.task.subtasks.iter().enumerate() {
            let critical = self.critical.contains(&subtask.id);
            self.a_box(&mut out, subtask, &texts[place], (drawn.places[place], widths[place]), critical);
        }
        out.push_str("</svg>\n");
        out
    }

    fn a_box(
        &self,
        out: &mut String,
        subtask: &SubTask,
        lines: &[String; 3],
        ((x, y), width): ((f64, f64), f64),
        is_critical: bool,
    ) {
        let status = subtask.status();
        let (class, thick) = if is_critical { (" critical", 3) } else { ("", 1) };
        let (left, top) = (x - width / 2.0, y - HEIGHT / 2.0);
        let _ = writeln!(
            out,
            "  <g class=\"{status}{class}\"><title>{}</title><rect x=\"{left:.1}\" y=\"{top:.1}\" \
             width=\"{width:.1}\" height=\"{HEIGHT:.1}\" rx=\"5\" fill=\"{}\" stroke=\"#333333\" \
             stroke-width=\"{thick}\"/>",
            escaped(&one_line(&subtask.description)),
            colour(status),
        );
        for (number, line) in (1..).zip(lines) {
            let weight = if number == 1 { " font-weight=\"bold\"" } else { "" };
            let below = top + f64::from(number) * LINE;
            let _ = writeln!(
                out,
                "    <text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"middle\"{weight}>{}</text>",
                escaped(line)
            );
        }
        out.push_str("  </g>\n");
    }
}

fn lines(subtask: &SubTask) -> [String; 3] {
    let status = format!("{}{}", subtask.status(), tool_mark(subtask));
    [subtask.id.as_str(), &subtask.description, &status].map(|text| shorten(&one_line(text), LONGEST, "…"))
}

/// Escapes text for XML, and drops characters that XML does not allow.
fn escaped(text: &str) -> String {
    let is_text = |c: &char| !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(is_text) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use archon_types::{Task, ToolResult};

    use super::*;
    use crate::{PlanFormat, render};

    fn parsed(task: &Task) -> String {
        render(task, PlanFormat::Svg)
    }

    // spec: PL-26
    #[test]
    fn a_picture_has_a_box_for_each_subtask_its_colour_and_the_longest_way_in_bold() {
        let done = SubTask::new("a", "Search \"x\" & <y>").with_tool("web", None);
        let done = done.with_status(archon_types::SubTaskStatus::Executing).unwrap();
        let done = done.with_result(ToolResult::success("ok")).unwrap();
        let plan = vec![done, SubTask::new("b", "Look"), SubTask::new("c", "Write").after(["a", "b"])];
        let drawn = parsed(&Task::new("t", "A report").with_subtasks(plan));
        let picture = roxmltree::Document::parse(&drawn).unwrap();
        let of = |name: &str| picture.descendants().filter(move |n| n.has_tag_name(name)).collect::<Vec<_>>();
        assert_eq!((of("rect").len(), of("text").len()), (3, 9));
        assert_eq!(of("rect")[0].attribute("fill"), Some("#9fdf9f"));
        let classes: Vec<_> =
            of("g").iter().filter_map(|g| g.attribute("class").map(str::to_owned)).collect();
        assert_eq!(classes, ["completed critical", "pending", "blocked critical"]);
        let edges: Vec<_> =
            of("path").iter().filter_map(|p| p.attribute("class").map(str::to_owned)).collect();
        assert_eq!(edges, ["edge critical", "edge"]);
        assert!(drawn.contains("Search &quot;x&quot; &amp; &lt;y&gt;"), "{drawn}");
    }

    proptest::proptest! {
        #[test]
        fn svg_of_any_subtask_texts_is_well_formed(
            id in "\\PC{0,40}", what in proptest::prelude::any::<String>(), goal in proptest::prelude::any::<String>()
        ) {
            let plan = vec![SubTask::new("a", what.clone()).with_tool(id.clone(), None), SubTask::new(id, what).after(["a"])];
            let drawn = parsed(&Task::new("t", goal).with_subtasks(plan));
            proptest::prop_assert!(roxmltree::Document::parse(&drawn).is_ok(), "{}", drawn);
        }
    }
}
