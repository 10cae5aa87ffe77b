//! Command lines that messages tell people to type.

use crate::{app::App, config::Origin};

/// Returns the command that resumes a run, with the data folder if it was set by a flag.
pub(crate) fn resume_line(app: &App, run: &str) -> String {
    in_data_dir(app, &format!("archon resume {run}"))
}

/// Returns a command with the flag for the data folder, if this command got that flag.
pub(crate) fn in_data_dir(app: &App, command: &str) -> String {
    match (app.config.origin("data_dir"), &app.config.settings.data_dir) {
        (Some(Origin::Flag(flag)), Some(dir)) => {
            format!("{command} {flag} {}", quoted(&dir.display().to_string()))
        }
        _ => command.to_owned(),
    }
}

pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+=,".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
