//! Permission rules: patterns that allow, ask about or deny calls.
//!
//! | rule | matches |
//! |---|---|
//! | `read_file` | every call of the tool |
//! | `mcp__github__*` | every call of tools with this prefix |
//! | `write_file(src/**)` | calls that touch only such files; relative to the workspace, links are resolved |
//! | `bash(git status:*)` | commands that begin with these words, followed by harmless arguments |
//! | `bash(make test)` | exactly this command line |
//! | `web_fetch(https://docs.rs/*)` | addresses that match in scheme, host and path |
//!
//! A rule applies to the tools that it names. Rules about `bash` also apply to commands in the background: all of them
//! to `start_command`, and those that deny or ask to the text of `send_input`, with the unfinished line before it.
//! Deny overrides ask, and ask overrides allow.
//!
//! A deny or ask rule about a folder, or about everything in one, includes the folder and everything in it:
//! `search(secrets)` and `search(secrets/**)` mean the same. Such a rule also applies below the path of a call:
//! `search`, `glob` and `list_files` leave out each file and folder for which a separate call would be denied. They
//! also leave out those for which a separate call would need a question, unless a person was already asked about this
//! call. The result says how many are left out. `search` shows the contents of files, so rules about `read_file` apply
//! to what it shows.
//!
//! # Commands
//!
//! A command line is parsed (`permissions/shell.rs`): every command in it, and every file of a redirection,
//! must be allowed. A rule such as `bash(rm:*)` matches its words, followed by options and operands that run
//! and write nothing beyond the program's purpose: `rm` may remove any file, but `sort` may not write one.
//! These options are in a table (`permissions/shell/harmless.rs`), program by program. A program, subcommand
//! or option that is not in the table is allowed only by a rule with the exact line; so are programs that run
//! other commands (`sudo`, `xargs`, `sh -c`, `find -exec`), and lines that set a variable. Words that choose
//! what runs (`make test`, `npm run build`, `node a.js`) must be in the rule. If a line begins with `cd
//! FOLDER`, a folder of the workspace, rules are applied as in that folder. After any other `cd`, git and
//! programs that run the project's code are not allowed, since another folder may have other settings. A line
//! that makes links or moves files may not also redirect to a file by a rule about `write_file`.
//!
//! Deny and ask rules match too much rather than too little. `bash(git push:*)` matches every command with
//! `push` anywhere after `git`, and every line that cannot be parsed. `read_file(secrets/**)` and
//! `write_file(secrets/**)` also match command lines with such a path, a pattern for it, or a folder above
//! it that the command walks. Only the words of a line are checked, not the files that a program opens by
//! itself.

#[cfg(feature = "files")]
use std::path::Component;
use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use archon_types::Subject;

use crate::ToolSetupError;

#[cfg(all(unix, feature = "bash"))]
mod commands;
#[cfg(feature = "files")]
mod files;
#[cfg(all(unix, feature = "bash"))]
mod mentions;
#[cfg(all(unix, feature = "bash"))]
pub(crate) mod shell;
mod suggestions;
mod urls;

pub(crate) use suggestions::suggestions;

/// A rule about calls of a tool: `TOOL` or `TOOL(PATTERN)`, for instance `read_file` or `bash(git status:*)`. A `*` in
/// `TOOL` stands for any text: `mcp__github__*`.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    tool: String,
    of: Option<String>,
    /// The rule's text in brackets, compiled as a pattern of paths; `None` if it is not a valid one.
    #[cfg(feature = "files")]
    files: Option<std::sync::Arc<files::Files>>,
}

impl Rule {
    /// Returns whether the rule applies to a tool of this name.
    fn names(&self, tool: &str) -> bool {
        wildcard(&self.tool, tool)
    }

    /// Returns whether the rule is about a call of `tool`: the rule names the tool, or the call runs a command, the
    /// rule names `bash`, and `alike` contains the tool.
    fn is_about(&self, tool: &str, subject: &Subject, alike: &[&str]) -> bool {
        let is_alike = || matches!(subject, Subject::Command { .. }) && alike.contains(&tool);
        self.names(tool) || is_alike() && self.names("bash")
    }

    /// Returns whether the rule's text in brackets is a pattern that matches this path.
    fn means(&self, root: &Path, path: &Path) -> bool {
        #[cfg(feature = "files")]
        return self.files.as_ref().is_some_and(|files| files.mean(root, path));
        #[cfg(not(feature = "files"))]
        {
            let _ = (root, path);
            false
        }
    }

    /// Returns whether the rule's text in brackets is a pattern that matches this path, a folder above it, or
    /// everything below it.
    fn holds(&self, root: &Path, path: &Path) -> bool {
        #[cfg(feature = "files")]
        return self.files.as_ref().is_some_and(|files| files.hold(root, path));
        #[cfg(not(feature = "files"))]
        {
            let _ = (root, path);
            false
        }
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl FromStr for Rule {
    type Err = ToolSetupError;

    fn from_str(text: &str) -> Result<Self, ToolSetupError> {
        let text = text.trim();
        let wrong = |why: &'static str| ToolSetupError::InvalidRule { rule: text.to_owned(), why };
        let (tool, of) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(of) if !of.trim().is_empty() => (tool, Some(of.trim().to_owned())),
                Some(_) => return Err(wrong("the brackets are empty; leave them out")),
                None => return Err(wrong("the closing bracket is missing")),
            },
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.*".contains(c);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(wrong("a rule begins with the name of a tool: `tool` or `tool(pattern)`"));
        }
        #[cfg(feature = "files")]
        let files = of.as_deref().and_then(files::Files::new).map(std::sync::Arc::new);
        #[cfg(feature = "files")]
        if let Some(of) = &of
            && files.is_none()
            && !of.contains(' ')
            && !of.ends_with(":*")
        {
            return Err(wrong("the text in the brackets is not a valid pattern of paths"));
        }
        Ok(Self {
            text: text.to_owned(),
            tool: tool.to_owned(),
            of,
            #[cfg(feature = "files")]
            files,
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The rules of an engine that deny, ask about or allow calls. Deny rules override ask rules, which override
/// allow rules.
///
/// ```
/// use archon_tools::Permissions;
///
/// // Denied, asked about, and allowed without a question.
/// let rules = Permissions::parse(["bash"], ["web_fetch"], ["read_file", "search"])?;
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Permissions {
    /// Rules that deny calls.
    pub deny: Vec<Rule>,
    /// Rules for calls that a person must approve.
    pub ask: Vec<Rule>,
    /// Rules for calls that run without approval.
    pub allow: Vec<Rule>,
}

/// The decision of [`Permissions`] about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ruling {
    /// The call is denied by the rule with this text.
    Deny(String),
    /// The call needs a person's approval because of the rule with this text.
    Ask(String),
    /// The call is allowed. A person is still asked if the tool requires approval for each call, or if the call's
    /// preview has a warning.
    Allow,
    /// No rule matches: the tool's annotations and [`Ask`](crate::Ask) decide.
    Silent,
}

impl Permissions {
    /// Creates an empty set of rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses rules that deny calls, ask a person about them, and allow them.
    ///
    /// # Errors
    /// [`ToolSetupError::InvalidRule`] for the first invalid rule.
    pub fn parse<T: AsRef<str>>(
        deny: impl IntoIterator<Item = T>,
        ask: impl IntoIterator<Item = T>,
        allow: impl IntoIterator<Item = T>,
    ) -> Result<Self, ToolSetupError> {
        let all =
            |rules: Vec<T>| rules.iter().map(|rule| rule.as_ref().parse()).collect::<Result<Vec<Rule>, _>>();
        Ok(Self {
            deny: all(deny.into_iter().collect())?,
            ask: all(ask.into_iter().collect())?,
            allow: all(allow.into_iter().collect())?,
        })
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.ask.is_empty() && self.allow.is_empty()
    }

    /// Returns whether an allow rule matches the call, and no deny or ask rule does.
    pub fn is_trusted(&self, tool: &str, subject: &Subject) -> bool {
        self.ruling(tool, subject, &[]) == Ruling::Allow
    }

    /// Returns the decision about a call of `tool`. `trusted` are the allow rules that a person gave for the
    /// session; they override ask rules, but not deny rules.
    pub fn ruling(&self, tool: &str, subject: &Subject, trusted: &[String]) -> Ruling {
        if let Some(rule) = self.first(&self.deny, tool, subject) {
            return Ruling::Deny(rule.to_string());
        }
        if !trusted.is_empty() {
            let trusted: Vec<Rule> = trusted.iter().filter_map(|rule| rule.parse().ok()).collect();
            if self.all_allowed(&trusted, tool, subject) {
                return Ruling::Allow;
            }
        }
        if let Some(rule) = self.first(&self.ask, tool, subject) {
            return Ruling::Ask(rule.to_string());
        }
        match self.all_allowed(&self.allow, tool, subject) {
            true => Ruling::Allow,
            false => Ruling::Silent,
        }
    }

    /// Returns the first of `rules` that matches the call or a part of it, such as one path or command. A
    /// call with an unknown target is matched by every rule about its tool.
    fn first<'r>(&self, rules: &'r [Rule], tool: &str, subject: &Subject) -> Option<&'r Rule> {
        rules.iter().find(|rule| {
            let is_about = rule.is_about(tool, subject, &["start_command", "send_input"]);
            let Some(of) = &rule.of else { return is_about };
            if !is_about {
                return touches_files(rule, subject);
            }
            match subject {
                Subject::Paths { root, paths } => paths.iter().any(|path| rule.holds(root, path)),
                Subject::Urls(urls) => urls.iter().any(|url| urls::may_mean(of, url)),
                Subject::Command { line, .. } => command_touches(of, line),
                _ => true,
            }
        })
    }

    /// Returns whether each path, address or command of the call is allowed by at least one of `rules`.
    fn all_allowed(&self, rules: &[Rule], tool: &str, subject: &Subject) -> bool {
        let is_about = |rule: &&Rule| rule.is_about(tool, subject, &["start_command"]);
        let mut named = rules.iter().filter(is_about).peekable();
        if named.peek().is_none() {
            return false;
        }
        let named: Vec<&Rule> = named.collect();
        if named.iter().any(|rule| rule.of.is_none()) {
            return true;
        }
        let of: Vec<&str> = named.iter().filter_map(|rule| rule.of.as_deref()).collect();
        match subject {
            Subject::Paths { root, paths } => {
                let is_allowed = |path: &PathBuf| named.iter().any(|rule| rule.means(root, path));
                !paths.is_empty() && paths.iter().all(is_allowed)
            }
            Subject::Urls(urls) => {
                !urls.is_empty() && urls.iter().all(|url| of.iter().any(|of| urls::means(of, url)))
            }
            Subject::Command { line, root } => command_is_allowed(
                &of,
                line,
                |path, writes| {
                    let subject = Subject::Paths { root: root.clone(), paths: vec![path.to_owned()] };
                    let tool = if writes { "write_file" } else { "read_file" };
                    let is_denied = self.first(&self.deny, tool, &subject).is_some();
                    let is_asked = self.first(&self.ask, tool, &subject).is_some();
                    !is_denied && !is_asked && (!writes || self.all_allowed(rules, tool, &subject))
                },
                root,
            ),
            _ => false,
        }
    }
}

/// Returns whether a rule about a file tool matches a file that a command reads or writes.
fn touches_files(rule: &Rule, subject: &Subject) -> bool {
    #[cfg(all(unix, feature = "bash"))]
    if let Subject::Command { line, root } = subject {
        return mentions::mentions(rule, line, root);
    }
    let _ = (rule, subject);
    false
}

/// Returns whether the text in brackets of a deny or ask rule matches any command of a command line. A line
/// that cannot be parsed is matched by every rule.
fn command_touches(of: &str, line: &str) -> bool {
    #[cfg(all(unix, feature = "bash"))]
    return of == line.trim() || commands::may_hold(of, line);
    #[cfg(not(all(unix, feature = "bash")))]
    {
        let _ = (of, line);
        true
    }
}

fn command_is_allowed(of: &[&str], line: &str, file: impl Fn(&Path, bool) -> bool, root: &Path) -> bool {
    #[cfg(all(unix, feature = "bash"))]
    return of.contains(&line.trim()) || commands::are_allowed(of, line, file, root);
    #[cfg(not(all(unix, feature = "bash")))]
    {
        let _ = (file, root);
        of.contains(&line.trim())
    }
}

/// Joins a path to `root` and removes `.` and `..`; links are not resolved.
#[cfg(feature = "files")]
pub(crate) fn plain(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let mut plain = root.to_owned();
    for part in path.as_ref().components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Resolves the links in the existing part of a path. Returns `None` if the target of a link is not known.
#[cfg(feature = "files")]
pub(crate) fn resolved(root: &Path, path: impl AsRef<Path>) -> Option<PathBuf> {
    let joined = root.join(path);
    let mut rest = Vec::new();
    let mut at = joined.as_path();
    loop {
        if let Ok(real) = at.canonicalize() {
            return Some(rest.iter().rev().fold(real, |real, name| real.join(name)));
        }
        // The target of a dangling link is not known.
        if at.symlink_metadata().is_ok() {
            return None;
        }
        rest.push(at.file_name()?.to_owned());
        at = at.parent()?;
    }
}

/// Returns whether `text` matches `pattern`, in which `*` is any text.
fn wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests;
