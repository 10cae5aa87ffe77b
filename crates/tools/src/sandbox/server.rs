//! The sandbox of a server, such as an MCP server: a process that many calls use.
//!
//! It differs from the sandbox of a command in three ways. A server has no workspace: it reaches the granted
//! files only. Its resources are not limited, because it lives as long as our process. Control files in the
//! granted folders are not protected, because new ones are found at the end of a command only.

#[cfg(target_os = "linux")]
use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};
use std::{io, process::Command};

use archon_process::{ProcessSandbox, SandboxedStart};

use super::{Access, Cage, SandboxOptions};
#[cfg(target_os = "linux")]
use super::{kernel, mounts, scratch, search_path::search_path};
use crate::Workspace;

/// A sandbox for a server that runs as a process, such as an MCP server; for `McpServer::with_sandbox` of `archon-mcp`.
///
/// The process and its children can read the system's programs, the files that the options grant, and their own
/// program: its file and, if it is in a Python environment, the folder of that environment. They can write to the
/// folders that the options grant, and to a scratch folder, which is `HOME` and `TMPDIR` and is deleted when the
/// process has ended. They reach no network and no Unix sockets unless these are granted, and they cannot leave the
/// process group.
///
/// The options that limit memory, processes, processor time, sizes of files and output have no effect on
/// servers. Neither has [`Isolation::WithoutKernel`](super::Isolation::WithoutKernel): a server that cannot
/// be sandboxed is refused.
///
/// ```
/// use archon_tools::{Workspace, sandbox::{SandboxOptions, ServerSandbox}};
///
/// let workspace = Workspace::new(".")?.without("settings", "the program's settings");
/// let mut options = SandboxOptions::default().with_toolchains(&workspace);
/// options.read.push("/srv/notes".into());
/// let sandbox = ServerSandbox::new(&workspace, options);
/// # Ok::<(), archon_tools::ToolSetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerSandbox {
    cage: Cage,
}

impl ServerSandbox {
    /// Creates a sandbox with these grants. The server gets no access to the folders of the workspace. The workspace's
    /// excluded folders ([`Workspace::without`]) cannot be granted: a server is refused if a grant overlaps with an
    /// excluded folder.
    pub fn new(workspace: &Workspace, options: SandboxOptions) -> Self {
        let mut cage = Cage::new(workspace, Access::Write, options);
        cage.roots.clear();
        Self { cage }
    }
}

impl ProcessSandbox for ServerSandbox {
    fn prepare(&self, command: &Command, group: u32) -> io::Result<SandboxedStart> {
        #[cfg(target_os = "linux")]
        return self.prepared(command, group).map_err(io::Error::other);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (command, group);
            let why = super::missing().unwrap_or_default();
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}

#[cfg(target_os = "linux")]
impl ServerSandbox {
    fn prepared(&self, command: &Command, group: u32) -> Result<SandboxedStart, String> {
        scratch::remove_stale();
        if let Some(missing) = kernel::missing() {
            return Err(missing);
        }
        let path = self.path(command);
        let cage = self.cage_for(own_files(command, path.as_deref()))?;
        let scratch = scratch::create().map_err(|e| format!("a scratch folder cannot be made: {e}"))?;
        let mounts = read_only_outside(&cage, command, scratch.path());
        let restrictions = kernel::Restrictions::new(&cage, group, scratch.path(), mounts)?;
        let home = scratch.path().as_os_str();
        let mut variables = vec![("HOME".into(), home.to_owned()), ("TMPDIR".into(), home.to_owned())];
        variables.extend(path.map(|path| ("PATH".into(), path)));
        variables.extend(cage.options.env.iter().map(|(name, value)| (name.into(), value.into())));
        Ok(SandboxedStart {
            variables,
            restrict: Box::new(move |command| {
                restrictions.apply_to(command).map_err(io::Error::other)?;
                // Descriptors that we inherited would stay open in the server.
                close_fds::set_fds_cloexec(3, &[]);
                Ok(())
            }),
            resources: Box::new(scratch),
        })
    }

    /// Returns the cage for one start of the server; it also grants the files `program`, so that the server can read
    /// its own program.
    fn cage_for(&self, program: Vec<PathBuf>) -> Result<Cage, String> {
        let mut cage = self.cage.clone();
        cage.options.read.extend(program);
        for granted in cage.granted() {
            if !granted.exists() {
                return Err(format!("the granted '{}' does not exist", granted.display()));
            }
            let overlaps = |folder: &Path| folder.starts_with(granted) || granted.starts_with(folder);
            if let Some((folder, what)) = cage.excluded.iter().find(|(folder, _)| overlaps(folder)) {
                return Err(format!(
                    "the granted '{}' overlaps with '{}', which no server may reach ({what}); grant other \
                     folders",
                    granted.display(),
                    folder.display()
                ));
            }
        }
        Ok(cage)
    }

    /// Returns the search path of the command: the command's own `PATH`, else the `PATH` of the options, else that of
    /// this process, in which folders that the server can write come last.
    fn path(&self, command: &Command) -> Option<OsString> {
        let options = &self.cage.options;
        let own = command.get_envs().find_map(|(name, value)| (name == "PATH").then_some(value?));
        let given = own.map(OsStr::to_owned).or_else(|| options.env.get("PATH").map(OsString::from));
        given.or_else(|| search_path(&env::var_os("PATH")?, &options.write))
    }
}

/// Returns the mounts that make everything outside of the granted folders read-only, if they can be made.
#[cfg(target_os = "linux")]
fn read_only_outside(cage: &Cage, command: &Command, scratch: &Path) -> Option<mounts::Mounts> {
    mounts::maker().is_ok().then(|| mounts::Mounts {
        write: cage.options.write.clone(),
        scratch: Some((scratch.to_owned(), cage.options.max_scratch)),
        directory: command.get_current_dir().map(Path::to_owned).or_else(|| env::current_dir().ok()),
        ..Default::default()
    })
}

/// Returns the files and folders without which the command's program cannot start: its file, and the folder
/// of the Python environment that it is in.
#[cfg(target_os = "linux")]
fn own_files(command: &Command, path: Option<&OsStr>) -> Vec<PathBuf> {
    let program = Path::new(command.get_program());
    let folder = command.get_current_dir().unwrap_or(Path::new("."));
    let found = if program.components().count() > 1 {
        Some(folder.join(program))
    } else {
        let folders = path.map(env::split_paths).into_iter().flatten();
        folders.map(|folder| folder.join(program)).find(|file| file.is_file())
    };
    let Some(found) = found else { return Vec::new() };
    let environment = found.parent().and_then(Path::parent).filter(|of| of.join("pyvenv.cfg").is_file());
    let all = std::iter::once(found.as_path()).chain(environment);
    all.filter_map(|file| file.canonicalize().ok()).collect()
}
