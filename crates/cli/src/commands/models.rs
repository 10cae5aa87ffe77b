//! `archon models`: what can be asked right now, without a look at any price list.

use clap::Subcommand;
use serde::Serialize;

use archon::providers::{LocalServer, ServerAnswer, ask_local_servers};

use super::ModelFlags;
use crate::{app::App, choose, config::Settings, exit::Exit, failure::Failure, local, output::Look};

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Models of running servers, of the service that is configured, and on this disk
    List {
        #[command(flatten)]
        flags: ModelFlags,
    },
}

/// A model that can be asked.
#[derive(Debug, Serialize)]
struct Item {
    /// What `--model` takes.
    model: String,
    /// Who runs it.
    from: String,
}

impl ModelsCommand {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let Self::List { flags } = self;
        flags.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let mut items = Vec::new();
        let configured = app.config.settings.base_url.as_deref();
        let mut servers = choose::local_servers(app);
        servers.extend(configured.map(|url| LocalServer::new("openai-compatible", url)));
        app.output.wait("looking for models");
        for (LocalServer { profile, base_url: url, .. }, answer) in
            ask_local_servers(servers, choose::PATIENCE).await
        {
            let models = match answer {
                ServerAnswer::Models(models) => models,
                ServerAnswer::Late => {
                    app.output
                        .note(Look::Plain, format!("{profile} at {url} was too slow to list its models"));
                    continue;
                }
                _ => continue,
            };
            let named = |model: &String| match configured {
                Some(configured) if configured == url => format!("openai-compatible@{url}:{model}"),
                _ => format!("{profile}:{model}"),
            };
            items.extend(models.iter().map(|m| Item { model: named(m), from: url.clone() }));
        }
        items.extend(choose::keyed(app).map(|(profile, variable)| Item {
            model: format!("{}:MODEL", profile.name),
            from: format!("{} ({variable} is set)", profile.base_url),
        }));
        items.extend(
            local::files(app).into_iter().map(|(name, path)| Item {
                model: format!("local:{name}"),
                from: path.display().to_string(),
            }),
        );
        app.output.stop_waiting();
        if items.is_empty() && !app.json {
            app.output.note(Look::Plain, "no models were found: `archon doctor` says where it looked");
        }
        for item in &items {
            app.item(item, || format!("{:<40}  {}", item.model, item.from));
        }
        Ok(Exit::Finished)
    }
}
