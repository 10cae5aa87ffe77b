//! The skills that are found, and what is wrong with the others.

use std::path::Path;

use archon::skills::{SkillPlaces, SkillProblemKind, SkillSet, UntrustedSkill};

use crate::{
    app::App,
    config::AgreedTable,
    project_parts::{Agreement, ProjectPart, folder, home, trust_command},
    text::{visible_line, visible_path},
};

/// The maximum number of shown characters of a description.
#[cfg(feature = "chat")]
pub(super) const SHOWN: usize = 100;

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

/// Returns the problems of skills, one line each: the file, the line, the problem and what to do.
pub(crate) fn warnings(app: &App) -> Vec<String> {
    warnings_of(app, &discover(app))
}

/// Does the same as [`warnings`] for skills that were found already.
pub(super) fn warnings_of(app: &App, set: &SkillSet) -> Vec<String> {
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
        lines: vec![visible_line(&skill.description)],
    };
    discover(app).untrusted().iter().map(part).collect()
}

/// Describes the skills for `archon doctor`: their names, and each problem.
pub(crate) fn findings(app: &App) -> Vec<(bool, String)> {
    let set = discover(app);
    let names: Vec<String> = set.iter().map(|skill| visible_line(&skill.name)).collect();
    let working = (!names.is_empty()).then(|| (true, names.join(", ")));
    working.into_iter().chain(warnings_of(app, &set).into_iter().map(|problem| (false, problem))).collect()
}
