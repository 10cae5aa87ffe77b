//! Values of settings as written in files and variables, with their places.

use std::path::Path;

use toml::{Table, Value, de::DeTable};

use super::{Config, Origin, Settings, Sources, file, name::Name};
use crate::failure::Failure;

/// A value of a setting with its origin and line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) name: Name,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// The line in a file, counted from 1.
    pub(crate) line: Option<usize>,
}

impl Source {
    /// Returns the values of a setting that are in effect: one value, or for a table a value for each of its
    /// parts and layers.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read.
    pub(crate) fn of(config: &Config, sources: &Sources, name: &Name) -> Result<Vec<Self>, Failure> {
        let Some(winner) = config.origin(name.key()) else { return Ok(Vec::new()) };
        let holds = |origin: &Origin| origin == winner || !name.is_replaced();
        let mut found = Vec::new();
        if let Some(path) = &sources.user {
            let origin = Origin::User(path.clone());
            found.extend(in_file(path, name, &origin)?.into_iter().filter(|_| holds(&origin)));
        }
        let ignored = config.asks.as_ref().is_some_and(|asks| asks.keys.contains(&name.key()));
        if let Some(path) = sources.project.as_ref().filter(|_| !ignored) {
            let origin = Origin::Project(path.clone());
            let mut own = in_file(path, name, &origin)?;
            own.retain(|source| holds(&origin) && !is_of_own_api(config, &source.name));
            // An agent, a model or a server of a later file replaces the earlier one as a whole.
            found.retain(|below| own.iter().all(|above| !above.name.replaces(&below.name)));
            found.extend(own);
        }
        match winner {
            Origin::Env(of) => found.extend(sources.env.get(of).map(|text| {
                let value = typed(name, text);
                Self { name: name.clone(), value, origin: winner.clone(), line: None }
            })),
            // The only flag of the command.
            Origin::Flag(_) => found.extend(config.settings.data_dir.as_ref().map(|folder| {
                let value = Value::from(folder.display().to_string());
                Self { name: name.clone(), value, origin: winner.clone(), line: None }
            })),
            Origin::User(_) | Origin::Project(_) => {}
        }
        Ok(found)
    }
}

/// Returns true if the setting belongs to an API that the user's own settings have, which no project replaces.
fn is_of_own_api(config: &Config, name: &Name) -> bool {
    let apis = config.settings.openapi.as_ref().filter(|_| name.key() == "openapi");
    let api = apis.zip(name.parts().get(1)).and_then(|(apis, api)| apis.get(api));
    api.is_some_and(|api| !api.is_of_project)
}

/// Returns the values of a setting in a file, in the order of its lines.
fn in_file(path: &Path, name: &Name, origin: &Origin) -> Result<Vec<Source>, Failure> {
    let Some(file) = file::read(Some(path))? else { return Ok(Vec::new()) };
    let table: Table = toml::from_str(&file.text).unwrap_or_default();
    let mut parts = name.parts().iter();
    let first = parts.next().and_then(|part| table.get(part));
    let Some(value) = parts.try_fold(first, |found, part| Some(found?.get(part))).flatten() else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    leaves(name, value, &mut |name, value| {
        let (line, origin) = (line_of(&file.text, &name), origin.clone());
        found.push(Source { name, value: value.clone(), origin, line });
    });
    found.sort_by_key(|source| source.line);
    Ok(found)
}

/// Calls `each` with the value, or for a table with every value in it that is not a table.
fn leaves(name: &Name, value: &Value, each: &mut impl FnMut(Name, &Value)) {
    match value {
        Value::Table(inner) => {
            inner.iter().for_each(|(part, value)| leaves(&name.of_part(part), value, each))
        }
        value => each(name.clone(), value),
    }
}

fn line_of(text: &str, name: &Name) -> Option<usize> {
    let document = DeTable::parse(text).ok()?.into_inner();
    let (last, tables) = name.parts().split_last()?;
    let table =
        tables.iter().try_fold(&document, |table, part| table.get(part.as_str())?.get_ref().as_table());
    Some(file::line_at(text, table?.get_key_value(last.as_str())?.0.span().start))
}

/// Returns the value of an environment variable as a settings file would have it.
fn typed(name: &Name, text: &str) -> Value {
    let fits = |value: &Value| {
        let layer: Table = [(name.key().to_owned(), value.clone())].into_iter().collect();
        layer.try_into::<Settings>().is_ok()
    };
    candidates(text).into_iter().find(fits).unwrap_or_else(|| Value::from(text))
}

/// Returns the possible values of a text, the most likely first: TOML, a list, a text, a list of one text.
pub(super) fn candidates(text: &str) -> Vec<Value> {
    let one_line = Some(text).filter(|text| !text.contains(['\n', '\r']));
    let written = one_line.and_then(|text| toml::from_str::<Table>(&format!("v = {text}")).ok());
    let written = written.filter(|table| table.len() == 1).and_then(|mut table| table.remove("v"));
    let list = |parts: Vec<&str>| Value::Array(parts.into_iter().map(Value::from).collect());
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let several = text.contains(',').then(|| list(parts));
    written.into_iter().chain(several).chain([Value::from(text), list(vec![text])]).collect()
}
