//! Compares the README's list of parts that are not built yet with the repository, so that the list is true.

use crate::repository::TextFile;

const README: &str = "README.md";
const COMMANDS: &str = "docs/reference/cli.md";
const LIST: &str = "Not built yet: ";

/// The sign that a part is built.
enum Sign {
    /// The crate's folder.
    Crate(&'static str),
    /// A command of `archon`.
    Command(&'static str),
    /// A file.
    File(&'static str),
}

/// A part as the README's list names it, and its row in the table of frameworks if it has one.
struct Part {
    name: &'static str,
    row: Option<&'static str>,
    sign: Sign,
}

const PARTS: &[Part] = &[
    Part { name: "skills", row: Some("MCP, skills"), sign: Sign::Crate("skills") },
    Part { name: "MCP in the command", row: None, sign: Sign::Command("mcp") },
    Part { name: "OpenAPI tools", row: None, sign: Sign::Crate("openapi") },
    Part { name: "the interactive chat", row: Some("chat in the terminal"), sign: Sign::Command("chat") },
    Part {
        name: "the command `archon serve`",
        row: Some("HTTP server as a command"),
        sign: Sign::Command("serve"),
    },
    Part {
        name: "the dashboard of `archon serve`",
        row: None,
        sign: Sign::File("crates/server/dashboard/index.html"),
    },
    Part { name: "triggers and schedules", row: None, sign: Sign::Crate("triggers") },
    Part { name: "tasks in the command", row: None, sign: Sign::Command("triggers") },
    Part { name: "OpenTelemetry", row: Some("OpenTelemetry"), sign: Sign::Crate("telemetry") },
];

/// Returns one line for each part that the list has wrongly or lacks, and for each wrong row.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
    let readme = text(README);
    let listed = list(readme);
    let mut problems = Vec::new();
    for part in PARTS {
        let is_built = match part.sign {
            Sign::Crate(name) => files.iter().any(|file| file.path == format!("crates/{name}/Cargo.toml")),
            Sign::Command(name) => text(COMMANDS).contains(&format!("\n## `archon {name}`\n")),
            Sign::File(path) => files.iter().any(|file| file.path == path),
        };
        let (name, is_listed) = (part.name, listed.contains(&part.name));
        if is_built && is_listed {
            problems.push(format!(
                "{README}: {name:?} is built: take it from the list that begins with {LIST:?}"
            ));
        }
        if !is_built && !is_listed {
            problems.push(format!(
                "{README}: {name:?} is not built: add it to the list that begins with {LIST:?}"
            ));
        }
        let row =
            part.row.and_then(|row| readme.lines().find(|line| line.starts_with(&format!("| {row} |"))));
        if row.is_some_and(|row| row.contains("| not yet |") == is_built) {
            problems.push(format!(
                "{README}: the row of {name:?} has the wrong state: {}",
                row.unwrap_or_default()
            ));
        }
    }
    let unknown = listed.iter().filter(|name| PARTS.iter().all(|part| part.name != **name));
    problems.extend(unknown.map(|name| format!("{README}: give {name:?} a sign in xtask/src/readme.rs")));
    problems
}

/// Returns the parts of the list, which is one sentence.
fn list(readme: &str) -> Vec<&str> {
    let after = readme.split_once(LIST).map_or("", |(_, after)| after);
    let sentence = after.split_once(". ").or_else(|| after.split_once('.')).map_or(after, |(list, _)| list);
    sentence.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn all() -> String {
        let names: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        format!("{LIST}{}. More.\n| HTTP server as a command | not yet | no |\n", names.join(",\n"))
    }

    #[test]
    fn check_of_a_true_list_finds_nothing() {
        assert_eq!(check(&[file(README, &all())]), [""; 0]);
    }

    #[test]
    fn check_of_a_part_that_is_built_names_the_list_and_the_row() {
        let files = [file(README, &all()), file(COMMANDS, "\n## `archon serve`\n")];
        let problems = check(&files);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("is built") && problems[1].contains("wrong state"), "{problems:?}");
    }

    #[test]
    fn check_of_a_part_that_is_left_out_or_unknown_names_it() {
        let readme = all().replace("skills", "lunch");
        let problems = check(&[file(README, &readme)]);
        assert!(problems[0].contains("\"skills\" is not built"), "{problems:?}");
        assert!(problems[1].contains("give \"lunch\" a sign"), "{problems:?}");
    }
}
