//! `/theme`: lists the themes, and changes the theme, which is kept in the person's settings.

use archon::types::nearest;
use archon_terminal::ThemeName;

use super::{Situation, Step};
use crate::{app::App, config::Owner, failure::Failure, text::visible_path};

pub(super) fn run(arguments: &str, situation: &Situation<'_>) -> Step {
    if arguments.is_empty() {
        list(situation);
        return Step::Done;
    }
    let Some(theme) = ThemeName::named(arguments) else { return Step::Refuse(unknown(arguments)) };
    let app = situation.app.clone();
    situation.spawn(async move {
        warn_without_colors(&app);
        keep(&app, theme)
    });
    Step::Theme(theme)
}

fn list(situation: &Situation<'_>) {
    let app = situation.app;
    app.note(format!("the theme is {}", situation.theme.as_str()));
    for theme in ThemeName::ALL {
        app.note(format!("{:<5}  {}", theme.as_str(), theme.about()));
    }
    warn_without_colors(app);
    app.hint("/theme NAME uses another one from now on, also in later conversations");
}

fn warn_without_colors(app: &App) {
    app.note_if(app.env("NO_COLOR").is_some(), "NO_COLOR is set, so no theme has colors");
}

fn unknown(name: &str) -> String {
    let names = || ThemeName::ALL.into_iter().map(ThemeName::as_str);
    let advice = match nearest(name, names()) {
        Some(meant) => format!("did you mean /theme {meant}?"),
        None => format!("the themes are {}", names().collect::<Vec<_>>().join(", ")),
    };
    format!("there is no theme {name:?}: {advice}")
}

/// Stores the theme in the person's own settings.
#[cfg(feature = "setup")]
fn keep(app: &App, theme: ThemeName) -> Result<(), Failure> {
    use crate::config::{Edit, Name};
    let path = app.sources.file(Owner::User).ok_or_else(no_file)?;
    let mut edit = Edit::of(path, Owner::User)?;
    edit.set(&Name::parse("chat.theme")?, theme.as_str())?;
    edit.write()?;
    app.hint(format!("the theme {} is stored in {}", theme.as_str(), visible_path(path)));
    Ok(())
}

/// Says how to keep the theme, because this build does not write settings.
#[cfg(not(feature = "setup"))]
fn keep(app: &App, theme: ThemeName) -> Result<(), Failure> {
    let path = visible_path(app.sources.file(Owner::User).ok_or_else(no_file)?);
    app.hint(format!("to keep it, write theme = \"{}\" under [chat] of {path}", theme.as_str()));
    Ok(())
}

fn no_file() -> Failure {
    Failure::usage("the theme is not kept: there is no home directory with settings", "set HOME")
}
