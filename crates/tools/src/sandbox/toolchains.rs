//! Grants commands access to compilers and runtimes in the home folder, and to nothing else there.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::SandboxOptions;
use crate::Workspace;

/// A toolchain. It is found if the search path contains its folder of programs. Lists are separated by spaces.
struct Toolchain {
    /// Program folders of the toolchain: the last parts of their paths, as in the search path (`.cargo/bin`).
    programs: &'static str,
    /// Files and folders to read, relative to the home folder: the folder that contains `.cargo/bin`, for
    /// instance.
    read: &'static str,
    /// Environment variables with the toolchain's location: the name, and the folder relative to the home
    /// folder. Variables that are already set keep their value.
    variables: &'static [(&'static str, &'static str)],
}

const TOOLCHAINS: &[Toolchain] = &[
    Toolchain {
        programs: ".cargo/bin",
        // Not `credentials.toml`. Cargo does not start without its settings.
        read: ".cargo/bin .cargo/registry .cargo/git .cargo/config.toml .cargo/config .rustup/toolchains \
               .rustup/settings.toml",
        variables: &[("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")],
    },
    Toolchain {
        programs: ".volta/bin",
        read: ".volta/bin .volta/tools",
        variables: &[("VOLTA_HOME", ".volta")],
    },
    Toolchain { programs: ".bun/bin", read: ".bun/bin", variables: &[] },
    Toolchain { programs: ".deno/bin", read: ".deno/bin", variables: &[] },
    Toolchain {
        programs: ".pyenv/shims .pyenv/bin",
        read: ".pyenv/bin .pyenv/libexec .pyenv/shims .pyenv/versions",
        variables: &[("PYENV_ROOT", ".pyenv")],
    },
    Toolchain {
        programs: ".rbenv/shims .rbenv/bin",
        read: ".rbenv/bin .rbenv/libexec .rbenv/shims .rbenv/versions",
        variables: &[("RBENV_ROOT", ".rbenv")],
    },
    Toolchain {
        programs: ".local/bin",
        read: ".local/bin .local/share/uv/python .local/share/uv/tools",
        variables: &[],
    },
    Toolchain { programs: "go/bin", read: "go/bin go/pkg/mod", variables: &[("GOMODCACHE", "go/pkg/mod")] },
];

/// Folder of nvm with a folder for each version.
const NVM: &str = ".nvm/versions/node";

impl SandboxOptions {
    /// Lets commands read and run the toolchains in the home folder that are in this process's `PATH`, and sets the
    /// environment variables with their locations. Known are Rust (rustup and cargo), Node (nvm, volta), Bun, Deno,
    /// Python (pyenv, uv), Ruby (rbenv) and Go. Of cargo's files, commands can read the settings and downloaded
    /// packages, but not the credentials. Commands cannot change the toolchains. To let commands download packages,
    /// also grant the network, and write access to the folders of the packages.
    ///
    /// ```
    /// use archon_tools::{Workspace, sandbox::SandboxOptions};
    ///
    /// let workspace = Workspace::new(".")?;
    /// let options = SandboxOptions::default().with_toolchains(&workspace);
    /// assert!(options.write.is_empty());
    /// # Ok::<(), archon_tools::ToolSetupError>(())
    /// ```
    ///
    /// Links are resolved when this is called, so that a grant cannot be redirected later. Folders that
    /// overlap with the workspace or with an excluded folder ([`Workspace::without`]) are not granted.
    #[must_use]
    pub fn with_toolchains(mut self, workspace: &Workspace) -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let excluded = workspace.all_excluded();
        let may_grant = |place: &Path| {
            !workspace.roots().iter().any(|root| place.starts_with(root) || root.starts_with(place))
                && !excluded.iter().any(|(folder, _)| folder.starts_with(place) || place.starts_with(folder))
        };
        let found = find(&path, |name| env::var_os(name), may_grant);
        self.read.extend(found.read);
        for (name, value) in found.variables {
            self.env.entry(name).or_insert(value);
        }
        self
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    read: Vec<PathBuf>,
    variables: Vec<(String, String)>,
}

fn find(
    path: &OsStr,
    variable: impl Fn(&str) -> Option<OsString>,
    may_grant: impl Fn(&Path) -> bool,
) -> Found {
    let mut found = Found::default();
    let mut add = |place: PathBuf| {
        let real = place.canonicalize().ok().filter(|real| may_grant(real));
        found.read.extend(real.filter(|real| !found.read.contains(real)));
    };
    let mut variables = Vec::new();
    let is_real =
        |folder: &PathBuf| folder.is_absolute() && folder.canonicalize().is_ok_and(|real| may_grant(&real));
    for folder in env::split_paths(path).filter(is_real) {
        if let Some(version) = version_of_node(&folder) {
            add(version);
        }
        for toolchain in TOOLCHAINS {
            let Some(home) = toolchain.programs.split(' ').find_map(|end| before(&folder, end)) else {
                continue;
            };
            let at = |place: &str| {
                let moved = toolchain.variables.iter().find_map(|(name, folder)| {
                    let below = Path::new(place).strip_prefix(folder).ok()?;
                    let moved = PathBuf::from(variable(name)?);
                    moved.is_absolute().then(|| moved.join(below).components().collect())
                });
                moved.unwrap_or_else(|| home.join(place))
            };
            toolchain.read.split(' ').for_each(|place| add(at(place)));
            variables.extend(toolchain.variables.iter().map(|(name, folder)| (*name, at(folder))));
        }
    }
    for (name, folder) in variables {
        let is_new = !found.variables.iter().any(|(other, _)| other == name);
        if let (true, Some(folder)) = (is_new, folder.to_str()) {
            found.variables.push((name.to_owned(), folder.to_owned()));
        }
    }
    found
}

/// Returns the folder that contains `end`, if the path ends with `end`.
fn before(folder: &Path, end: &str) -> Option<PathBuf> {
    folder
        .ends_with(end)
        .then(|| folder.ancestors().nth(Path::new(end).components().count()))?
        .map(Path::to_owned)
}

/// Returns `HOME/.nvm/versions/node/v22.1.0` for the folder `bin` in it.
fn version_of_node(folder: &Path) -> Option<PathBuf> {
    let version = folder.parent().filter(|_| folder.ends_with("bin"))?;
    version.parent().filter(|versions| versions.ends_with(NVM)).map(|_| version.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;

    use super::*;

    // spec: TE-39
    #[test]
    fn find_of_a_search_path_reads_its_toolchains_and_no_credentials() {
        let outer = tempfile::tempdir().unwrap();
        let home = &outer.path().canonicalize().unwrap();
        for folder in
            [".cargo/bin", ".cargo/registry", ".rustup/toolchains", ".nvm/versions/node/v22/bin", ".ssh"]
        {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        fs::write(home.join(".cargo/credentials.toml"), "").unwrap();
        let path = env::join_paths(
            ["usr/bin", ".cargo/bin", ".nvm/versions/node/v22/bin", ".volta/x", ".cargo/bin"]
                .map(|f| home.join(f)),
        );
        let found = find(&path.unwrap(), |_| None, |_| true);
        let read: Vec<_> =
            found.read.iter().map(|p| p.strip_prefix(home).unwrap().to_str().unwrap()).collect();
        assert_eq!(read, [".cargo/bin", ".cargo/registry", ".rustup/toolchains", ".nvm/versions/node/v22"]);
        let names: Vec<_> = found.variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["CARGO_HOME", "RUSTUP_HOME"]);
    }

    // spec: TE-39
    #[test]
    fn find_of_a_toolchain_that_a_variable_moves_looks_there() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path().join(".cargo/bin")).unwrap();
        fs::create_dir(other.path().join("toolchains")).unwrap();
        let set = |name: &str| (name == "RUSTUP_HOME").then(|| other.path().as_os_str().to_owned());
        let path = home.path().join(".cargo/bin");
        let found = find(path.as_os_str(), set, |_| true);
        let expected = [path, other.path().join("toolchains")].map(|path| path.canonicalize().unwrap());
        assert_eq!(found.read, expected);
        assert!(found.variables.contains(&("RUSTUP_HOME".into(), other.path().to_str().unwrap().into())));
    }

    // spec: TE-39
    #[test]
    fn with_toolchains_of_a_workspace_s_own_folder_or_a_link_out_of_it_grants_nothing() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        for folder in ["ws/go/bin", "ws/go/pkg", "data/runs", "home/go/bin", "home/go/pkg"] {
            fs::create_dir_all(outer.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(outer.join("data"), outer.join("ws/go/pkg/mod")).unwrap();
        std::os::unix::fs::symlink(outer.join("data"), outer.join("home/go/pkg/mod")).unwrap();
        let may_grant =
            |place: &Path| !place.starts_with(outer.join("ws")) && !place.starts_with(outer.join("data"));
        let path = env::join_paths([outer.join("ws/go/bin"), outer.join("home/go/bin")]).unwrap();
        assert_eq!(find(&path, |_| None, may_grant).read, [outer.join("home/go/bin")]);
    }

    // spec: TE-39
    #[test]
    fn find_of_the_system_s_own_search_path_finds_nothing() {
        assert_eq!(find("/usr/bin:/bin:relative/.cargo/bin".as_ref(), |_| None, |_| true), Found::default());
    }
}
