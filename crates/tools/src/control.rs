//! The list of control files: files of a project that start programs for a person who has run nothing of the
//! project. These are settings of git, editors, agents and shells, and what runs on a push. By changing one,
//! a sandboxed command could make a program run outside of the sandbox.
//!
//! A file tool asks a person about each change of such a file, and no rule can answer for the person. A
//! command cannot change one (`sandbox/control.rs`). The list has files that programs read on their own;
//! files that a person runs (a makefile, a build script, a test) are not on it. Neither are `.gitmodules` and
//! `.gitattributes`: git runs nothing that they name unless its settings say so.

use std::{
    ffi::OsStr,
    path::{Component, Path},
};

/// Names of files and folders of settings, with the reason; they count in any folder, and a folder with all
/// its content. Lower case.
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

/// Folders of personal settings below `.config`.
const CONFIG: &[&str] = &["autostart", "environment.d", "fish", "git", "nvim", "systemd"];

/// Settings within a git folder: `config` and the files that lead to one can name programs that git runs, and
/// attributes choose the files for which it runs them.
pub(crate) const GIT: &[&str] = &["config", "config.worktree", "commondir", "hooks", "info/attributes"];

/// Returns why a path, relative to its workspace, is a control file; `None` for all others.
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

/// Returns why a file with this name in a folder with that name is a control file, except for git's own
/// files.
pub(crate) fn named(folder: Option<&OsStr>, name: &OsStr) -> Option<&'static str> {
    // Some file systems and programs ignore case.
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

/// Returns whether a path, relative to the workspace, is a control file: one that starts programs for a
/// person who has run nothing of the project, such as `.git/config`, `.vscode/tasks.json` or `AGENTS.md`.
/// `.git` itself is one, but not everything in it.
///
/// ```
/// assert!(archon_tools::is_control_file("sub/.git/hooks/pre-commit"));
/// assert!(!archon_tools::is_control_file(".git/index"));
/// ```
pub fn is_control_file(relative: impl AsRef<Path>) -> bool {
    control(relative.as_ref()).is_some()
}

/// Returns whether a path within `.git` is a setting, of the repository or of a submodule or worktree.
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
