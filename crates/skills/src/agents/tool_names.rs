//! The names of tools in an agent file: ours, those of other programs, and those of all tools of an MCP server.

/// Our tools, and the names of tools of other programs that do the same work. The names for commands stand for all tools
/// that run commands.
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

/// The tools that run commands besides `bash`. A file that denies `bash` means them, too.
const BESIDES_BASH: [&str; 2] = ["start_command", "send_input"];

/// Returns true if the name in a file means this tool. A tool `SERVER__*`, which stands for tools that are not known yet,
/// is meant only by a name that means all of them.
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

/// Returns true if a file that denies the name denies this tool. A tool `SERVER__*` is denied with each tool of its server.
pub(super) fn denies(written: &str, tool: &str) -> bool {
    let is_of_source = |prefix: &str| written.strip_prefix("mcp__").unwrap_or(written).starts_with(prefix);
    means(written, tool)
        || (written == "bash" && BESIDES_BASH.contains(&tool))
        || tool.strip_suffix('*').is_some_and(is_of_source)
}

/// Returns the beginning of the names that are meant: for `github__*`, `mcp__github__*` and `mcp__github`.
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
