//! `archon skills`: lists the skills, checks folders of skills against the specification, and agrees to those of a
//! project.

use std::path::{Path, PathBuf};

use archon::skills::validate;
use clap::Subcommand;
use serde_json::json;

use super::trust::agree_to_parts;
use crate::{
    app::App,
    exit::Exit,
    failure::Failure,
    output::Look,
    skills,
    text::{one_line, visible, visible_line, visible_path},
};

/// The maximum number of shown characters of a description.
const SHOWN: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    command: SkillsCommand,
}

#[derive(Debug, Subcommand)]
enum SkillsCommand {
    /// List your skills and those of the project, also those that need your agreement
    List,
    /// Check folders of skills against the specification, more strictly than an agent does
    Validate {
        /// The folder of a skill, or its SKILL.md
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Show the skills of the project that need your agreement, and agree to them
    Trust {
        /// Agree without a question, for scripts
        #[arg(long)]
        yes: bool,
    },
}

impl SkillsArgs {
    #[allow(clippy::unused_async, reason = "the replacement in other builds has the same form")]
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        match self.command {
            SkillsCommand::List => {
                list(app);
                Ok(Exit::Finished)
            }
            SkillsCommand::Validate { paths } => Ok(check(app, &paths)),
            SkillsCommand::Trust { yes } => trust(app, yes),
        }
    }
}

/// Prints one row for each skill, and warnings about those that are broken.
fn list(app: &App) {
    let set = skills::discover(app);
    for skill in set.iter() {
        let item = json!({
            "name": skill.name,
            "description": skill.description,
            "folder": skill.folder.display().to_string(),
            "source": skill.source,
            "agreed": true,
            "by_person_only": skill.disable_model_invocation,
        });
        let only = if skill.disable_model_invocation { ", only by you" } else { "" };
        let from = format!("{}{only}", visible_line(&skill.source));
        app.item(&item, || row(&skill.name, &skill.description, &from));
    }
    for skill in set.untrusted() {
        let item = json!({
            "name": skill.name,
            "description": skill.description,
            "folder": skill.folder.display().to_string(),
            "source": "project",
            "agreed": false,
        });
        app.item(&item, || row(&skill.name, &skill.description, "project, not agreed to"));
    }
    skills::warnings(app).iter().for_each(|warning| app.output.warn(warning));
    app.hint_if(
        set.is_empty() && set.untrusted().is_empty(),
        "there are no skills: put a folder with a SKILL.md into ~/.agents/skills, or into .agents/skills of a project",
    );
}

fn row(name: &str, description: &str, from: &str) -> String {
    format!("{:<24}  {}  ({from})", visible_line(name), one_line(description, SHOWN))
}

/// Prints the verdict about each folder; fails if one is not valid.
fn check(app: &App, paths: &[PathBuf]) -> Exit {
    let mut exit = Exit::Finished;
    for path in paths {
        if !check_one(app, path) {
            exit = Exit::Failed;
        }
    }
    exit
}

fn check_one(app: &App, path: &Path) -> bool {
    let problems = validate(path);
    let found: Vec<_> = problems
        .iter()
        .map(|problem| {
            json!({"file": problem.file.display().to_string(), "line": problem.line, "problem": problem.text})
        })
        .collect();
    let is_valid = problems.is_empty();
    let item = json!({"path": path.display().to_string(), "valid": is_valid, "problems": found});
    app.item(&item, || match is_valid {
        true => format!("{}: a valid skill", visible_path(path)),
        false => {
            let lines: Vec<String> = problems.iter().map(|problem| visible(&problem.to_string())).collect();
            lines.join("\n")
        }
    });
    is_valid
}

fn trust(app: &App, yes: bool) -> Result<Exit, Failure> {
    let parts = skills::waiting(app);
    if parts.is_empty() {
        app.output.note(Look::Plain, "no skill of this project needs an agreement");
        return Ok(Exit::Finished);
    }
    agree_to_parts(app, &parts, yes, "archon skills trust --yes")
}
