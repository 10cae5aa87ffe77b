//! The commands of a conversation: the drafts that begin with `/`.
//!
//! A command has one line in [`COMMANDS`]. Its work is in a file of its own, or is a request to the conversation. What
//! it prints goes through the output of the program and reaches no model.

#[cfg(unix)]
mod background;
mod call;
mod diff;
mod export;
mod help;
mod messages;
mod permissions;
mod reports;
mod review;
mod rosters;
mod sessions;
mod theme;
#[cfg(all(unix, feature = "undo"))]
mod undo;

use archon::types::{Collection, SessionId, SessionMode, nearest};
use archon_terminal::{CompletionCandidate, Draft, DraftKind, Meter, ThemeName};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use self::{help::Entry, reports::warning};
use super::{
    custom_commands::{self, CustomCommand},
    events::Request,
};
use crate::{
    app::App,
    failure::Failure,
    lists::memories,
    skills::{self, OfferedSkill, SkillCall},
};

/// A command.
struct Command {
    /// The name behind the `/`.
    name: &'static str,
    /// Other names.
    aliases: &'static [&'static str],
    /// The arguments, for people; empty without arguments.
    arguments: &'static str,
    /// The effect, as one line.
    about: &'static str,
    work: Work,
}

/// The work of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Agents,
    Back,
    Clear,
    Compact,
    Context,
    Cost,
    Diff,
    Exit,
    Export,
    Fork,
    Full,
    Help,
    Mcp,
    Memory,
    Model,
    Permissions,
    Plan,
    #[cfg(unix)]
    Ps,
    Resume,
    Review,
    Skills,
    Status,
    #[cfg(unix)]
    Stop,
    Theme,
    Tools,
    #[cfg(all(unix, feature = "undo"))]
    Undo(undo::Way),
}

/// Creates a line of the table.
const fn command(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
    work: Work,
) -> Command {
    Command { name, aliases, arguments, about, work }
}

/// The commands, in the order in which they are listed. The help, the completion and the page of the book follow.
const COMMANDS: &[Command] = &[
    command("help", &[], "", "Show all commands, and your own", Work::Help),
    command(
        "model",
        &[],
        "[NAME]",
        "List the models, or use another one from the next message on",
        Work::Model,
    ),
    command(
        "cost",
        &["usage"],
        "",
        "Show the tokens and the money that this conversation has used",
        Work::Cost,
    ),
    command("context", &[], "", "Show how full the context window is, and what fills it", Work::Context),
    command(
        "compact",
        &[],
        "[WISHES]",
        "Replace the older part of the conversation by a summary, for the model",
        Work::Compact,
    ),
    command("plan", &[], "[TEXT]", "Go to plan mode, and send TEXT in it", Work::Plan),
    command(
        "status",
        &[],
        "",
        "Show the model, the session, the folder, the memory and the sandbox",
        Work::Status,
    ),
    command(
        "resume",
        &["sessions"],
        "[N|SESSION|WORDS]",
        "List the conversations, find some by their first message, or continue one",
        Work::Resume,
    ),
    command("clear", &["new"], "", "Begin a new conversation; this one is kept", Work::Clear),
    command("fork", &[], "", "Continue in a fork, so that the last run stays as it is", Work::Fork),
    command("back", &[], "[N]", "List your messages, or change one and continue from there", Work::Back),
    #[cfg(all(unix, feature = "undo"))]
    command("undo", &[], "", "Take back what the last run changed in files", Work::Undo(undo::Way::Undo)),
    #[cfg(all(unix, feature = "undo"))]
    command(
        "rewind",
        &[],
        "N",
        "Take back what the last N turns of that run changed in files",
        Work::Undo(undo::Way::Rewind),
    ),
    #[cfg(all(unix, feature = "undo"))]
    command("redo", &[], "", "Take back the last undo", Work::Undo(undo::Way::Redo)),
    command(
        "full",
        &[],
        "",
        "Show the whole conversation on a screen of its own, to scroll, search and copy",
        Work::Full,
    ),
    command("diff", &[], "", "Show the changes since the last commit, and new files", Work::Diff),
    command("review", &[], "[WHAT]", "Ask the agent for a review of the changes", Work::Review),
    command("memory", &[], "[list|search TEXT]", "List the latest memories, or find some", Work::Memory),
    command("mcp", &[], "", "List the MCP servers", Work::Mcp),
    command("agents", &[], "", "List the agents that the agent may call", Work::Agents),
    command("tools", &[], "", "List the tools of this conversation", Work::Tools),
    command("skills", &[], "", "List the skills: /NAME activates one", Work::Skills),
    #[cfg(unix)]
    command("ps", &[], "", "List the commands that run in the background", Work::Ps),
    #[cfg(unix)]
    command("stop", &[], "N", "Stop a command that runs in the background", Work::Stop),
    command(
        "permissions",
        &["trust"],
        "[remove N]",
        "List the permission rules, or remove a stored one",
        Work::Permissions,
    ),
    command("theme", &[], "[NAME]", "List the themes, or use one from now on", Work::Theme),
    command("export", &[], "[FILE]", "Write the conversation into a file, as Markdown", Work::Export),
    command("exit", &["quit"], "", "End the conversation", Work::Exit),
];

/// The parts of the conversation that a command can see.
pub(crate) struct Situation<'a> {
    pub(crate) app: &'a App,
    pub(crate) meter: &'a Meter,
    /// The model of the next message.
    pub(crate) model: &'a str,
    pub(crate) session: Option<&'a SessionId>,
    /// The collection that the conversation recalls memories from.
    pub(crate) memory: Option<&'a Collection>,
    pub(crate) is_sandboxed: bool,
    pub(crate) theme: ThemeName,
    /// True if no run works and none waits with a question.
    #[cfg(all(unix, feature = "undo"))]
    pub(crate) is_at_rest: bool,
    pub(crate) requests: &'a UnboundedSender<Request>,
}

/// The next step after a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: the command prints what it finds.
    Done,
    /// Sends this message to the agent.
    Message(String),
    /// Sends the draft to the agent with a skill.
    Skill(SkillCall),
    /// Runs this line of the shell.
    Line(String),
    /// Uses this theme.
    Theme(ThemeName),
    /// Opens the full view.
    Full,
    /// Ends the conversation.
    Leave,
    /// Shows why the command does nothing, and lets the draft be changed.
    Refuse(String),
}

/// Executes a draft by its kind: runs a command, stores a memory, or returns the step for a shell line or a message.
pub(crate) fn apply(draft: &Draft, situation: &Situation<'_>) -> Step {
    match draft.kind {
        DraftKind::Command => run(draft.body(), situation),
        DraftKind::Memory => remember(draft.body(), situation),
        DraftKind::Shell if draft.body().is_empty() => {
            Step::Refuse("the line to run is empty: write it behind the !".to_owned())
        }
        DraftKind::Shell => Step::Line(draft.body().to_owned()),
        _ => Step::Message(draft.text.clone()),
    }
}

/// Runs a command: `body` is the draft without the `/`.
fn run(body: &str, situation: &Situation<'_>) -> Step {
    let (name, arguments) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    let arguments = arguments.trim();
    if let Some(command) = COMMANDS.iter().find(|known| known.name == name || known.aliases.contains(&name)) {
        return match command.arguments.is_empty() && !arguments.is_empty() {
            true => Step::Refuse(format!("/{name} takes no arguments")),
            false => begin(command.work, arguments, situation),
        };
    }
    let own = custom_commands::find(situation.app);
    if let Some(own) = own.commands.iter().find(|own| own.name == name) {
        return Step::Message(own.message(arguments));
    }
    let skills = skills::offered(situation.app);
    match skills.iter().any(|skill| skill.name == name) {
        true => Step::Skill(SkillCall { name: name.to_owned(), words: arguments.to_owned() }),
        false => Step::Refuse(unknown(name, &own.commands, &skills)),
    }
}

/// Stores a text of the person in the memory of the conversation: a draft that begins with `#`.
fn remember(text: &str, situation: &Situation<'_>) -> Step {
    if text.is_empty() {
        return Step::Refuse("the text to remember is empty: write it behind the #".to_owned());
    }
    let (app, text) = (situation.app.clone(), text.to_owned());
    let (collection, is_recalled) = (situation.collection(), situation.memory.is_some());
    situation.spawn(async move {
        memories::add(&app, &collection, &text).await?;
        let why = match is_recalled {
            true => String::new(),
            false => format!("; a conversation recalls it if it is begun with --memory {collection}"),
        };
        app.note(format!("remembered in {collection}{why}"));
        Ok(())
    });
    Step::Done
}

fn begin(work: Work, arguments: &str, situation: &Situation<'_>) -> Step {
    match work {
        Work::Help => {
            help::print(
                situation.app,
                &custom_commands::find(situation.app),
                &skills::offered(situation.app),
            );
        }
        Work::Skills => rosters::skills(situation.app),
        Work::Cost => reports::cost(situation),
        Work::Context => reports::context(situation),
        Work::Status => reports::status(situation),
        Work::Model if arguments.is_empty() => rosters::models(situation),
        Work::Model => situation.request(Request::Model(arguments.to_owned())),
        Work::Agents => rosters::agents(situation.app),
        Work::Tools => rosters::tools(situation),
        Work::Mcp => rosters::mcp_servers(situation),
        Work::Memory => rosters::memories(arguments, situation),
        Work::Permissions => permissions::run(arguments, situation),
        Work::Resume => sessions::resume(arguments, situation),
        Work::Clear => situation.request(Request::Open(None)),
        Work::Fork => situation.request(Request::Fork),
        Work::Compact => situation.request(Request::Compact(arguments.to_owned())),
        Work::Plan => {
            situation.request(Request::Mode(Some(SessionMode::Plan)));
            if !arguments.is_empty() {
                return Step::Message(arguments.to_owned());
            }
        }
        #[cfg(unix)]
        Work::Ps => background::list(situation),
        #[cfg(unix)]
        Work::Stop => return refused(background::stop(arguments, situation)),
        Work::Back => return refused(messages::back(arguments, situation)),
        #[cfg(all(unix, feature = "undo"))]
        Work::Undo(way) => return undo::run(way, arguments, situation),
        Work::Diff => diff::print(situation),
        Work::Export => export::run(arguments, situation),
        Work::Theme => return theme::run(arguments, situation),
        Work::Review => return Step::Message(review::message(arguments)),
        Work::Full => return Step::Full,
        Work::Exit => return Step::Leave,
    }
    Step::Done
}

fn refused(result: Result<(), String>) -> Step {
    result.err().map_or(Step::Done, Step::Refuse)
}

/// Returns what is wrong with the name of a command, and what to do.
fn unknown(name: &str, own: &[CustomCommand], skills: &[OfferedSkill]) -> String {
    let names =
        COMMANDS.iter().flat_map(|known| std::iter::once(known.name).chain(known.aliases.iter().copied()));
    let names = names.chain(own.iter().map(|own| own.name.as_str()));
    let meant = nearest(name, names.chain(skills.iter().map(|skill| skill.name.as_str())));
    let meant = meant.map(|meant| format!(" Did you mean /{meant}?")).unwrap_or_default();
    format!(
        "there is no such command: /{name}.{meant} /help lists all. With a space before it, the line is a message."
    )
}

/// Returns the names of all commands with their arguments and effects, for the help and for completion.
pub(crate) fn entries(own: &[CustomCommand], skills: &[OfferedSkill]) -> Vec<Entry> {
    let built_in = COMMANDS.iter().map(|known| Entry {
        name: known.name.to_owned(),
        arguments: known.arguments.to_owned(),
        about: known.about.to_owned(),
    });
    let own = own.iter().map(|own| Entry {
        name: own.name.clone(),
        arguments: own.arguments.clone(),
        about: own.about.clone(),
    });
    let taken: Vec<Entry> = built_in.chain(own).collect();
    let is_free = |skill: &&OfferedSkill| taken.iter().all(|entry| entry.name != skill.name);
    let skills = skills.iter().filter(is_free).map(|skill| Entry {
        name: skill.name.clone(),
        arguments: "[WORDS]".to_owned(),
        about: skill.about.clone(),
    });
    let skills: Vec<Entry> = skills.collect();
    taken.into_iter().chain(skills).collect()
}

/// Returns the built-in commands, the person's own commands and the skills, for the list below a draft that begins with
/// `/`.
pub(crate) fn candidates(app: &App) -> Vec<CompletionCandidate> {
    let candidate = |Entry { name, arguments, about }| {
        let label = format!("/{name} {arguments}");
        CompletionCandidate::new(format!("/{name}"), label.trim_end(), about)
    };
    let own = custom_commands::find(app);
    entries(&own.commands, &skills::offered(app)).into_iter().map(candidate).collect()
}

impl Situation<'_> {
    /// Returns the memory collection of the conversation, or else the default collection of `archon memory`.
    fn collection(&self) -> Collection {
        self.memory.cloned().unwrap_or_else(|| Collection::new("user:local").unwrap_or_default())
    }

    /// Asks the conversation for something.
    fn request(&self, request: Request) {
        // A conversation that has ended takes no requests.
        let _ = self.requests.send(request);
    }

    /// Runs the work of a command while the screen goes on; a failure is printed. The work keeps a sender of requests
    /// until it is done, so that a conversation in plain lines can wait for its end.
    fn spawn(&self, work: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        let (output, until_done) = (self.app.output.clone(), self.requests.clone());
        tokio::spawn(async move {
            if let Err(failure) = work.await {
                output.failure(&failure);
            }
            drop(until_done);
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::config::Settings;

    fn run_alone(body: &str) -> (Step, Vec<Request>) {
        let (requests, mut sent) = unbounded_channel();
        let app = App::of(Settings::default());
        let situation = Situation {
            app: &app,
            meter: &Meter::default(),
            model: "mock",
            session: None,
            memory: None,
            is_sandboxed: false,
            theme: ThemeName::Auto,
            #[cfg(all(unix, feature = "undo"))]
            is_at_rest: true,
            requests: &requests,
        };
        let step = run(body, &situation);
        (step, std::iter::from_fn(|| sent.try_recv().ok()).collect())
    }

    // spec: CL-02
    #[test]
    fn run_finds_a_command_by_its_name_and_by_its_aliases() {
        for name in ["exit", "quit"] {
            assert_eq!(run_alone(name).0, Step::Leave, "{name}");
        }
        let (step, requests) = run_alone("model  openai:gpt-5-mini ");
        assert_eq!(step, Step::Done);
        assert!(
            matches!(&requests[..], [Request::Model(name)] if name == "openai:gpt-5-mini"),
            "{requests:?}"
        );
    }

    // spec: CL-02
    #[test]
    fn run_of_an_unknown_command_names_the_nearest_one_and_the_space() {
        let (Step::Refuse(why), requests) = run_alone("modle gpt") else { panic!("it is run") };
        assert!(why.contains("Did you mean /model?") && why.contains("With a space before it"), "{why}");
        assert!(requests.is_empty());
        let (Step::Refuse(why), _) = run_alone("xyzzyx") else { panic!("it is run") };
        assert!(!why.contains("Did you mean"), "{why}");
    }

    // spec: CL-02
    #[test]
    fn run_of_a_theme_that_is_none_names_the_nearest_one_or_all() {
        for (name, advice) in [("drak", "did you mean /theme dark?"), ("pink", "auto, dark, light, mono")] {
            let (Step::Refuse(why), _) = run_alone(&format!("theme {name}")) else { panic!("it is used") };
            assert!(why.contains("there is no theme") && why.contains(advice), "{why}");
        }
    }

    #[test]
    fn run_refuses_arguments_that_a_command_does_not_take() {
        let (Step::Refuse(why), requests) = run_alone("clear everything") else { panic!("it is run") };
        assert!(why.contains("/clear takes no arguments") && requests.is_empty(), "{why}");
    }

    #[test]
    fn commands_have_names_of_their_own() {
        let mut names: Vec<&str> =
            COMMANDS.iter().flat_map(|known| known.aliases.iter().copied().chain([known.name])).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn commands_are_on_the_page_of_the_book() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/how-to/chat.md");
        let page = std::fs::read_to_string(page).unwrap();
        for entry in entries(&[], &[]) {
            let arguments = entry.arguments.replace('|', "\\|");
            let name = format!("/{} {arguments}", entry.name);
            let row = format!("| `{}` | {} |", name.trim_end(), entry.about);
            assert!(page.contains(&row), "the page lacks this row:\n{row}");
        }
    }
}
