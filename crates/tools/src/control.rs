//! Files of a project that decide what runs for a person who has started nothing of the project: settings of
//! git, of editors, of agents and of shells, and what is run for a push. Changing one is a way from a command
//! that is held to a program that is not.
//!
//! A file tool asks about such a file each time, and no rule answers. A command cannot change one
//! (`sandbox/control.rs`). The list names what a program reads on its own; what a person starts (a makefile,
//! a build script, a test) is not on it. `.gitmodules` and `.gitattributes` are not either: git runs nothing
//! that they name unless its settings say so.

use std::{
    ffi::OsStr,
    path::{Component, Path},
};

/// Folders of settings, with all that is in them, and files of settings; in any folder, in lower case.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "it holds settings of agents",
        &[
            ".agents",
            ".archon",
            ".claude",
            ".clinerules",
            ".codex",
            ".cursor",
            ".cursorrules",
            ".gemini",
            ".mcp.json",
            ".roo",
            ".windsurf",
            ".windsurfrules",
            "agents.md",
            "agents.override.md",
            ".aider.conf.yml",
            "archon.toml",
            "claude.local.md",
            concat!("claude", ".md"),
            "gemini.md",
            "opencode.json",
        ],
    ),
    (
        "it holds settings of an editor",
        &[
            ".devcontainer",
            ".devcontainer.json",
            ".exrc",
            ".fleet",
            ".idea",
            ".nvim.lua",
            ".vim",
            ".vimrc",
            ".vscode",
            ".zed",
        ],
    ),
    (
        "a push runs what it says",
        &[
            ".buildkite",
            ".circleci",
            ".cirrus.yml",
            ".drone.yml",
            ".forgejo",
            ".gitea",
            ".github",
            ".gitlab",
            ".gitlab-ci.yml",
            ".travis.yml",
            ".woodpecker",
            ".woodpecker.yml",
            "appveyor.yml",
            "azure-pipelines.yml",
            "bitbucket-pipelines.yml",
            "jenkinsfile",
        ],
    ),
    (
        "git runs what it says",
        &[".gitconfig", ".githooks", ".husky", ".pre-commit-config.yaml", "lefthook.yml"],
    ),
    (
        "a shell runs what it says",
        &[
            ".bash_aliases",
            ".bash_login",
            ".bash_logout",
            ".bash_profile",
            ".bashrc",
            ".bashrc.d",
            ".envrc",
            ".mise.toml",
            ".profile",
            ".ssh",
            ".xprofile",
            ".zlogin",
            ".zlogout",
            ".zprofile",
            ".zshenv",
            ".zshrc",
            "mise.toml",
        ],
    ),
];

/// Folders of a person's settings below `.config`.
const CONFIG: &[&str] = &["autostart", "environment.d", "fish", "git", "nvim", "systemd"];

/// What of a git folder is settings: in its `config` and in where it looks for one stand programs that git
/// runs, and attributes say for which files it runs them.
pub(crate) const GIT: &[&str] = &["config", "config.worktree", "commondir", "hooks", "info/attributes"];

/// Why a path, relative to its workspace, is one of a file that decides what runs; none for all others.
pub(crate) fn control(relative: &Path) -> Option<&'static str> {
    let names: Vec<&OsStr> = relative
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    names.iter().enumerate().find_map(|(at, name)| match name.eq_ignore_ascii_case(".git") {
        true => is_of_git(&names[at + 1..]).then_some("git runs what it says"),
        false => named(at.checked_sub(1).map(|above| names[above]), name),
    })
}

/// Why a file of this name in a folder of that name decides what runs, if it does; for all but git's own.
pub(crate) fn named(folder: Option<&OsStr>, name: &OsStr) -> Option<&'static str> {
    // Some file systems, and some of the programs, do not tell the cases apart.
    let is_in = |known: &[&str]| known.iter().any(|known| name.eq_ignore_ascii_case(known));
    if folder.is_some_and(|folder| folder.eq_ignore_ascii_case(".config")) && is_in(CONFIG) {
        return Some("it holds settings of a person");
    }
    let is_workspace =
        Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("code-workspace"));
    if is_workspace {
        return Some("it holds settings of an editor");
    }
    SETTINGS.iter().find(|(_, known)| is_in(known)).map(|(why, _)| *why)
}

/// Whether a path is one of the files that decide what runs for a person who has started nothing of the
/// project, such as `.git/config`, `.vscode/tasks.json` or `AGENTS.md`. The path is relative to the
/// workspace; `.git` itself is one, what else is in it is not.
///
/// ```
/// assert!(archon_tools::is_control_file("sub/.git/hooks/pre-commit"));
/// assert!(!archon_tools::is_control_file(".git/index"));
/// ```
pub fn is_control_file(relative: impl AsRef<Path>) -> bool {
    control(relative.as_ref()).is_some()
}

/// Whether what stands behind `.git` is of its settings, or of those of a submodule or a worktree.
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
    fn control_knows_what_decides_what_runs_and_nothing_else() {
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
