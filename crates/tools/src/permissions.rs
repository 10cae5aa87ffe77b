//! What may be done without asking, what only after asking, and what not at all: rules, as a person writes
//! them.
//!
//! | rule | speaks of |
//! |---|---|
//! | `read_file` | every call of the tool |
//! | `mcp__github__*` | every call of the tools whose names begin so |
//! | `write_file(src/**)` | calls that touch only such files; relative to the workspace, links followed |
//! | `bash(git status:*)` | commands that begin with these words, with what is harmless behind them |
//! | `bash(make test)` | this command line, to the letter |
//! | `web_fetch(https://docs.rs/*)` | addresses of this form: scheme, host and path |
//!
//! A rule is about calls of the tools that it names. Deny comes before ask, and ask before allow. A rule that
//! denies or asks and means a folder, or all in one, means the folder and all in it: `search(secrets)` and
//! `search(secrets/**)` say the same. Such a rule holds wherever a call begins: `search`, `glob` and
//! `list_files` leave out each place at which a call of their own would be denied, and each at which one
//! would be asked about, unless the call itself was; how many is in the result. `search` shows what is in
//! files, so rules about `read_file` hold for what it shows.
//!
//! # Commands
//!
//! A command line is taken apart (`permissions/shell.rs`): every command in it, and every file that it
//! redirects to, has to be allowed. A rule such as `bash(rm:*)` means its words, and behind them options and
//! operands that run and write nothing but what the program is for: `rm` may remove any file, `sort` may not
//! write one. Those options stand in a table (`permissions/shell/harmless.rs`), program by program. A
//! program, a subcommand or an option that is not in it is allowed for its exact line only; so is what runs
//! other commands (`sudo`, `xargs`, `sh -c`, `find -exec`), and a line that sets a variable. What says what
//! runs (`make test`, `npm run build`, `node a.js`) is as the rule names it. A line
//! that begins with `cd FOLDER`, a folder of the workspace, is held against the rules as in that folder. Behind any other
//! `cd`, git and what runs code of the project are not allowed, since another folder may hold other settings. A line that makes links
//! or moves files does not also redirect to a file by a rule about `write_file`.
//!
//! Rules that deny and ask mean too much rather than too little. `bash(git push:*)` speaks of every command
//! in which `push` comes anywhere behind `git`, and of every line that cannot be taken apart.
//! `read_file(secrets/**)` and `write_file(secrets/**)` speak of command lines, too, in which such a path, a
//! pattern for it, or a folder above it that is gone through is found. They look at words: what a program
//! opens by itself, they do not see.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use archon_types::Subject;

use crate::Error;

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

/// A rule about calls; see the module's page for how one is written.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    tool: String,
    of: Option<String>,
    /// The same as a pattern of paths, if it is one.
    #[cfg(feature = "files")]
    files: Option<std::sync::Arc<files::Files>>,
}

impl Rule {
    /// Whether the rule speaks of a tool of this name at all.
    fn names(&self, tool: &str) -> bool {
        wildcard(&self.tool, tool)
    }

    /// Whether what stands between the brackets means this path.
    fn means(&self, root: &Path, path: &Path) -> bool {
        #[cfg(feature = "files")]
        return self.files.as_ref().is_some_and(|files| files.mean(root, path));
        #[cfg(not(feature = "files"))]
        {
            let _ = (root, path);
            false
        }
    }

    /// Whether it means this path, a folder in which it lies, or all that is in it.
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
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let wrong = |why: &'static str| Error::InvalidRule { rule: text.to_owned(), why };
        let (tool, of) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(of) if !of.trim().is_empty() => (tool, Some(of.trim().to_owned())),
                Some(_) => return Err(wrong("there is nothing between the brackets; leave them out")),
                None => return Err(wrong("the closing bracket is missing")),
            },
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.*".contains(c);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(wrong("it has to begin with the name of a tool: `tool` or `tool(what it works on)`"));
        }
        #[cfg(feature = "files")]
        let files = of.as_deref().and_then(files::Files::new).map(std::sync::Arc::new);
        #[cfg(feature = "files")]
        if let Some(of) = &of
            && files.is_none()
            && !of.contains(' ')
            && !of.ends_with(":*")
        {
            return Err(wrong("what stands between the brackets is no pattern of paths"));
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

/// Rules in their three kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Permissions {
    /// What is never done.
    pub deny: Vec<Rule>,
    /// What is asked about each time.
    pub ask: Vec<Rule>,
    /// What is done without asking.
    pub allow: Vec<Rule>,
}

/// What rules make of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ruling {
    /// This rule forbids it.
    Deny(String),
    /// This rule wants it asked about.
    Ask(String),
    /// It is allowed.
    Allow,
    /// No rule speaks of it.
    Silent,
}

impl Permissions {
    /// No rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with rules as they are written; what is wrong with one is an error.
    ///
    /// # Errors
    /// [`Error::InvalidRule`] names the first rule that is none, and why.
    pub fn parse<T: AsRef<str>>(
        deny: impl IntoIterator<Item = T>,
        ask: impl IntoIterator<Item = T>,
        allow: impl IntoIterator<Item = T>,
    ) -> Result<Self, Error> {
        let all =
            |rules: Vec<T>| rules.iter().map(|rule| rule.as_ref().parse()).collect::<Result<Vec<Rule>, _>>();
        Ok(Self {
            deny: all(deny.into_iter().collect())?,
            ask: all(ask.into_iter().collect())?,
            allow: all(allow.into_iter().collect())?,
        })
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.ask.is_empty() && self.allow.is_empty()
    }

    /// Whether a call may run without asking, by a rule of a person's.
    pub fn is_trusted(&self, tool: &str, subject: &Subject) -> bool {
        self.ruling(tool, subject, &[]) == Ruling::Allow
    }

    /// What the rules say of a call of `tool`. Rules that a person gave for the session while being asked
    /// (`trusted`) go before those that ask, and after those that deny.
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

    /// The first rule that speaks of the call or of any part of it; what cannot be looked into is as bad as
    /// can be.
    fn first<'r>(&self, rules: &'r [Rule], tool: &str, subject: &Subject) -> Option<&'r Rule> {
        rules.iter().find(|rule| {
            let Some(of) = &rule.of else { return rule.names(tool) };
            if !rule.names(tool) {
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

    /// Whether everything that the call does is allowed by one of the rules.
    fn all_allowed(&self, rules: &[Rule], tool: &str, subject: &Subject) -> bool {
        let mut named = rules.iter().filter(|rule| rule.names(tool)).peekable();
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

/// A rule about a file tool speaks of the files that a command touches, too.
fn touches_files(rule: &Rule, subject: &Subject) -> bool {
    #[cfg(all(unix, feature = "bash"))]
    if let Subject::Command { line, root } = subject {
        return mentions::mentions(rule, line, root);
    }
    let _ = (rule, subject);
    false
}

/// Whether a rule that denies or asks speaks of a command line: of any command in it, or of all it may be if
/// it cannot be taken apart.
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

/// Where a path leads once links are followed, as far as it exists.
#[cfg(feature = "files")]
pub(crate) fn resolved(root: &Path, path: impl AsRef<Path>) -> Option<PathBuf> {
    let joined = root.join(path);
    let mut rest = Vec::new();
    let mut at = joined.as_path();
    loop {
        if let Ok(real) = at.canonicalize() {
            return Some(rest.iter().rev().fold(real, |real, name| real.join(name)));
        }
        // A link that leads nowhere yet leads wherever it says: not known.
        if at.symlink_metadata().is_ok() {
            return None;
        }
        rest.push(at.file_name()?.to_owned());
        at = at.parent()?;
    }
}

/// Whether `text` has the form of `pattern`, in which `*` stands for anything.
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
