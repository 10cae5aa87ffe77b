//! Reads the files with hooks, and gives the hooks to an agent.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{
    ArchonBuilder, SystemClock,
    hooks::{EventHooks, HookDescription, HookSet},
};

use crate::{
    app::App,
    config::AgreedTable,
    failure::Failure,
    own_file,
    project_parts::{Agreement, ProjectPart, folder, home, read_inside, trust_command},
    text::{visible_line, visible_path},
};

/// The files of a project, relative to its folder.
const OF_PROJECT: &str = ".archon/hooks.json";
/// The settings of another program, which may have hooks in the same form.
const OF_OTHERS: &str = ".claude/settings.json";

/// The hooks that are used, and the problems of the others.
#[derive(Default)]
struct Loaded {
    set: HookSet,
    /// The files with the hooks that are used.
    files: Vec<PathBuf>,
    /// One line each: the file, the line, the problem and what to do.
    problems: Vec<String>,
}

/// Connects the hooks with the events of an agent's runs, and writes a warning about each problem.
///
/// # Errors
/// [`Failure`] if the settings want a sandbox for hooks, and the folder of the project cannot be used for it.
pub(crate) fn with_hooks(app: &App, builder: ArchonBuilder) -> Result<ArchonBuilder, Failure> {
    let loaded = load(app);
    loaded.problems.iter().for_each(|problem| app.output.warn(problem));
    if loaded.set.is_empty() {
        return Ok(builder);
    }
    let folder = folder(app).unwrap_or_else(|| PathBuf::from("."));
    let hooks = EventHooks::new(loaded.set, folder, Arc::new(SystemClock));
    Ok(builder.event_hooks(with_sandbox(app, hooks)?))
}

/// Sets the sandbox for the commands of the project, if the settings want it.
#[cfg(unix)]
fn with_sandbox(app: &App, hooks: EventHooks) -> Result<EventHooks, Failure> {
    use archon::tools::sandbox::{SandboxOptions, ServerSandbox};

    use crate::tool_workspace::tool_workspace;

    if app.config.settings.sandbox_hooks != Some(true) {
        return Ok(hooks);
    }
    let workspace = tool_workspace(app)?;
    let mut options = SandboxOptions::default();
    options.read.extend(folder(app));
    Ok(hooks.with_sandbox(Arc::new(ServerSandbox::new(&workspace, options.with_toolchains(&workspace)))))
}

#[cfg(not(unix))]
fn with_sandbox(_: &App, hooks: EventHooks) -> Result<EventHooks, Failure> {
    Ok(hooks)
}

/// Returns the files of the project whose hooks wait for an agreement.
pub(crate) fn waiting(app: &App) -> Vec<ProjectPart> {
    let Some(folder) = folder(app) else { return Vec::new() };
    let part = |path: PathBuf| {
        let text = read_inside(&folder, &path).ok()??;
        let (set, _) = HookSet::of_person(&path, &text);
        let hash = HookSet::digest(&text, &folder).ok()?;
        let waits =
            !set.is_empty() && Agreement::to(app, AgreedTable::Hooks, &path, &hash) != Agreement::Holds;
        waits.then(|| ProjectPart {
            table: AgreedTable::Hooks,
            about: format!("{} runs commands or asks addresses on events of runs:", visible_path(&path)),
            lines: set.descriptions(&folder).iter().flat_map(lines).collect(),
            path,
            hash,
        })
    };
    files_of_project(app, &folder).into_iter().filter_map(part).collect()
}

/// Returns the lines that describe a hook to a person. For a command, they have the files that the agreement covers.
fn lines(hook: &HookDescription) -> Vec<String> {
    let covered = hook.files.iter().map(|file| visible_line(file)).collect::<Vec<_>>().join(", ");
    let covers = match (hook.is_command, covered.is_empty()) {
        (false, _) => None,
        (true, false) => {
            Some(format!("  the agreement covers {covered}, and no other program that this command runs"))
        }
        (true, true) => Some("  this command runs programs that the agreement does not cover".to_owned()),
    };
    std::iter::once(visible_line(&hook.text)).chain(covers).collect()
}

/// Describes the hooks for `archon doctor`: the files whose hooks are used, and each problem.
pub(crate) fn findings(app: &App) -> Vec<(bool, String)> {
    let loaded = load(app);
    let count = loaded.set.len();
    let files: Vec<String> = loaded.files.iter().map(|file| visible_path(file)).collect();
    let working = (count > 0).then(|| (true, format!("{count} of {}", files.join(", "))));
    working.into_iter().chain(loaded.problems.into_iter().map(|problem| (false, problem))).collect()
}

fn load(app: &App) -> Loaded {
    let mut loaded = Loaded::default();
    if let Some(settings) = app.sources.user.as_deref().and_then(Path::parent) {
        loaded.add_own(&settings.join("hooks.json"));
    }
    if let Some(folder) = folder(app) {
        for path in files_of_project(app, &folder) {
            loaded.add_of_project(app, &folder, &path);
        }
    }
    loaded
}

/// Returns the files of a project that may have hooks. In the home folder, the settings of another program are not
/// those of a project.
fn files_of_project(app: &App, folder: &Path) -> Vec<PathBuf> {
    let is_home = home(app).as_deref() == Some(folder);
    let names = std::iter::once(OF_PROJECT).chain((!is_home).then_some(OF_OTHERS));
    names.map(|name| folder.join(name)).collect()
}

impl Loaded {
    /// Adds the hooks of the person's own file.
    fn add_own(&mut self, path: &Path) {
        match own_file::read(path) {
            Ok(Some(text)) => {
                let (set, problems) = HookSet::of_person(path, &text);
                self.add(path, set, problems.iter().map(ToString::to_string));
            }
            Ok(None) => {}
            Err(e) => self.add_unreadable(path, &format!("the file cannot be read: {e}")),
        }
    }

    /// Adds the hooks of a file of the project, if a person agreed to it.
    fn add_of_project(&mut self, app: &App, folder: &Path, path: &Path) {
        let text = match read_inside(folder, path) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(why) => return self.add_unreadable(path, &why),
        };
        let agreement = Cell::new(Agreement::Holds);
        let (set, mut problems) = HookSet::of_project(path, &text, folder, |hash| {
            agreement.set(Agreement::to(app, AgreedTable::Hooks, path, hash));
            agreement.get() == Agreement::Holds
        });
        let (file, trust) = (visible_path(path), trust_command(app));
        let waits = match agreement.get() {
            Agreement::Holds => None,
            Agreement::Changed => Some(format!(
                "{file}:1: the file, or a script that it names, has changed since you agreed to it, so its hooks do not run. \
                 Show it and agree again: {trust}"
            )),
            Agreement::Missing => Some(format!(
                "{file}:1: its hooks do not run, because no person has agreed to the file. Show it and agree: {trust}"
            )),
        };
        if waits.is_some() {
            // The crate says the same last, without the command.
            problems.pop();
        }
        self.add(path, set, problems.iter().map(ToString::to_string).chain(waits));
    }

    fn add(&mut self, path: &Path, set: HookSet, problems: impl Iterator<Item = String>) {
        if !set.is_empty() {
            self.files.push(path.to_owned());
        }
        self.set = std::mem::take(&mut self.set).and(set);
        self.problems.extend(problems.map(|problem| visible_line(&problem)));
    }

    fn add_unreadable(&mut self, path: &Path, why: &str) {
        self.problems.push(format!("{}:1: {why}", visible_path(path)));
    }
}
