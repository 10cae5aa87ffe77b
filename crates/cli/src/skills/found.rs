//! Finds the skills, and describes the problems of those that cannot be used.

use std::path::Path;

use archon::{
    ArchonBuilder,
    skills::{SkillPlaces, SkillProblemKind, SkillSet, UntrustedSkill},
    types::RunConfig,
};

use super::ACTIVATE_SKILL;
use crate::{
    app::App,
    config::AgreedTable,
    project_parts::{Agreement, ProjectPart, folder, home, lines_to_show, trust_command},
    text::{visible_line, visible_path},
};

/// The maximum number of shown characters of a description.
#[cfg(feature = "chat")]
pub(super) const SHOWN: usize = 100;

/// The maximum number of files of a skill that are listed before an agreement.
const MOST_LISTED: usize = 100;

/// Finds the skills of the person and those of the project that a person agreed to. In the home folder, all skills are
/// the person's own.
pub(crate) fn discover(app: &App) -> SkillSet {
    let home = home(app);
    let project = folder(app).filter(|folder| Some(folder) != home.as_ref());
    let mut places = SkillPlaces::new();
    if let Some(home) = home {
        places = places.with_user(home);
    }
    if let Some(project) = project {
        places = places.with_project(project);
    }
    let is_agreed =
        |folder: &Path, hash: &str| Agreement::to(app, AgreedTable::Skills, folder, hash) == Agreement::Holds;
    SkillSet::discover(&places, &is_agreed)
}

/// Gives an agent the skills, and writes a warning about each problem.
pub(crate) fn with_skills(app: &App, builder: ArchonBuilder) -> ArchonBuilder {
    let set = discover(app);
    warnings_of(app, &set).iter().for_each(|warning| app.output.warn(warning));
    builder.skills(set)
}

/// Does the same as [`with_skills`] for an existing run. If the run began without the tool that activates skills, only
/// the limits in its log hold, for instance of a skill that the person activated.
pub(crate) fn with_recorded_skills(app: &App, builder: ArchonBuilder, config: &RunConfig) -> ArchonBuilder {
    match config.tool(ACTIVATE_SKILL) {
        Some(_) => with_skills(app, builder),
        None => builder.skills(SkillSet::new()),
    }
}

/// Returns the problems of skills, one line each: the file, the line, the problem and what to do.
pub(crate) fn warnings(app: &App) -> Vec<String> {
    warnings_of(app, &discover(app))
}

/// Does the same as [`warnings`] for skills that were found already.
fn warnings_of(app: &App, set: &SkillSet) -> Vec<String> {
    let is_broken = |kind: SkillProblemKind| kind != SkillProblemKind::Untrusted;
    let broken = set.warnings().iter().filter(|problem| is_broken(problem.kind));
    let broken = broken.map(|problem| visible_line(&problem.to_string()));
    // Those without a hash cannot be agreed to, so their own problem stands.
    let unreadable = set.warnings().iter().filter(|problem| {
        let has_hash = set.untrusted().iter().any(|skill| problem.file.starts_with(&skill.folder));
        problem.kind == SkillProblemKind::Untrusted && !has_hash
    });
    let unreadable = unreadable.map(|problem| visible_line(&problem.to_string()));
    broken.chain(unreadable).chain(set.untrusted().iter().map(|skill| untrusted(app, skill))).collect()
}

fn untrusted(app: &App, skill: &UntrustedSkill) -> String {
    let file = visible_path(&skill.folder.join("SKILL.md"));
    let (name, trust) = (visible_line(&skill.name), trust_command(app));
    match Agreement::to(app, AgreedTable::Skills, &skill.folder, &skill.hash) {
        Agreement::Changed => format!(
            "{file}:1: the skill {name} has changed since you agreed to it, so it is left out. Show it and agree again: {trust}"
        ),
        _ => format!(
            "{file}:1: the skill {name} is left out, because no person has agreed to it. Show it and agree: {trust}"
        ),
    }
}

/// Returns the skills of the project that wait for an agreement.
pub(crate) fn waiting(app: &App) -> Vec<ProjectPart> {
    let part = |skill: &UntrustedSkill| ProjectPart {
        table: AgreedTable::Skills,
        path: skill.folder.clone(),
        hash: skill.hash.clone(),
        about: format!("the skill {} in {}:", visible_line(&skill.name), visible_path(&skill.folder)),
        lines: content(skill),
    };
    discover(app).untrusted().iter().map(part).collect()
}

/// Returns the lines that show a skill: the text of its file, and each file of its folder with its size.
fn content(skill: &UntrustedSkill) -> Vec<String> {
    let mut lines = lines_to_show(&skill.text, &skill.folder.join("SKILL.md"));
    lines.push(format!("the files in {}:", visible_path(&skill.folder)));
    for file in skill.files.iter().take(MOST_LISTED) {
        let name = visible_line(&file.name);
        lines.push(match file.is_link {
            true => format!("  {name} (a link, which is not followed)"),
            false => format!("  {name} ({} bytes)", file.bytes),
        });
    }
    let more = skill.files.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        lines.push(format!("  {more} more files: look into the folder"));
    }
    lines
}

/// Describes the skills for `archon doctor`: their names, and each problem.
pub(crate) fn findings(app: &App) -> Vec<(bool, String)> {
    let set = discover(app);
    let names: Vec<String> = set.iter().map(|skill| visible_line(&skill.name)).collect();
    let working = (!names.is_empty()).then(|| (true, names.join(", ")));
    working.into_iter().chain(warnings_of(app, &set).into_iter().map(|problem| (false, problem))).collect()
}
