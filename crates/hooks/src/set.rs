//! A set of hooks, from files.

use std::{path::Path, sync::Arc};

use crate::{
    file,
    hook::{HookDescription, HookProblem, OneHook, Trusted},
};

/// The hash of a project's file with hooks cannot be computed, so nobody can trust the file.
///
/// ```
/// use archon_hooks::{HookDigestError, HookSet};
///
/// fn hash(text: &str, project: &std::path::Path) -> Option<String> {
///     match HookSet::digest(text, project) {
///         Ok(hash) => Some(hash),
///         Err(HookDigestError::NamedFile { line, problem }) => {
///             eprintln!("line {line}: {problem}");
///             None
///         }
///         Err(_) => None,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookDigestError {
    /// A command names files that a hash cannot cover.
    #[error("the hash of the file with hooks cannot be computed, because of line {line}: {problem}")]
    NamedFile {
        /// The line of the hook in the file, from 1; also 1 if the problem is about the files of all hooks together.
        line: usize,
        /// The problem, with the name of the file or link.
        problem: String,
    },
}

/// The hooks of a person and of a project, in order.
///
/// A file may be the settings of another agent: only its field `hooks` is read.
///
/// ```
/// use archon_hooks::HookSet;
///
/// let text = r#"{ "hooks": { "PreToolUse": [
///     { "matcher": "bash", "hooks": [{ "type": "command", "command": "./check.sh", "timeout": 5 }] },
///     { "matcher": "bash", "hooks": [{ "type": "comand" }] }
/// ] } }"#;
/// let (hooks, problems) = HookSet::of_person("/home/me/hooks.json".as_ref(), text);
/// assert_eq!(hooks.len(), 1);
/// assert!(problems[0].to_string().starts_with("/home/me/hooks.json:3: "));
/// ```
///
/// A hook of the type `http` is an endpoint that gets the event in a POST request:
///
/// ```
/// use archon_hooks::HookSet;
///
/// let text = r#"{ "hooks": { "PreToolUse": [{ "matcher": "bash", "hooks": [
///     { "type": "http", "url": "http://127.0.0.1:8080/check", "headers": { "authorization": "Bearer token" } }
/// ] }] } }"#;
/// let (hooks, problems) = HookSet::of_person("hooks.json".as_ref(), text);
/// assert!(problems.is_empty());
/// let [hook] = &hooks.descriptions("/srv/app".as_ref())[..] else { panic!("there is one hook") };
/// assert_eq!(hook.to_string(), "PreToolUse bash: POST http://127.0.0.1:8080/check");
/// ```
#[derive(Clone, Debug, Default)]
pub struct HookSet {
    pub(crate) hooks: Vec<OneHook>,
}

impl HookSet {
    /// Reads a person's own file. Its hooks run with that person's rights. Broken hooks are left out, and named in
    /// the problems; the others work.
    pub fn of_person(path: &Path, text: &str) -> (Self, Vec<HookProblem>) {
        let (hooks, problems) = file::parse(path, text);
        (Self { hooks }, problems)
    }

    /// Reads a file of the project in the folder `project`. Its hooks count only if `is_trusted` returns true for the
    /// [digest](Self::digest) of the file; otherwise the set is empty and the problem has the digest.
    ///
    /// A hook whose scripts change later fails, until the file is read and trusted again. A file whose commands name a link
    /// that leads out of the project cannot be trusted, nor one whose commands name files of more than 16 MiB.
    pub fn of_project(
        path: &Path,
        text: &str,
        project: &Path,
        is_trusted: impl FnOnce(&str) -> bool,
    ) -> (Self, Vec<HookProblem>) {
        let (mut hooks, mut problems) = file::parse(path, text);
        if hooks.is_empty() {
            return (Self::default(), problems);
        }
        let trusted = match Trusted::new(text, &hooks, project) {
            Ok(trusted) => trusted,
            Err((line, text)) => {
                let text = format!("no hook of this file runs: {text}");
                problems.push(HookProblem { path: path.to_owned(), line, text });
                return (Self::default(), problems);
            }
        };
        if !is_trusted(&trusted.digest) {
            let text = format!(
                "{} of this project do not run, because this file was not trusted (SHA-256 {}): read it, then trust it",
                count(hooks.len()),
                trusted.digest
            );
            problems.push(HookProblem { path: path.to_owned(), line: 1, text });
            return (Self::default(), problems);
        }
        let trusted = Arc::new(trusted);
        hooks.iter_mut().for_each(|hook| hook.trusted = Some(trusted.clone()));
        (Self { hooks }, problems)
    }

    /// Returns the hash that a person trusts: the SHA-256, in hexadecimal digits, of the text of a project's file and
    /// of the files in the project that its commands name ([`HookDescription::files`]). What those scripts start in turn is
    /// not part of it.
    ///
    /// ```
    /// use archon_hooks::HookSet;
    ///
    /// let text = r#"{ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "./done.sh" }] }] } }"#;
    /// let (path, project) = ("/srv/app/.archon/hooks.json".as_ref(), "/srv/app".as_ref());
    /// let digest = HookSet::digest(text, project)?;
    /// let (hooks, _) = HookSet::of_project(path, text, project, |asked| asked == digest);
    /// assert_eq!(hooks.len(), 1);
    /// let (hooks, problems) = HookSet::of_project(path, text, project, |_| false);
    /// assert!(hooks.is_empty() && problems[0].text.contains(&digest));
    /// # Ok::<(), archon_hooks::HookDigestError>(())
    /// ```
    ///
    /// # Errors
    /// [`HookDigestError`] if a command names a link that leads out of the project, or files that cannot be read or have
    /// more than 16 MiB.
    pub fn digest(text: &str, project: &Path) -> Result<String, HookDigestError> {
        let trusted = Trusted::new(text, &file::parse(Path::new(""), text).0, project);
        trusted
            .map(|trusted| trusted.digest)
            .map_err(|(line, problem)| HookDigestError::NamedFile { line, problem })
    }

    /// Adds the hooks of another file. All hooks of an event run at the same time.
    ///
    /// ```
    /// use archon_hooks::HookSet;
    ///
    /// let of = |command: &str| {
    ///     let hook = format!(r#"{{ "type": "command", "command": "{command}" }}"#);
    ///     let text = format!(r#"{{ "hooks": {{ "Stop": [{{ "hooks": [{hook}] }}] }} }}"#);
    ///     HookSet::of_person("hooks.json".as_ref(), &text).0
    /// };
    /// assert_eq!(of("./done.sh").and(of("./tell.sh")).len(), 2);
    /// ```
    pub fn and(mut self, other: Self) -> Self {
        self.hooks.extend(other.hooks);
        self
    }

    /// Returns a description of each hook, in order, to show to a person before a file of this project is trusted.
    ///
    /// ```
    /// use archon_hooks::HookSet;
    ///
    /// let text = r#"{ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "./done.sh" }] }] } }"#;
    /// let (hooks, _) = HookSet::of_person("/srv/app/.archon/hooks.json".as_ref(), text);
    /// let [hook] = &hooks.descriptions("/srv/app".as_ref())[..] else { panic!("there is one hook") };
    /// assert_eq!(hook.text, "Stop *: ./done.sh");
    /// // There is no such file, so the hash covers none.
    /// assert!(hook.is_command && hook.files.is_empty());
    /// ```
    pub fn descriptions(&self, project: &Path) -> Vec<HookDescription> {
        self.hooks.iter().map(|hook| hook.description(project)).collect()
    }

    /// Returns the number of hooks.
    pub fn len(&self) -> usize {
        self.hooks.len()
    }

    /// Returns true if there is no hook.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }
}

fn count(hooks: usize) -> String {
    if hooks == 1 { "1 hook".to_owned() } else { format!("{hooks} hooks") }
}
