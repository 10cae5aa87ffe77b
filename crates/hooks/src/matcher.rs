//! Matchers: which tools, or which kinds of notifications, a hook is for.

use regex::{Regex, RegexBuilder};

/// The most bytes of a compiled pattern, which a file may have before anybody trusts it.
const MOST_BYTES: usize = 1 << 20;

/// The tools of this project, and names of tools of other agents that do the same work. A hook may only deny or ask, so
/// a name that matches one tool too many permits nothing.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("bash", &["Bash"]),
    // These run command lines, too, so whoever watches command lines has to see them.
    ("bash_readonly", &["Bash", "bash"]),
    ("start_command", &["Bash", "bash"]),
    ("send_input", &["Bash", "bash"]),
    ("read_file", &["Read"]),
    ("write_file", &["Write"]),
    ("edit_file", &["Edit", "MultiEdit"]),
    ("glob", &["Glob"]),
    ("search", &["Grep"]),
    ("list_files", &["LS"]),
    ("web_fetch", &["WebFetch"]),
    ("web_search", &["WebSearch"]),
];

/// The names or the pattern of one entry of a file.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    All,
    /// These names exactly.
    Names(Vec<String>),
    /// Names in which the pattern is found.
    Pattern(Regex),
}

impl Matcher {
    /// Reads a matcher: nothing or `*` for all, names separated by `|` or `,`, or else a regular expression.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        if text.chars().all(|c| c.is_alphanumeric() || "_-|, ".contains(c)) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(str::to_owned).collect()));
        }
        match RegexBuilder::new(text).size_limit(MOST_BYTES).build() {
            Ok(pattern) => Ok(Self::Pattern(pattern)),
            Err(_) => Err(format!(
                "the matcher `{text}` is no regular expression, or a very large one; write names such as `bash|edit_file`, a pattern such \
                 as `github__.*`, or `*`"
            )),
        }
    }

    /// Returns the matcher as a file has it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::Names(names) => names.join("|"),
            Self::Pattern(pattern) => pattern.as_str().to_owned(),
        }
    }

    /// Returns whether the matcher has this tool, by its own name or by its name elsewhere. An event without a
    /// subject matches always.
    pub(crate) fn has(&self, subject: Option<&str>) -> bool {
        let Some(subject) = subject else { return true };
        let others =
            OTHER_NAMES.iter().find(|(name, _)| *name == subject).map_or(&[][..], |(_, others)| others);
        let of_server = subject.contains("__").then(|| format!("mcp__{subject}"));
        let mut names = std::iter::once(subject).chain(others.iter().copied()).chain(of_server.as_deref());
        names.any(|name| match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|wanted| wanted == name),
            Self::Pattern(pattern) => pattern.is_match(name),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn has_compares_names_exactly_and_patterns_anywhere() {
        let cases = [
            ("", "bash", true),
            ("*", "bash", true),
            ("bash|edit_file", "edit_file", true),
            ("bash, edit_file", "edit_file", true),
            ("edit", "edit_file", false),
            ("^edit", "edit_file", true),
            ("^edit", "my_edit", false),
            ("github__.*", "github__create_issue", true),
            ("mcp__github__.*", "github__create_issue", true),
            ("mcp__github__create_issue", "github__create_issue", true),
        ];
        for (matcher, tool, is_match) in cases {
            assert_eq!(Matcher::parse(matcher).unwrap().has(Some(tool)), is_match, "{matcher} {tool}");
        }
    }

    #[test]
    fn has_knows_the_names_of_other_programs() {
        for (matcher, tools) in
            [("Bash", "bash bash_readonly start_command send_input"), ("Edit|Write", "edit_file write_file")]
        {
            let matcher = Matcher::parse(matcher).unwrap();
            assert!(tools.split(' ').all(|tool| matcher.has(Some(tool))), "{tools}");
            assert!(!matcher.has(Some("read_file")));
        }
    }

    #[test]
    fn parse_broken_pattern_is_an_error() {
        assert!(Matcher::parse("mcp__(").unwrap_err().contains("`mcp__(`"));
        assert!(Matcher::parse("(a{1000}){1000}").is_err());
    }
}
