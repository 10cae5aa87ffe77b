//! Checks that the reference pages of the book have a row for each variant of the enums that they describe, and none
//! for a variant that is gone.

use crate::repository::TextFile;

/// A page, the heading of its table, the file with the enum, and the enum.
struct Listed {
    page: &'static str,
    heading: &'static str,
    source: &'static str,
    name: &'static str,
    form: fn(&str) -> String,
}

const ERRORS: &str = "docs/book/reference/errors.md";
const EVENTS: &str = "docs/book/reference/events.md";

const LISTED: &[Listed] = &[
    error("## `RunError`", "crates/types/src/runs/run_error.rs", "RunError"),
    error("## `FailureKind`", "crates/types/src/models/failure_kind.rs", "FailureKind"),
    error("## `JournalError`", "crates/types/src/log/journal_error.rs", "JournalError"),
    error("## `RunRefused`", "crates/types/src/runs/called_run.rs", "RunRefused"),
    error("## `BuildError`", "crates/archon/src/error.rs", "BuildError"),
    error("## `SetupError`", "crates/providers/src/error.rs", "SetupError"),
    error("## `ToolError`", "crates/types/src/tools/tool_error.rs", "ToolError"),
    error("## `ToolSetupError`", "crates/tools/src/error.rs", "ToolSetupError"),
    error("## `ProviderError`", "crates/types/src/models/provider.rs", "ProviderError"),
    error("## `MemoryError`", "crates/types/src/memory/collection.rs", "MemoryError"),
    error("## `CredentialError`", "crates/types/src/tools/credentials.rs", "CredentialError"),
    error("## `PlanError`", "crates/types/src/runs/planner.rs", "PlanError"),
    error("## `TeamError`", "crates/orchestrator/src/error.rs", "TeamError"),
    error("## `McpProblem`", "crates/mcp/src/error.rs", "McpProblem"),
    error("## `OpenApiError`", "crates/openapi/src/error.rs", "OpenApiError"),
    error("## `SkillError`", "crates/skills/src/error.rs", "SkillError"),
    error("## `TriggerError`", "crates/triggers/src/error.rs", "TriggerError"),
    error("## `ScheduleError`", "crates/triggers/src/schedule.rs", "ScheduleError"),
    error("## `ExpressionError`", "crates/triggers/src/expression.rs", "ExpressionError"),
    error("## `AnswerError`", "crates/answers/src/error.rs", "AnswerError"),
    error("## `WebhookError`", "crates/event-sources/src/webhook.rs", "WebhookError"),
    error("## `DeliveryError`", "crates/notify/src/delivery.rs", "DeliveryError"),
    error("## `FileSourceError`", "crates/event-sources/src/files.rs", "FileSourceError"),
    error("## `MailboxError`", "crates/event-sources/src/mailbox.rs", "MailboxError"),
    error("## `ServeError` of `archon-server`", "crates/server/src/serve.rs", "ServeError"),
    event("## The run begins and ends", "crates/types/src/log/record.rs", "RecordBody"),
    event("## Plans: `plan`", "crates/types/src/plans/plan_record.rs", "PlanRecord"),
    event("## Teams: `team`", "crates/types/src/plans/team_record.rs", "TeamRecord"),
    event("## Deltas", "crates/types/src/log/event.rs", "DeltaKind"),
    Listed {
        page: "docs/book/reference/exit-codes.md",
        heading: "# Exit codes of the command",
        source: "crates/cli/src/exit.rs",
        name: "Exit",
        form: str::to_owned,
    },
];

const fn error(heading: &'static str, source: &'static str, name: &'static str) -> Listed {
    Listed { page: ERRORS, heading, source, name, form: str::to_owned }
}

const fn event(heading: &'static str, source: &'static str, name: &'static str) -> Listed {
    Listed { page: EVENTS, heading, source, name, form: snake_case }
}

/// Returns one line for each variant without a row, and for each row without a variant.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let mut problems = Vec::new();
    for listed in LISTED {
        match (text(listed.page), text(listed.source)) {
            (Some(page), Some(source)) => problems.extend(compare(listed, page, source)),
            _ => problems.push(format!("{}: it or {} is not there", listed.page, listed.source)),
        }
    }
    problems
}

fn compare(listed: &Listed, page: &str, source: &str) -> Vec<String> {
    let Listed { page: path, heading, name, form, .. } = listed;
    let variants: Vec<String> = variants(source, name).iter().map(|variant| form(variant)).collect();
    let rows = rows(page, heading, &last_of(heading));
    if variants.is_empty() || rows.is_empty() {
        return vec![format!("{path}: nothing to compare below {heading:?}, or no variants of {name}")];
    }
    let missing = variants.iter().filter(|variant| !rows.contains(variant));
    let gone = rows.iter().filter(|row| !variants.contains(row));
    let numbers =
        numbers(source, name).filter(|(number, name)| !page.contains(&format!("| {number} | `{name}` |")));
    missing
        .map(|variant| format!("{path}: no row below {heading:?} for {variant} of {name}"))
        .chain(gone.map(|row| format!("{path}: {name} has no {row}, which has a row below {heading:?}")))
        .chain(numbers.map(|(number, variant)| format!("{path}: {variant} of {name} is {number}")))
        .collect()
}

/// Returns the heading that ends the tables of `heading`; the records have several tables.
fn last_of(heading: &str) -> String {
    match heading {
        "## The run begins and ends" => "## Plans: `plan`".to_owned(),
        _ => "## ".to_owned(),
    }
}

/// Returns the first lines of an enum's variants. `rustfmt` gives each its own, indented by four spaces.
fn lines<'s>(source: &'s str, name: &str) -> impl Iterator<Item = &'s str> {
    let opening = format!("enum {name} {{");
    let inside = source.lines().skip_while(move |line| !line.ends_with(&opening)).skip(1);
    inside
        .take_while(|line| *line != "}")
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
}

fn variants<'s>(source: &'s str, name: &str) -> Vec<&'s str> {
    let names =
        lines(source, name).filter_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()).next());
    names.collect()
}

/// Returns the variants that have a number, each after it.
fn numbers<'s>(source: &'s str, name: &str) -> impl Iterator<Item = (&'s str, &'s str)> {
    lines(source, name)
        .filter_map(|line| line.trim_end_matches(',').split_once(" = ").map(|(name, number)| (number, name)))
}

/// Returns the first names in code spans of the rows below a heading: those of the first column that has any.
fn rows(page: &str, heading: &str, end: &str) -> Vec<String> {
    let below = page.lines().skip_while(|line| *line != heading).skip(1);
    let table = below.take_while(|line| !line.starts_with(end)).filter(|line| line.starts_with("| "));
    let names = table.flat_map(|line| {
        let named = line.split('|').find(|column| column.contains('`')).unwrap_or_default();
        named.split('`').skip(1).step_by(2).map(str::to_owned)
    });
    names.collect()
}

fn snake_case(variant: &str) -> String {
    let mut name = String::new();
    for c in variant.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_names_a_variant_without_a_row_and_a_row_without_a_variant() {
        let listed = event("## Deltas", "e.rs", "Kind");
        let source = "/// A kind.\npub enum Kind {\n    /// Text.\n    Text {\n        text: String,\n    },\n    TurnEnd,\n}\n";
        let page = "# Page\n\n## Deltas\n\n| kind | is |\n|---|---|\n| `text` | `x` |\n| `progress` | |\n\n## More\n\n| `turn_end` | |\n";
        assert_eq!(
            compare(&listed, page, source),
            [
                "docs/book/reference/events.md: no row below \"## Deltas\" for turn_end of Kind",
                "docs/book/reference/events.md: Kind has no progress, which has a row below \"## Deltas\""
            ]
        );
        let page = "## Deltas\n\n| `text`, `turn_end` | |\n";
        assert_eq!(compare(&listed, page, source), [""; 0]);
        assert_eq!(compare(&listed, "# Another page\n", source).len(), 1, "nothing is compared");
    }

    #[test]
    fn compare_of_numbered_variants_names_a_wrong_number() {
        let source = "enum Exit {\n    Finished = 0,\n    Failed = 1,\n}\n";
        let listed = error("# Codes", "exit.rs", "Exit");
        let page = "# Codes\n\n| 0 | `Finished` | |\n| 2 | `Failed` | |\n";
        assert_eq!(compare(&listed, page, source), ["docs/book/reference/errors.md: Failed of Exit is 1"]);
    }
}
