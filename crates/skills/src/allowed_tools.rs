//! `allowed-tools`: the tools that may be called while a skill is active. The list never grants anything: it can only
//! take tools away from those that the agent has.

use archon_types::Subject;

/// The names of other programs' tools, each with the name of our tool that does the same.
const ALIASES: [(&str, &str); 11] = [
    ("Bash", "bash"),
    ("Read", "read_file"),
    ("Write", "write_file"),
    ("Edit", "edit_file"),
    ("MultiEdit", "edit_file"),
    ("Grep", "search"),
    ("Glob", "glob"),
    ("LS", "list_files"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("TodoWrite", "update_plan"),
];

/// The tools that a skill may use: names (`read_file`), names with a pattern for the call (`bash(git status:*)`), and
/// prefixes (`mcp__github__*`).
///
/// Tool names of other programs, such as `Bash` and `Read`, become ours.
///
/// ```
/// use archon_skills::AllowedTools;
/// use archon_types::Subject;
///
/// let tools = AllowedTools::parse("Read mcp__github__* Bash(git status:*)");
/// assert_eq!(tools.rules(), ["read_file", "mcp__github__*", "bash(git status:*)"]);
/// assert!(tools.allows("read_file", &Subject::Unknown, None));
/// assert!(tools.names_tool("bash") && !tools.names_tool("write_file"));
/// // Without a matcher for patterns, a pattern allows nothing.
/// assert!(!tools.allows("bash", &Subject::Unknown, None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTools(Vec<String>);

/// Decides if rules with a pattern, such as `bash(git:*)`, allow a call. The crate `archon` has a matcher that reads
/// such rules like permission rules.
///
/// ```
/// use archon_skills::RuleMatcher;
/// use archon_types::Subject;
///
/// /// Knows patterns of whole command lines only.
/// struct WholeLines;
///
/// impl RuleMatcher for WholeLines {
///     fn allows(&self, rules: &[&str], tool: &str, subject: &Subject) -> bool {
///         let Subject::Command { line, .. } = subject else { return false };
///         rules.contains(&format!("{tool}({line})").as_str())
///     }
/// }
/// ```
pub trait RuleMatcher: Send + Sync {
    /// Returns true if each part of the call of `tool` is allowed by at least one of the rules. All of these rules
    /// are about `tool`. An implementation must return false for a call or a rule that it does not understand.
    fn allows(&self, rules: &[&str], tool: &str, subject: &Subject) -> bool;
}

impl AllowedTools {
    /// Creates a list of rules. Each text is one rule.
    pub fn new<'r>(rules: impl IntoIterator<Item = &'r str>) -> Self {
        let rules = rules.into_iter().map(str::trim).filter(|rule| !rule.is_empty());
        Self(rules.map(with_our_name).collect())
    }

    /// Parses rules that are separated by spaces or commas. Spaces and commas in brackets belong to a rule.
    pub fn parse(text: &str) -> Self {
        let mut depth = 0_usize;
        let is_separator = |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (c.is_whitespace() || c == ',')
        };
        Self::new(text.split(is_separator))
    }

    /// Returns the rules, with the names of our tools.
    pub fn rules(&self) -> &[String] {
        &self.0
    }

    /// Returns true if a rule is about this tool, so that the rules may allow some calls of it.
    pub fn names_tool(&self, tool: &str) -> bool {
        self.0.iter().any(|rule| is_about(rule, tool))
    }

    /// Returns true if the rules allow this call. Rules with patterns allow nothing without a matcher.
    pub fn allows(&self, tool: &str, subject: &Subject, matcher: Option<&dyn RuleMatcher>) -> bool {
        let about: Vec<&str> =
            self.0.iter().map(String::as_str).filter(|rule| is_about(rule, tool)).collect();
        if about.iter().any(|rule| !rule.contains('(')) {
            return true;
        }
        let is_whole = |rule: &&str| rule.ends_with(')');
        let patterns: Vec<&str> = about.into_iter().filter(is_whole).collect();
        !patterns.is_empty() && matcher.is_some_and(|matcher| matcher.allows(&patterns, tool, subject))
    }
}

fn with_our_name(rule: &str) -> String {
    let (name, pattern) = rule.split_at(rule.find('(').unwrap_or(rule.len()));
    let known = ALIASES.iter().find(|(theirs, _)| *theirs == name);
    format!("{}{pattern}", known.map_or(name, |(_, ours)| ours))
}

fn is_about(rule: &str, tool: &str) -> bool {
    let name = rule.split('(').next().unwrap_or_default();
    match name.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => name == tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_separates_by_spaces_and_commas_outside_of_brackets() {
        let rules = |text| AllowedTools::parse(text).rules().to_vec();
        assert_eq!(rules("Bash(git add:*) Read, Grep"), ["bash(git add:*)", "read_file", "search"]);
        assert_eq!(rules("Bash(echo (a, b) c)  x"), ["bash(echo (a, b) c)", "x"]);
        assert_eq!(rules(" "), [""; 0]);
        assert_eq!(rules("Bash(git"), ["bash(git"]);
    }

    #[test]
    fn allows_with_an_unfinished_pattern_nothing() {
        struct All;
        impl RuleMatcher for All {
            fn allows(&self, _: &[&str], _: &str, _: &Subject) -> bool {
                true
            }
        }
        let allows = |text: &str| AllowedTools::parse(text).allows("bash", &Subject::Unknown, Some(&All));
        assert!(allows("Bash(git:*)") && !allows("Bash(git") && !allows("Read"));
    }
}
