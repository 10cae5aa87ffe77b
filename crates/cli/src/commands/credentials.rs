//! `archon credentials`: stores keys of services encrypted, lists and removes them.

use archon::types::TenantId;
use clap::Subcommand;
use serde_json::json;

use crate::{
    app::App,
    credentials::{self, Service},
    exit::Exit,
    failure::Failure,
    output::Look,
    secret_input,
    text::format_time,
};

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsCommand {
    /// Store a key: it is typed without being shown, or read from standard input
    Add {
        /// The service's name, as in SERVICE:MODEL: openai, anthropic, …, or brave-search; or the variable
        /// for an MCP server or an API, as GITHUB_TOKEN
        service: String,
        /// A name for the key; the other keys of a service are tried after `primary`, in the order of their
        /// names
        #[arg(long, value_name = "NAME", default_value = PRIMARY)]
        account: String,
        /// The tenant of `archon assistant` to whom the key belongs [default: you]
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// A key is never read from the command line.
        #[arg(hide = true, num_args = 0.., allow_hyphen_values = true)]
        key: Vec<String>,
    },
    /// List the services whose keys are stored; never the keys
    List {
        /// List the keys of this tenant [default: yours]
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Remove a key
    Remove {
        /// The service
        service: String,
        /// The name of the key
        #[arg(long, value_name = "NAME", default_value = PRIMARY)]
        account: String,
        /// The tenant to whom the key belongs [default: you]
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
}

const PRIMARY: &str = "primary";

/// The advice for giving a key without a terminal.
const PIPE: &str = "pipe it in as text: archon credentials add SERVICE < FILE";

impl CredentialsCommand {
    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        credentials::check_built()?;
        match self {
            Self::Add { service, account, tenant, key } => {
                add(app, &service, (&account, credentials::tenant(tenant)), &key).await
            }
            Self::List { tenant } => list(app, &credentials::tenant(tenant)).await,
            Self::Remove { service, account, tenant } => {
                remove(app, &service, (&account, credentials::tenant(tenant))).await
            }
        }
    }
}

async fn add(
    app: &App,
    name: &str,
    (account, tenant): (&str, TenantId),
    key: &[String],
) -> Result<Exit, Failure> {
    let service = Service::named(name)?;
    if !key.is_empty() {
        let what = "a key cannot be an argument: other programs could see it, and the shell stores it";
        let advice = format!(
            "replace the key if it is in use, then type the new one when asked: archon credentials add {name}"
        );
        return Err(Failure::usage(what, advice));
    }
    if account.is_empty() || account.chars().any(char::is_control) {
        let what = "the name of the key is empty or has control characters";
        return Err(Failure::usage(what, "give another name: --account NAME"));
    }
    let key = secret_input::read(app, &format!("key of {}: ", service.name), PIPE).await?;
    let store = credentials::open(&app.data_dir, &app.sources)?;
    let replaced = store
        .put(&credentials::place(service, account, tenant.clone()), Some(credentials::sealed(&key)))
        .await?;
    let item = json!({"service": service.name, "account": account, "replaced": replaced});
    let done = if replaced { "replaced" } else { "stored" };
    app.report(&item, format!("the key of {} ({account}) is {done}", service.name));
    let is_own = tenant == credentials::owner();
    let set = service.variables.iter().find(|variable| app.sources.env.contains_key(**variable));
    if let Some(set) = set.filter(|_| is_own) {
        app.output.note(Look::Plain, format!("{set} is set, and is used instead"));
    }
    Ok(Exit::Finished)
}

async fn list(app: &App, tenant: &TenantId) -> Result<Exit, Failure> {
    let entries = match credentials::open_store(&app.data_dir, &app.sources)? {
        Some(store) => store.list(tenant, None).await?,
        None => Vec::new(),
    };
    app.note_if(entries.is_empty(), "no keys are stored; store one: archon credentials add SERVICE");
    for entry in entries {
        let key = &entry.key;
        let item = json!({
            "service": key.service, "account": key.account,
            "created_at": entry.created_at, "updated_at": entry.updated_at,
        });
        app.item(&item, || {
            format!("{:<20}  {:<12}  {}", key.service, key.account, format_time(entry.updated_at))
        });
    }
    Ok(Exit::Finished)
}

async fn remove(app: &App, name: &str, (account, tenant): (&str, TenantId)) -> Result<Exit, Failure> {
    let service = Service::named(name)?;
    let store = credentials::open_store(&app.data_dir, &app.sources)?;
    let was_there = match store {
        Some(store) => store.delete(&credentials::place(service, account, tenant)).await?,
        None => false,
    };
    if !was_there {
        let what = format!("no key of {} ({account}) is stored", service.name);
        return Err(Failure::usage(what, "`archon credentials list` shows the stored keys"));
    }
    app.output.note(Look::Plain, format!("the key of {} ({account}) is forgotten", service.name));
    Ok(Exit::Finished)
}
