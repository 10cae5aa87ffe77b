//! Guard: the tool must exist. If not, the model reads the names of the available tools.

use crate::{
    arguments::clip,
    guard::{Guard, Inspection, Verdict},
};

/// Maximum number of tool names that the error lists; more would not help the model.
const NAMES_LISTED: usize = 50;

pub(crate) struct Exists;

impl Guard for Exists {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        inspection.tool = inspection.registry.find(&inspection.call.name);
        match inspection.tool {
            Some(_) => Verdict::Pass,
            None => {
                let (name, registry) = (&inspection.call.name, inspection.registry);
                let source = registry.source_of(name);
                let source = source.as_ref().and_then(|tool| tool.source());
                Verdict::refuse(
                    "not_found",
                    match source.map(|source| (source.name(), source.tools())) {
                        Some((source, Err(why))) => format!(
                            "Tool '{}' cannot be used now: {source}: {why}. Go on without it, or try again later.",
                            clip(name, 100)
                        ),
                        _ => not_found(name, &registry.names()),
                    },
                )
            }
        }
    }
}

fn not_found(name: &str, available: &[String]) -> String {
    let mut text = format!("Tool '{}' not found.", clip(name, 100));
    if let Some(close) = archon_types::nearest(name, available.iter().map(String::as_str)) {
        text.push_str(&format!(" Did you mean '{close}'?"));
    }
    if available.is_empty() {
        text.push_str(" There are no tools: answer without one.");
        return text;
    }
    let listed = &available[..available.len().min(NAMES_LISTED)];
    text.push_str(&format!(" Available tools: {}", listed.join(", ")));
    match available.len() - listed.len() {
        0 => text.push('.'),
        more => text.push_str(&format!(" and {more} more.")),
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(name: &str, available: &[&str], expected: Expect) {
        let available: Vec<String> = available.iter().map(|&name| name.to_owned()).collect();
        expected.assert_eq(&not_found(name, &available));
    }

    // spec: TE-07, A-29
    #[test]
    fn unknown_tool_result_lists_existing_tools() {
        check(
            "send_email",
            &["web_search"],
            expect!["Tool 'send_email' not found. Available tools: web_search."],
        );
        check(
            "read_fil",
            &["calculator", "read_file"],
            expect![
                "Tool 'read_fil' not found. Did you mean 'read_file'? Available tools: calculator, read_file."
            ],
        );
        check(
            "Calculator",
            &["calculator"],
            expect!["Tool 'Calculator' not found. Did you mean 'calculator'? Available tools: calculator."],
        );
        check("x", &[], expect!["Tool 'x' not found. There are no tools: answer without one."]);
    }

    #[test]
    fn neither_a_long_name_nor_many_tools_make_a_long_text() {
        let many: Vec<String> = (0..300).map(|n| format!("tool_{n:03}")).collect();
        let text = not_found(&"x".repeat(100_000), &many);
        assert!(text.ends_with("tool_049 and 250 more."), "{text}");
        assert!(text.len() < 1_000, "{}", text.len());
    }
}
