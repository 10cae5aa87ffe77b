//! The replacement without the feature `hooks`: no file is read, and one that is there is reported.

use std::path::Path;

use archon::ArchonBuilder;

use crate::{app::App, failure::Failure, project_parts::ProjectPart, text::visible_path};

/// Returns the builder as it is, and writes a warning about hooks of the person, which would not protect anything.
pub(crate) fn with_hooks(app: &App, builder: ArchonBuilder) -> Result<ArchonBuilder, Failure> {
    findings(app).into_iter().for_each(|(_, found)| app.output.warn(found));
    Ok(builder)
}

/// Returns no parts: without the feature `hooks`, no project's hooks are used.
pub(crate) fn waiting(_: &App) -> Vec<ProjectPart> {
    Vec::new()
}

/// Describes a file of the person that is not read.
pub(crate) fn findings(app: &App) -> Vec<(bool, String)> {
    let settings = app.sources.user.as_deref().and_then(Path::parent);
    let file = settings.map(|settings| settings.join("hooks.json")).filter(|file| file.exists());
    let found =
        |file| format!("{}: hooks are not in this build; build with `--features hooks`", visible_path(file));
    file.iter().map(|file| (false, found(file))).collect()
}
