//! Lists that `/model`, `/agents`, `/tools`, `/skills`, `/mcp` and `/memory` print, without a change.

use super::Situation;
use crate::{app::App, failure::Failure, lists, output::Look, skills, text::one_line, toolset};

/// The maximum number of memories in a list, and in the result of a search.
const LISTED: usize = 20;
const FOUND: usize = 5;

/// The maximum number of shown characters of a description.
const SHOWN: usize = 100;

pub(super) fn models(situation: &Situation<'_>) {
    let app = situation.app.clone();
    situation.app.note(format!("the next message goes to {}", situation.model));
    situation.spawn(async move {
        lists::models::list(&app).await?;
        app.hint("/model NAME uses another one");
        Ok(())
    });
}

pub(super) fn agents(app: &App) {
    let agents = app.config.settings.agents.clone().unwrap_or_default();
    for (name, agent) in &agents {
        let model = agent.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
        app.note(format!("{name:<16}  {}{model}", one_line(&agent.description, SHOWN)));
    }
    app.note_if(agents.is_empty(), "the settings describe no agents: write one under [agents.NAME]");
}

/// Lists the skills that the person can activate, and what is wrong with the others.
pub(super) fn skills(app: &App) {
    let offered = skills::offered(app);
    for skill in &offered {
        app.note(format!("/{:<16}  {}", skill.name, skill.about));
    }
    skills::warnings(app).iter().for_each(|warning| app.output.note(Look::Warning, warning));
    match offered.is_empty() {
        true => app.note("there are no skills: put a folder with a SKILL.md into ~/.agents/skills"),
        false => app.hint("/NAME activates a skill, and what follows the name is for it"),
    }
}

pub(super) fn tools(situation: &Situation<'_>) {
    let app = situation.app.clone();
    situation.spawn(async move {
        toolset::settle(&app).await;
        let mut picked = toolset::of_conversation(&app).await?;
        crate::mcp::retain_callable(&app, &mut picked.tools);
        lists::tools::list(&app, &picked);
        Ok(())
    });
}

#[cfg(all(unix, feature = "mcp"))]
pub(super) fn mcp_servers(situation: &Situation<'_>) {
    let app = situation.app.clone();
    situation.spawn(async move { crate::mcp::list(&app).await });
}

#[cfg(not(all(unix, feature = "mcp")))]
pub(super) fn mcp_servers(situation: &Situation<'_>) {
    situation.spawn(std::future::ready(crate::mcp::not_built().map_or(Ok(()), Err)));
}

pub(super) fn memories(arguments: &str, situation: &Situation<'_>) {
    let (app, collection) = (situation.app.clone(), situation.collection());
    let (what, question) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    let (what, question) = (what.to_owned(), question.trim().to_owned());
    situation.spawn(async move {
        match what.as_str() {
            "" | "list" => {
                app.hint(format!("the latest memories of {collection}:"));
                lists::memories::list(&app, &collection, LISTED).await
            }
            "search" => lists::memories::search(&app, &collection, FOUND, question).await,
            other => Err(Failure::usage(
                format!("/memory does not know {other:?}"),
                "write /memory list or /memory search TEXT; a draft that begins with # stores a text",
            )),
        }
    });
}
