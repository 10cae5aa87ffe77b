//! The list of control files: files that can start a program although the person has run nothing of the project. These
//! are settings of git, editors, agents and shells, and files that run on a push. By changing such a file, a sandboxed
//! command could make a program run outside of the sandbox.
//!
//! A file tool asks a person about each change of such a file, and no permission rule can replace the answer.
//! A command cannot change such a file (`sandbox/control.rs`). The list has files that programs read on their
//! own. Files that a person must run (a makefile, a build script, a test) are not on the list. Neither are
//! `.gitmodules` and `.gitattributes`: git runs a program that they name only if its settings name the
//! program, too.

use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Component, Path},
    sync::LazyLock,
};

/// The name of one of the files with settings of agents, for the list [`SETTINGS`].
const CLAUDE: &str = concat!("claude", ".md");

/// Names of files and folders with settings, in lower case and grouped by the reason why they are control
/// files. A name counts in any folder, and a folder counts with all its content.
const SETTINGS: &[(&str, &str)] = &[
    (
        "it holds settings of agents",
        ".agents .archon .claude .clinerules .codex .cursor .cursorrules .gemini .mcp.json .roo .windsurf \
         .windsurfrules agents.md agents.override.md .aider.conf.yml archon.toml claude.local.md gemini.md \
         opencode.json",
    ),
    ("it holds settings of agents", CLAUDE),
    (
        "it holds settings of an editor",
        ".devcontainer .devcontainer.json .exrc .fleet .idea .nvim.lua .vim .vimrc .vscode .zed",
    ),
    (
        "a push can run commands from it",
        ".buildkite .circleci .cirrus.yml .drone.yml .forgejo .gitea .github .gitlab .gitlab-ci.yml \
         .travis.yml .woodpecker .woodpecker.yml appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml jenkinsfile",
    ),
    ("git can run commands from it", ".gitconfig .githooks .husky .pre-commit-config.yaml lefthook.yml"),
    (
        "a shell can run commands from it",
        ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .bashrc.d .envrc .mise.toml .profile \
         .ssh .xprofile .zlogin .zlogout .zprofile .zshenv .zshrc mise.toml",
    ),
];

/// A map from each name in [`SETTINGS`] to its reason: a search looks up the names of thousands of files.
static REASONS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let mut reasons = HashMap::new();
    for (why, names) in SETTINGS {
        reasons.extend(names.split(' ').map(|name| (name, *why)));
    }
    reasons
});

/// Folders of personal settings below `.config`.
const CONFIG: &[&str] = &["autostart", "environment.d", "fish", "git", "nvim", "systemd"];

/// Settings within a git folder. `config` and the files that lead to one can name programs that git runs;
/// attributes choose the files for which git runs them.
pub(crate) const GIT: &[&str] = &["config", "config.worktree", "commondir", "hooks", "info/attributes"];

/// Returns the reason why a path, relative to its workspace, is a control file, or `None` if it is not one.
pub(crate) fn control(relative: &Path) -> Option<&'static str> {
    let names: Vec<&OsStr> = relative
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    names.iter().enumerate().find_map(|(at, name)| match name.eq_ignore_ascii_case(".git") {
        true => is_of_git(&names[at + 1..]).then_some("git can run commands from it"),
        false => named(at.checked_sub(1).map(|above| names[above]), name),
    })
}

/// Returns the reason why a file called `name` in a folder called `folder` is a control file, or `None` if it
/// is not one. Git's own files are not checked here.
pub(crate) fn named(folder: Option<&OsStr>, name: &OsStr) -> Option<&'static str> {
    // Some file systems and programs ignore case.
    let name = name.to_string_lossy().to_ascii_lowercase();
    if folder.is_some_and(|folder| folder.eq_ignore_ascii_case(".config")) && CONFIG.contains(&&*name) {
        return Some("it holds settings of a person");
    }
    let is_workspace = Path::new(&name).extension().is_some_and(|end| end == "code-workspace");
    let editor = is_workspace.then_some("it holds settings of an editor");
    editor.or_else(|| REASONS.get(&*name).copied())
}

/// Returns whether a path, relative to the workspace, is a control file: a file that can start a program although the
/// person has run nothing of the project, such as `.git/config`, `.vscode/tasks.json` or `AGENTS.md`. The folder `.git`
/// itself counts as one, but some files in it do not, such as `.git/index`.
///
/// ```
/// assert!(archon_tools::is_control_file("sub/.git/hooks/pre-commit"));
/// assert!(!archon_tools::is_control_file(".git/index"));
/// ```
pub fn is_control_file(relative: impl AsRef<Path>) -> bool {
    control(relative.as_ref()).is_some()
}

/// Returns whether a path relative to a git folder leads to settings of the repository, of a submodule or of
/// a worktree. An empty path, which is the git folder itself, counts too.
pub(crate) fn is_of_git(behind: &[&OsStr]) -> bool {
    let is = |known: &str, names: &[&OsStr]| {
        let mut names = names.iter();
        known.split('/').all(|part| names.next().is_some_and(|name| name.eq_ignore_ascii_case(part)))
    };
    let begins = |names: &[&OsStr]| GIT.iter().any(|known| is(known, names));
    match behind {
        [] => true,
        [first, rest @ ..]
            if ["modules", "worktrees"].iter().any(|known| first.eq_ignore_ascii_case(known)) =>
        {
            (0..rest.len()).any(|at| begins(&rest[at..]))
        }
        names => begins(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_control_file_for_git_and_agent_settings_only() {
        for path in [
            ".git",
            ".git/config",
            ".GIT/Config",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
            ".git/commondir",
            ".git/modules/libs/a/config",
            ".git/worktrees/wt/config.worktree",
            "sub/.git/hooks",
            "archon.toml",
            ".archon/permissions.toml",
            "sub/AGENTS.md",
            ".vscode/tasks.json",
            ".github/workflows/ci.yml",
            ".envrc",
            ".mcp.json",
            ".claude/skills/a/SKILL.md",
            ".config/systemd/user/a.service",
            "app.code-workspace",
        ] {
            assert!(is_control_file(path), "{path}");
        }
        for path in [
            "",
            "src/lib.rs",
            ".git/index",
            ".git/HEAD",
            ".git/refs/heads/config",
            ".git/objects/info/packs",
            ".git/info/refs",
            ".gitignore",
            ".gitmodules",
            "config",
            "hooks/a",
            ".config/app/a.toml",
            "docs/agents.rst",
            "Makefile",
        ] {
            assert!(!is_control_file(path), "{path}");
        }
    }
}
