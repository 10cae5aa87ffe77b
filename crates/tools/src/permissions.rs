//! What may be done without asking, what only after asking, and what not at all: rules, as a person writes them.
//!
//! | rule | speaks of |
//! |---|---|
//! | `read_file` | every call of the tool |
//! | `mcp__github__*` | every call of the tools whose names begin so |
//! | `write_file(src/**)` | calls that touch only such files; relative to the workspace, links followed |
//! | `bash(git status:*)` | commands that begin with these words |
//! | `bash(make test)` | this command line, to the letter |
//! | `web_fetch(https://docs.rs/*)` | addresses of this form |
//!
//! A rule is about calls of the tools that it names. Deny comes before ask, and ask before allow. A rule that denies or asks
//! and means a folder, or all in one, means the folder and all in it: `search(secrets)` and `search(secrets/**)` say the same.
//! Such a rule holds wherever a call begins: `search`, `glob` and `list_files` leave out each place at which a call of their
//! own would be denied, and each at which one would be asked about, unless the call itself was; how many is in the result.
//! `search` shows what is in files, so rules about `read_file` hold for what it shows. A command line is taken apart (`permissions/shell.rs`): every command
//! in it, and every file that it redirects to, has to be allowed. What runs other commands (`sudo`, `xargs`, `sh -c`,
//! `find -exec`) is never allowed for its first words, nor for those of what it runs: only to the letter.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use archon_types::Subject;

use crate::Error;

#[cfg(feature = "files")]
mod files;
#[cfg(all(unix, feature = "bash"))]
pub(crate) mod shell;

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

    /// The first rule that speaks of the call or of any part of it; what cannot be looked into is as bad as can be.
    fn first<'r>(&self, rules: &'r [Rule], tool: &str, subject: &Subject) -> Option<&'r Rule> {
        rules.iter().find(|rule| {
            let Some(of) = &rule.of else { return rule.names(tool) };
            if !rule.names(tool) {
                return is_redirect(rule, subject);
            }
            match subject {
                Subject::Paths { root, paths } => paths.iter().any(|path| rule.holds(root, path)),
                Subject::Urls(urls) => urls.iter().any(|url| wildcard(of, url)),
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
                !urls.is_empty() && urls.iter().all(|url| of.iter().any(|of| wildcard(of, url)))
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

/// Rules that would allow a call, the narrowest first: what a person may choose from when asked.
pub(crate) fn suggestions(tool: &str, subject: &Subject) -> Vec<String> {
    let mut rules = Vec::new();
    match subject {
        Subject::Command { line, .. } => {
            let line = line.trim();
            if !line.is_empty() && !line.contains('\n') && line.len() <= LONGEST_SUGGESTION {
                rules.push(format!("{tool}({line})"));
            }
            rules.extend(prefix_of(line).map(|prefix| format!("{tool}({prefix}:*)")));
        }
        Subject::Paths { root, paths } => {
            if let [path] = &paths[..]
                && let Ok(inside) = path.strip_prefix(root)
            {
                let escaped = escape(&inside.to_string_lossy());
                rules.push(format!("{tool}({escaped})"));
                if let Some(folder) = inside.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    rules.push(format!("{tool}({}/**)", escape(&folder.to_string_lossy())));
                }
            }
        }
        Subject::Urls(urls) => {
            if let [url] = &urls[..]
                && let Some((scheme, rest)) = url.split_once("://")
            {
                let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
                rules.push(format!("{tool}({scheme}://{host}/*)"));
            }
        }
        _ => rules.push(tool.to_owned()),
    }
    rules.retain(|rule| rule.parse::<Rule>().is_ok());
    rules
}

/// A command line that is longer than this is no rule that anybody reads.
const LONGEST_SUGGESTION: usize = 200;

/// A rule about a file tool speaks of the files that a command redirects to, too.
fn is_redirect(rule: &Rule, subject: &Subject) -> bool {
    let Subject::Command { line, root } = subject else { return false };
    #[cfg(all(unix, feature = "bash"))]
    {
        let Some(line) = shell::analyse(line) else { return false };
        let touches = |paths: &[Option<String>], tool| {
            let mut known = paths.iter().flatten().filter_map(|path| resolved(root, path));
            rule.names(tool) && known.any(|path| rule.holds(root, &path))
        };
        touches(&line.writes, "write_file") || touches(&line.reads, "read_file")
    }
    #[cfg(not(all(unix, feature = "bash")))]
    {
        let _ = (rule, line, root);
        false
    }
}

/// Whether a rule that denies or asks speaks of a command line: of any command in it, or of all it may be if it cannot
/// be taken apart.
fn command_touches(of: &str, line: &str) -> bool {
    if of == line.trim() {
        return true;
    }
    #[cfg(all(unix, feature = "bash"))]
    {
        let prefix = prefix(of);
        match shell::analyse(line) {
            Some(line) => line.parts.iter().any(|part| part.holds(&prefix)),
            None => true,
        }
    }
    #[cfg(not(all(unix, feature = "bash")))]
    true
}

#[cfg(all(unix, feature = "bash"))]
fn command_is_allowed(of: &[&str], line: &str, file: impl Fn(&Path, bool) -> bool, root: &Path) -> bool {
    if of.contains(&line.trim()) {
        return true;
    }
    let prefixes: Vec<Vec<&str>> = of.iter().filter(|of| of.ends_with(":*")).map(|of| prefix(of)).collect();
    if prefixes.is_empty() {
        return false;
    }
    let Some(line) = shell::analyse(line) else { return false };
    let is_allowed = |path: &Option<String>, writes| match path.as_deref() {
        Some("/dev/null") => true,
        // Where a relative path leads after a change of folder is not known here.
        Some(path) if !line.moves || path.starts_with('/') => {
            resolved(root, path).is_some_and(|path| file(&path, writes))
        }
        _ => false,
    };
    !line.parts.is_empty()
        && line.parts.iter().all(|part| prefixes.iter().any(|prefix| part.begins_with(prefix)))
        && line.writes.iter().all(|path| is_allowed(path, true))
        && line.reads.iter().all(|path| is_allowed(path, false))
}

#[cfg(not(all(unix, feature = "bash")))]
fn command_is_allowed(of: &[&str], line: &str, _: impl Fn(&Path, bool) -> bool, _: &Path) -> bool {
    of.contains(&line.trim())
}

/// The words of a rule about commands.
#[cfg(all(unix, feature = "bash"))]
fn prefix(of: &str) -> Vec<&str> {
    of.strip_suffix(":*").unwrap_or(of).split_whitespace().collect()
}

/// The first words of a command, as far as they name what is done.
fn prefix_of(line: &str) -> Option<String> {
    #[cfg(all(unix, feature = "bash"))]
    {
        let line = shell::analyse(line)?;
        let [part] = &line.parts[..] else { return None };
        part.suggestion()
    }
    #[cfg(not(all(unix, feature = "bash")))]
    {
        let _ = line;
        None
    }
}

/// Where a path leads once links are followed, as far as it exists.
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

/// A path as a pattern that means only itself.
fn escape(path: &str) -> String {
    path.chars().flat_map(|c| "*?[]{}\\!".contains(c).then_some('\\').into_iter().chain([c])).collect()
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
