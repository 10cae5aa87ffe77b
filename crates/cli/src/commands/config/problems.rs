//! Finds every problem of a settings file rather than only the first one.

use std::path::Path;

use serde::Deserialize as _;
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};

use archon::tools::Rule;

use crate::{
    choose,
    config::{self, Name, Names, Owner, Problem, Settings},
    failure::Failure,
    mcp, memory, toolset,
};

/// Returns all problems of a file with this text, in the order of its lines. A project's file is also
/// checked for settings that a project may not have.
pub(crate) fn problems(path: &Path, text: &str, owner: Owner) -> Vec<Problem> {
    let mut found = Found { text, problems: Vec::new() };
    let (document, errors) = DeTable::parse_recoverable(text);
    for e in errors {
        found.add(e.span().map_or(0, |span| span.start), e.message(), "correct the TOML syntax");
    }
    // The rest of a line that is not TOML cannot be checked.
    let unreadable: Vec<_> = found.problems.iter().map(|problem| problem.line).collect();
    let mut table = document.into_inner();
    for (place, what, unknown) in Names::new().remove_unknown(&mut table) {
        found.add(place, &what, &unknown.advice());
    }
    for (place, part) in split(table) {
        let Some((settings, part)) = found.check_values(place, part) else { continue };
        found.check_rules(&part);
        found.check_built(&part);
        if owner == Owner::Project {
            let mut settings = settings;
            config::resolve_paths(path, &mut settings);
            for (key, why) in config::refusals(path, &settings) {
                found.add(place, &format!("`{key}` {why}"), &config::remedy(key));
            }
        }
    }
    let mut problems = found.problems;
    let syntax = problems.len().min(unreadable.len());
    let rest: Vec<_> = problems.drain(syntax..).filter(|p| !unreadable.contains(&p.line)).collect();
    problems.extend(rest);
    problems.sort();
    problems.dedup();
    problems
}

/// Splits a file into its settings, and tables of tables into their entries, so that the problems of one
/// entry hide no others. Each part comes with the offset of its name.
fn split(table: DeTable<'_>) -> Vec<(usize, DeTable<'_>)> {
    let mut parts = Vec::new();
    for (key, value) in table {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(entries) if matches!(&**key.get_ref(), "agents" | "mcp" | "models") => {
                for (name, entry) in entries {
                    let place = name.span().start;
                    let one = DeValue::Table([(name, entry)].into_iter().collect());
                    parts.push((
                        place,
                        [(key.clone(), Spanned::new(span.clone(), one))].into_iter().collect(),
                    ));
                }
            }
            value => {
                let place = key.span().start;
                parts.push((place, [(key, Spanned::new(span, value))].into_iter().collect()));
            }
        }
    }
    parts
}

struct Found<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn add(&mut self, place: usize, problem: &str, advice: &str) {
        let line = config::line_at(self.text, place);
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.problems.push(Problem { line, problem: one_line(problem), advice: one_line(advice) });
    }

    /// Adds a problem for each wrong value, and returns the settings of `part` and `part` itself, both
    /// without the wrong values. Returns `None` if `part` cannot be read without them.
    fn check_values<'i>(&mut self, name: usize, mut part: DeTable<'i>) -> Option<(Settings, DeTable<'i>)> {
        let mut removed = false;
        loop {
            let document = Spanned::new(0..self.text.len(), part.clone());
            let e = match Settings::deserialize(Deserializer::from(document)) {
                Ok(settings) => return Some((settings, part)),
                Err(e) => e,
            };
            let place = e.span().map_or(name, |span| span.start);
            match remove_value(&mut part, place) {
                Some(path) => {
                    removed = true;
                    self.add(place, e.message(), &about(&Name::of_parts(path)));
                }
                // What remains may lack the value that was removed.
                None if removed => return None,
                None => {
                    let key = part.keys().next().map(|key| key.get_ref().to_string()).unwrap_or_default();
                    self.add(name, e.message(), &about(&Name::of_key(&key)));
                    return None;
                }
            }
        }
    }

    /// Adds a problem for each tool, model, embedder and server that this build does not have.
    fn check_built(&mut self, part: &DeTable<'_>) {
        for (key, value) in part.iter() {
            match (&**key.get_ref(), value.get_ref()) {
                ("tools", _) => self.check_names(value, toolset::not_built),
                ("model" | "fallback", _) => self.check_names(value, choose::not_built),
                ("embedder", _) => self.check_names(value, memory::embedder_not_built),
                ("mcp", DeValue::Table(_)) => {
                    if let Some(e) = mcp::not_built() {
                        self.add(key.span().start, e.what(), &e.advice_line());
                    }
                }
                ("agents", DeValue::Table(agents)) => {
                    let agents = agents.values().filter_map(|agent| agent.get_ref().as_table());
                    agents.for_each(|agent| self.check_built(agent));
                }
                _ => {}
            }
        }
    }

    /// Adds a problem for each name that this build does not have. The value is a list of names, or a text
    /// with names separated by commas.
    fn check_names(&mut self, value: &Spanned<DeValue<'_>>, not_built: NotBuilt) {
        if let Some(list) = value.get_ref().as_array() {
            list.iter().for_each(|value| self.check_names(value, not_built));
        }
        let names = value.get_ref().as_str().unwrap_or_default().split(',').map(str::trim);
        for e in names.filter_map(not_built) {
            self.add(value.span().start, e.what(), &e.advice_line());
        }
    }

    fn check_rules(&mut self, part: &DeTable<'_>) {
        let lists = part.get("permissions").and_then(|rules| rules.get_ref().as_table());
        let texts =
            lists.into_iter().flat_map(|lists| lists.values()).filter_map(|list| list.get_ref().as_array());
        for text in texts.flat_map(|list| list.iter()) {
            if let Some(Err(e)) = text.get_ref().as_str().map(str::parse::<Rule>) {
                let advice = "write rules as bash(git status:*), write_file(src/**) or read_file";
                self.add(text.span().start, &e.to_string(), advice);
            }
        }
    }
}

/// Returns the error for a tool, model or embedder of a setting, if this build does not have it.
type NotBuilt = fn(&str) -> Option<Failure>;

fn about(name: &Name) -> String {
    format!("the setting is: {}", name.description())
}

/// Removes from a table the value at an offset of the file, unless the value is a table itself, and returns
/// the names that lead to the value.
fn remove_value(table: &mut DeTable<'_>, place: usize) -> Option<Vec<String>> {
    let is_here = |value: &Spanned<DeValue<'_>>| value.span().contains(&place) && !value.get_ref().is_table();
    let here = table.iter().find(|(_, value)| is_here(value)).map(|(key, _)| key.get_ref().to_string());
    if let Some(key) = here {
        return table.remove(key.as_str()).map(|_| vec![key]);
    }
    // A table with a header may have parts anywhere.
    table.iter_mut().find_map(|(key, value)| match value.get_mut() {
        DeValue::Table(inner) => {
            let rest = remove_value(inner, place)?;
            Some([key.get_ref().to_string()].into_iter().chain(rest).collect())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, owner: Owner, expected: Expect) {
        let found = problems(Path::new("/p/archon.toml"), text, owner);
        let lines: Vec<_> =
            found.iter().map(|p| format!("{}: {}; {}\n", p.line, p.problem, p.advice)).collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn problems_of_a_file_are_all_found() {
        check("# nothing\nmax_turns = 3\n[permissions]\nallow = ['read_file']\n", Owner::User, expect![""]);
        check(
            "max_turn = 3\nmode = 'loud'\nmax_tokens = 'many'\n\n[permissions]\nalow = []\ndeny = ['bash(']\nask = 1\n\n\
             [agents.a]\ndescription = 1\nmax_turns = 'few'\n\n[agents.b]\nsystem = 'x'\n\n\
             [models.\"opnai:m\"]\ninput = 1\noutput = 2\n[models.\"openai:n\"]\ninput = 1\nthinking = 'no'\n",
            Owner::User,
            expect![[r#"
                1: there is no setting `max_turn`; did you mean `max_turns`?
                2: unknown variant `loud`, expected `native` or `text`; the setting is: The form in which the model gets tools: `native` or `text`; by default the form that it supports.
                3: invalid type: string "many", expected u64; the setting is: The maximum number of tokens of a run.
                6: there is no setting `permissions.alow`; did you mean `allow`?
                7: 'bash(' is not a valid permission rule: the closing bracket is missing; write rules as bash(git status:*), write_file(src/**) or read_file
                8: invalid type: integer `1`, expected a sequence; the setting is: Rules of calls that need an approval each time.
                11: invalid type: integer `1`, expected a string; the setting is: The description for agents that may call it.
                12: invalid type: string "few", expected u32; the setting is: The maximum number of model calls for one call of the agent.
                14: missing field `description`; the setting is: Agents that the main agent may call as tools. A layer adds to those below.
                17: [models."opnai:m"]: no such provider; did you mean openai, xai, zai?; the setting is: Properties of models: prices, context windows, abilities; over the built-in catalogue. Not in a project's settings.
                22: invalid type: string "no", expected a boolean; the setting is: True if the model can think before it answers.
            "#]],
        );
    }

    #[test]
    fn problems_of_a_file_that_is_no_toml_are_those_of_all_its_lines() {
        check(
            "max_turns = \nmodel = 'a\nmode = 'loud'\n",
            Owner::User,
            expect![[r#"
            1: string values must be quoted, expected literal string; correct the TOML syntax
            2: invalid literal string, expected `'`; correct the TOML syntax
            3: unknown variant `loud`, expected `native` or `text`; the setting is: The form in which the model gets tools: `native` or `text`; by default the form that it supports.
        "#]],
        );
    }

    #[test]
    fn problems_of_a_file_are_also_the_parts_that_this_build_lacks() {
        let text = "model = 'local:m'\nfallback = ['openai:m', 'm.gguf']\ntools = ['calculator', 'code_executor']\n\
                    embedder = 'local'\n[agents.a]\ndescription = 'A'\ntools = 'search, web_fetch'\nmodel = 'm.gguf'\n";
        let local = ("the engine for local models", "local", cfg!(feature = "local"));
        let python = cfg!(any(feature = "python", feature = "javascript"));
        let parts = [
            (1, local),
            (2, local),
            (3, ("code_executor", "python", python)),
            (4, ("the embedder `local`", "embedder", cfg!(feature = "embedder"))),
            (7, ("web_fetch", "web", cfg!(feature = "web"))),
            (8, local),
        ];
        let lacks = parts.into_iter().filter(|(_, (.., is_built))| !is_built);
        let expected: Vec<_> = lacks
            .map(|(line, (part, feature, _))| Problem {
                line,
                problem: format!("{part} is not in this build"),
                advice: format!("build with `--features {feature}`"),
            })
            .collect();
        assert_eq!(problems(Path::new("/p/archon.toml"), text, Owner::User), expected);
    }

    #[test]
    fn problems_of_a_project_file_include_forbidden_settings() {
        let text =
            "api_key_env = 'K'\nworkspace = '../..'\ndata_dir = 'd'\n[permissions]\nallow = ['read_file']\n";
        check(text, Owner::User, expect![""]);
        check(
            text,
            Owner::Project,
            expect![[r#"
                1: `api_key_env` is not allowed in a project's settings: a project may not choose your keys; set it with a flag or in your own settings, or remove `api_key_env` there
                2: `workspace` is a path outside the project; set it with a flag or in your own settings, or remove `workspace` there
                3: `data_dir` is not allowed in a project's settings: a project may not choose the folder of the logs; set it with a flag or in your own settings, or remove `data_dir` there
                4: `permissions` may not allow calls in a project's settings: a project may not extend its own permissions; set it with a flag or in your own settings, or remove `permissions` there
            "#]],
        );
    }
}
