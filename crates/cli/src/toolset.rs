//! The built-in tools that an agent gets: by name, and only those that were asked for.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{
    tools::{Workspace, builtin},
    types::{Tool, nearest},
};

use crate::{app::App, config::ToolSelection, failure::Failure};

/// Tools, ready to be called.
pub(crate) type Tools = Vec<Arc<dyn Tool>>;

/// The tools that the settings choose; those that change nothing where they choose none.
pub(crate) fn chosen(app: &App) -> Result<Tools, Failure> {
    match &app.config.settings.tools {
        None => Ok(builtin::default_tools(&workspace(app)?)),
        Some(ToolSelection::None) => Ok(Vec::new()),
        Some(ToolSelection::All) => Ok(all(&workspace(app)?)),
        Some(ToolSelection::Names(names)) => recorded(names.iter().map(String::as_str), app),
    }
}

/// The tools of these names, for instance of a run that is taken up again.
pub(crate) fn recorded<'a>(names: impl Iterator<Item = &'a str>, app: &App) -> Result<Tools, Failure> {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return Ok(Vec::new());
    }
    let all = all(&workspace(app)?);
    names.map(|name| by_name(name, &all)).collect()
}

/// Everything there is: what only reads, what changes files, the shell where the kernel can hold it, and programs where
/// a language was built in.
fn all(workspace: &Workspace) -> Tools {
    let mut tools = builtin::builtin_tools(workspace);
    for tool in builtin::file_tools(workspace) {
        if !tools.iter().any(|other| other.spec().name == tool.spec().name) {
            tools.push(tool);
        }
    }
    #[cfg(unix)]
    tools.push(Arc::new(builtin::Bash::new(workspace.clone(), bash_options(workspace))));
    #[cfg(any(feature = "python", feature = "javascript"))]
    tools.push(Arc::new(archon::code::CodeExecutor::new(archon::code::CodeOptions::default())));
    tools.push(Arc::new(builtin::HumanApproval::new()));
    tools.push(Arc::new(builtin::HumanGuidance::new()));
    tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
    tools
}

/// A person's own compilers can be run, so that a project can be built.
#[cfg(unix)]
fn bash_options(workspace: &Workspace) -> builtin::BashOptions {
    let mut options = builtin::BashOptions::default();
    options.sandbox = options.sandbox.with_toolchains(workspace);
    options
}

/// The names of all there are.
pub(crate) fn names(app: &App) -> Result<Vec<String>, Failure> {
    Ok(all(&workspace(app)?).iter().map(|tool| tool.spec().name.clone()).collect())
}

fn by_name(name: &str, all: &[Arc<dyn Tool>]) -> Result<Arc<dyn Tool>, Failure> {
    let names = || all.iter().map(|tool| tool.spec().name.as_str());
    all.iter().find(|tool| tool.spec().name == name).cloned().ok_or_else(|| {
        let meant = nearest(name, names()).map(|n| format!("did you mean {n}? "));
        let known = names().collect::<Vec<_>>().join(", ");
        let advice = format!("{}the tools are: {known}", meant.unwrap_or_default());
        Failure::usage(format!("there is no tool {name:?}"), advice)
    })
}

/// The folder that tools may see, without links.
pub(crate) fn folder(app: &App) -> Option<PathBuf> {
    app.config.settings.workspace.as_deref().unwrap_or(Path::new(".")).canonicalize().ok()
}

fn workspace(app: &App) -> Result<Workspace, Failure> {
    let path = app.config.settings.workspace.as_deref().unwrap_or(Path::new("."));
    let workspace = Workspace::new(path).map_err(|e| {
        Failure::usage(e.to_string(), "name a folder that you may read: --workspace DIR, or use --tools none")
    })?;
    // Rules, agreements and the key that answers are sealed with: who writes there decides what is asked.
    let workspace = workspace.without(&app.data_dir, "Archon's data");
    Ok(match app.sources.user.as_deref().and_then(Path::parent) {
        Some(settings) => workspace.without(settings, "Archon's settings"),
        None => workspace,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Settings, exit::Exit};

    fn names_of(selection: ToolSelection) -> Result<Vec<String>, Failure> {
        let settings = Settings { tools: Some(selection), ..Settings::default() };
        Ok(chosen(&App::of(settings))?.iter().map(|tool| tool.spec().name.clone()).collect())
    }

    #[test]
    fn tools_go_by_their_own_names() {
        let known = [
            "bash",
            "calculator",
            "edit_file",
            "glob",
            "human_approval",
            "human_guidance",
            "list_files",
            "read_file",
            "search",
            "write_file",
        ];
        let mut all = names_of(ToolSelection::All).unwrap();
        // There with the languages only, and never among those of who chose none.
        let programs = all.iter().position(|name| name == "code_executor").map(|place| all.remove(place));
        assert_eq!(programs.is_some(), cfg!(any(feature = "python", feature = "javascript")));
        assert_eq!(all, known);
        assert_eq!(names_of(ToolSelection::None).unwrap(), Vec::<String>::new());
        assert_eq!(names_of(ToolSelection::Names(vec!["search".into()])).unwrap(), ["search"]);
    }

    #[test]
    fn an_unknown_tool_is_a_usage_error_that_names_the_nearest() {
        let e = names_of(ToolSelection::Names(vec!["calclator".into()])).unwrap_err();
        assert_eq!(e.exit(), Exit::Usage);
        assert_eq!(e.what(), "there is no tool \"calclator\"");
        let programs =
            if cfg!(any(feature = "python", feature = "javascript")) { "code_executor, " } else { "" };
        assert_eq!(
            e.advice(),
            [format!(
                "did you mean calculator? the tools are: bash, calculator, {programs}edit_file, glob, human_approval, human_guidance, list_files, read_file, search, write_file"
            )]
        );
    }

    #[test]
    fn a_workspace_that_is_not_there_is_a_usage_error_unless_no_tool_needs_it() {
        let with = |tools| {
            let workspace = Some("/nowhere/at/all".into());
            let settings = Settings { tools, workspace, ..Settings::default() };
            chosen(&App::of(settings)).map(|tools| tools.len())
        };
        assert_eq!(with(Some(ToolSelection::None)), Ok(0));
        let e = with(None).unwrap_err();
        assert!(e.what().contains("/nowhere/at/all") && e.exit() == Exit::Usage, "{e:?}");
    }
}
