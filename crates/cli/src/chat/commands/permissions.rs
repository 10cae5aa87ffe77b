//! `/permissions`: the rules of the settings, and those that answers with `always` have stored.

use super::{Request, Situation};
use crate::{
    app::App,
    failure::Failure,
    permissions::{StoredRules, stored_rules},
    text::visible,
};

pub(super) fn run(arguments: &str, situation: &Situation<'_>) {
    let (app, arguments) = (situation.app.clone(), arguments.to_owned());
    let requests = situation.requests.clone();
    situation.spawn(async move {
        if arguments.is_empty() {
            return list(&app);
        }
        let rule = remove(&app, &arguments)?;
        app.note(format!("{} is removed; it still holds in the session of its answer", visible(&rule)));
        // A conversation that has ended takes no requests.
        let _ = requests.send(Request::Reload);
        Ok(())
    });
}

fn list(app: &App) -> Result<(), Failure> {
    let rules = app.config.settings.permissions.clone().unwrap_or_default();
    for (word, rules) in [("deny", &rules.deny), ("ask", &rules.ask), ("allow", &rules.allow)] {
        rules.iter().for_each(|rule| app.note(format!("{word:<7}{}", visible(rule))));
    }
    let Some((store, stored)) = read_stored(app)? else { return Ok(()) };
    for (number, rule) in (1..).zip(&stored) {
        app.note(format!("always {} ({number})", visible(rule)));
    }
    let place = format!("in {}, for {}", store.file.display(), visible(&store.workspace));
    match stored.is_empty() {
        true => app.hint(format!("answers with `always` are stored {place}")),
        false => app.hint(format!("/permissions remove N removes a rule that is stored {place}")),
    }
    Ok(())
}

/// Removes the stored rule that the arguments name: `remove` and its number or its text.
fn remove(app: &App, arguments: &str) -> Result<String, Failure> {
    let advice = "write /permissions remove N, with a number that /permissions lists";
    let which = arguments.strip_prefix("remove").map(str::trim).filter(|which| !which.is_empty());
    let which =
        which.ok_or_else(|| Failure::usage(format!("/permissions does not know {arguments:?}"), advice))?;
    let none = || Failure::usage(format!("there is no stored rule {which:?}"), advice);
    let (store, stored) = read_stored(app)?.ok_or_else(none)?;
    let numbered = which.parse::<usize>().ok().and_then(|number| stored.get(number.checked_sub(1)?));
    let rule = numbered.or_else(|| stored.iter().find(|rule| *rule == which)).ok_or_else(none)?;
    let unwritable = |e| Failure::unwritable(&store.file, &e, "check that the file can be written");
    store.forget(rule).map_err(unwritable)?;
    Ok(rule.clone())
}

fn read_stored(app: &App) -> Result<Option<(StoredRules, Vec<String>)>, Failure> {
    let Some(store) = stored_rules(app) else { return Ok(None) };
    let unreadable = |e| Failure::unreadable(&store.file, &e, "correct the file, or move it away");
    let rules = store.rules().map_err(unreadable)?;
    Ok(Some((store, rules)))
}
