//! Matches the names of tools in an agent file with our tools. A file may write our names, names of other programs,
//! and patterns for all tools of an MCP server.

/// Our tools, each with the names of other programs' tools that do the same. `Bash` stands for all tools that run
/// commands.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("bash", &["Bash"]),
    ("bash_readonly", &["Bash"]),
    ("start_command", &["Bash"]),
    ("send_input", &["Bash"]),
    ("read_output", &["Bash", "BashOutput"]),
    ("list_commands", &["Bash", "BashOutput"]),
    ("stop_command", &["Bash", "KillBash", "KillShell"]),
    ("read_file", &["Read"]),
    ("write_file", &["Write"]),
    ("edit_file", &["Edit", "MultiEdit"]),
    ("glob", &["Glob"]),
    ("search", &["Grep"]),
    ("list_files", &["LS"]),
    ("web_fetch", &["WebFetch"]),
    ("web_search", &["WebSearch"]),
    ("update_plan", &["TodoWrite"]),
    ("activate_skill", &["Skill"]),
];

/// The tools besides `bash` that run commands. A file that denies `bash` denies them, too.
const BESIDES_BASH: [&str; 2] = ["start_command", "send_input"];

/// Returns true if the name `written` in a file means this tool. The tool `SERVER__*` stands for all tools of a
/// server whose tools are not known yet; only a name for all tools of the server means it.
pub(super) fn means(written: &str, tool: &str) -> bool {
    if written == tool {
        return true;
    }
    if let Some(pattern) = pattern_of(written) {
        return tool.starts_with(&pattern);
    }
    let others = OTHER_NAMES.iter().find(|(ours, _)| *ours == tool).map_or(&[][..], |(_, others)| others);
    others.contains(&written) || written.strip_prefix("mcp__") == Some(tool)
}

/// Returns true if a file that denies the name `written` denies this tool. To deny `SERVER__*`, it is enough to deny
/// one tool of the server.
pub(super) fn denies(written: &str, tool: &str) -> bool {
    let is_of_source = |prefix: &str| written.strip_prefix("mcp__").unwrap_or(written).starts_with(prefix);
    means(written, tool)
        || (written == "bash" && BESIDES_BASH.contains(&tool))
        || tool.strip_suffix('*').is_some_and(is_of_source)
}

/// Returns the prefix of the tool names that a pattern means: `github__` for `github__*`, `mcp__github__*` and
/// `mcp__github`. Returns `None` for the name of a single tool.
fn pattern_of(written: &str) -> Option<String> {
    let of_server = written.strip_prefix("mcp__");
    match written.strip_suffix('*') {
        Some(prefix) => Some(prefix.strip_prefix("mcp__").unwrap_or(prefix).to_owned()),
        None => of_server.filter(|server| !server.contains("__")).map(|server| format!("{server}__")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_denies_name_tools_of_ours_of_other_programs_and_of_servers() {
        let cases = [
            ("read_file", "read_file", true, true),
            ("Read", "read_file", true, true),
            ("Read", "search", false, false),
            ("Bash", "bash", true, true),
            ("Bash", "start_command", true, true),
            ("bash", "start_command", false, true),
            ("mcp__github__create_issue", "github__create_issue", true, true),
            ("mcp__github__create_issue", "github__delete", false, false),
            ("mcp__github", "github__delete", true, true),
            ("mcp__github__*", "github__delete", true, true),
            ("github__*", "github__delete", true, true),
            ("github__*", "github__*", true, true),
            ("mcp__github__delete", "github__*", false, true),
            ("mcp__gitlab__delete", "github__*", false, false),
            ("*", "bash", true, true),
            ("read", "read_file", false, false),
        ];
        for (written, tool, is_meant, is_denied) in cases {
            assert_eq!(means(written, tool), is_meant, "{written} {tool}");
            assert_eq!(denies(written, tool), is_denied, "{written} {tool}");
        }
    }
}
