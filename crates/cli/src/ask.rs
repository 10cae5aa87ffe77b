//! Asks questions on the terminal: shows the effect of a call, and reads the answer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use archon::{
    tools::Rule,
    types::{Answer, ApprovalRequest, Approver, Decision, Journal, Json, QuestionKind},
    views::ArgumentSource,
};

use crate::{
    app::App,
    output::{Look, Output},
    permissions::{self, StoredRules},
    provenance,
    question::{self, changes},
    text::visible,
};

/// The way in which the questions of this command's runs are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// The person at the terminal answers at once.
    Here,
    /// A person answers later: runs are suspended until then.
    Later,
    /// No person can answer: the answer is no.
    Nobody,
}

impl Asking {
    /// Returns the way for this command: [`Later`](Self::Later) with `--ask-later`, otherwise [`Nobody`](Self::Nobody)
    /// with `--json` or without a terminal, otherwise [`Here`](Self::Here).
    pub(crate) fn of(app: &App) -> Self {
        let terminal = app.output.spins && std::io::IsTerminal::is_terminal(&std::io::stdin());
        match (app.ask_later, terminal && !app.json) {
            (true, _) => Self::Later,
            (false, true) => Self::Here,
            (false, false) => Self::Nobody,
        }
    }
}

/// A callback that returns the next line that a person types; `None` at the end of the input.
type Lines = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// An approver that asks on the terminal.
#[derive(Clone)]
pub(crate) struct Prompt {
    output: Arc<Output>,
    lines: Lines,
    /// The store for the permission rules from answers with `always`; `None` if rules cannot be stored.
    rules: Option<StoredRules>,
    asker: Asker,
    /// The journal that the sources of arguments are read from; `None` for calls without a run.
    journal: Option<Arc<dyn Journal>>,
    /// The sources of the arguments of the questions that are asked now, by the ids of the questions.
    sources: HashMap<String, Vec<ArgumentSource>>,
}

/// The kind of work that a prompt asks its questions for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// A run, which has a session and can wait.
    Run,
    /// A tool call without a run.
    Call,
}

/// A lock for one question at a time, since there is only one terminal.
static TURN: Mutex<()> = Mutex::new(());

impl Prompt {
    fn new(output: Arc<Output>, lines: Lines, rules: Option<StoredRules>) -> Self {
        Self { output, lines, rules, asker: Asker::Run, journal: None, sources: HashMap::new() }
    }

    /// Creates a prompt on this program's terminal.
    pub(crate) fn of(app: &App) -> Self {
        let journal: Arc<dyn Journal> = Arc::new(app.journal());
        let prompt = Self::new(app.output.clone(), Self::keyboard(), permissions::stored_rules(app));
        Self { journal: Some(journal), ..prompt }
    }

    /// Changes the prompt to ask for a tool call without a run: it offers no later answer and no rule for a
    /// session.
    pub(crate) fn for_a_call(self) -> Self {
        Self { asker: Asker::Call, journal: None, ..self }
    }

    fn keyboard() -> Lines {
        Arc::new(|| {
            let mut line = String::new();
            match std::io::stdin().read_line(&mut line) {
                Ok(0) | Err(_) => None,
                Ok(_) => Some(line),
            }
        })
    }

    /// Drops input that was typed before the question was shown, since it is not an answer.
    fn forget_typed(&self) {
        #[cfg(unix)]
        if self.output.asks {
            use rustix::termios::{QueueSelector, tcflush};
            let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        }
    }

    /// Asks a question in one line on this program's terminal, and returns the typed line.
    pub(crate) fn line_of(app: &App, question: &str) -> Option<String> {
        let prompt = Self::new(app.output.clone(), Self::keyboard(), None);
        prompt.forget_typed();
        prompt.output.note_piece(Look::Plain, question);
        (prompt.lines)()
    }

    /// Asks a question in one line; true if the answer is yes.
    pub(crate) fn asks_yes(app: &App, question: &str) -> bool {
        let line = Self::line_of(app, question).unwrap_or_default();
        matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    }

    fn ask_all(&self, requests: &[ApprovalRequest]) -> Vec<Decision> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() > 1 {
            self.output.note(Look::Warning, format!("Multiple Operations ({})", requests.len()));
            for request in requests {
                self.show(request);
            }
            let changes: usize =
                requests.iter().map(|r| changes(r).filter(|(_, diff)| diff.is_some()).count()).sum();
            if changes > 0 {
                self.output.note(Look::Dim, format!("Previewed {changes} file modification(s) above"));
            }
        }
        requests.iter().map(|request| self.ask(request, requests.len() == 1)).collect()
    }

    fn ask(&self, request: &ApprovalRequest, with_preview: bool) -> Decision {
        let is_whole = match with_preview {
            true => self.show(request),
            false => {
                let (first, missing) = question::first_line(request);
                self.output.note(Look::Warning, first);
                !missing && question::brief(request, self.sources(request)).is_whole
            }
        };
        if request.kind == QuestionKind::Input {
            return self.ask_for_input(request, is_whole);
        }
        let may = |option: &str| may(request, option);
        // The narrowest rule; a person has to type a wider one.
        let rule = request.rules.first();
        let ways = ways(self.asker, request, rule, is_whole);
        let keys: Vec<String> = ways.iter().map(|way| way.key.clone()).collect();
        self.forget_typed();
        loop {
            self.output.note_piece(Look::Plain, &format!("  {}  [?]\n> ", keys.join("  ")));
            let Some(line) = (self.lines)() else { return Decision::Later };
            let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            let given = if rest.is_empty() { rule.cloned() } else { Some(rest.to_owned()) };
            match (word.to_lowercase().as_str(), given) {
                ("y" | "yes", _) if may("approve") => return Decision::Now(Answer::Approve),
                ("n" | "no", _) => return Decision::Now(Answer::Cancel { reason: rest.to_owned() }),
                ("v" | "view", _) => self.print(question::whole(request, self.sources(request))),
                ("?" | "h" | "help", _) => ways.iter().for_each(|way| {
                    self.output.note(Look::Plain, format!("  {:<9} {}", way.typed, way.meaning));
                }),
                ("l" | "later", _) if self.asker == Asker::Run => return Decision::Later,
                // An empty reply is allowed for a failed step: the others go on without it.
                ("r" | "reply", _)
                    if may("reply") && (!rest.is_empty() || request.kind == QuestionKind::FailedStep) =>
                {
                    return Decision::Now(Answer::Reply { text: rest.to_owned() });
                }
                ("e" | "edit", _) if request.allow_modification && may("edit") => {
                    if let Some(answer) = self.edited(request) {
                        return Decision::Now(answer);
                    }
                }
                ("s" | "session", Some(given)) if self.asker == Asker::Run && rule.is_some() => {
                    if let Some(answer) = self.trusted(given, None) {
                        return Decision::Now(answer);
                    }
                }
                ("a" | "always", Some(given)) if rule.is_some() => {
                    if let Some(answer) = self.trusted(given, self.rules.as_ref()) {
                        return Decision::Now(answer);
                    }
                }
                _ => self.output.note(Look::Plain, "  type one of the letters; ? explains them"),
            }
        }
    }

    /// Asks for missing input: each field by its name, or free text if the request names no field.
    fn ask_for_input(&self, request: &ApprovalRequest, is_whole: bool) -> Decision {
        let missing = request.details.get("missing").and_then(Json::as_array).cloned().unwrap_or_default();
        let names: Vec<&str> = missing.iter().filter_map(|field| field.get("name")?.as_str()).collect();
        self.forget_typed();
        let view = if is_whole { "" } else { ", `v` shows all of it" };
        self.output.note(Look::Plain, format!("  `l` answers later, `n` or `n WHY` cancels{view}"));
        let typed = |name: &str| loop {
            match self.typed(name) {
                Typed::Text(text) if text == "v" && !is_whole => {
                    self.print(question::whole(request, self.sources(request)))
                }
                typed => break typed,
            }
        };
        if names.is_empty() {
            return loop {
                match typed("answer") {
                    Typed::Text(text) if text.is_empty() => {}
                    Typed::Text(text) => break Decision::Now(Answer::Reply { text }),
                    Typed::Decided(decision) => break decision,
                }
            };
        }
        let mut arguments = serde_json::Map::new();
        for name in names {
            match typed(name) {
                // Asks again for an empty value.
                Typed::Text(text) if text.is_empty() => {}
                Typed::Text(text) => drop(arguments.insert(name.to_owned(), text.into())),
                Typed::Decided(decision) => return decision,
            }
        }
        Decision::Now(Answer::Edit { arguments: arguments.into() })
    }

    fn typed(&self, name: &str) -> Typed {
        self.output.note_piece(Look::Plain, &format!("  {}: ", visible(name)));
        let Some(line) = (self.lines)() else { return Typed::Decided(Decision::Later) };
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match word {
            "l" if rest.is_empty() => Typed::Decided(Decision::Later),
            "n" => Typed::Decided(Decision::Now(Answer::Cancel { reason: rest.to_owned() })),
            _ => Typed::Text(line.trim().to_owned()),
        }
    }

    fn trusted(&self, rule: String, store: Option<&StoredRules>) -> Option<Answer> {
        if let Err(e) = rule.parse::<Rule>() {
            self.output.note(Look::Warning, format!("  {e}"));
            return None;
        }
        if let Some(store) = store {
            let (shown, workspace) = (visible(&rule), visible(&store.workspace));
            let file = store.file.display();
            let (look, text) = match store.remember(&rule) {
                Ok(()) => (Look::Dim, format!("  {shown} is stored for {workspace} in {file}")),
                Err(e) => (
                    Look::Warning,
                    format!("  the rule holds for this session only: {file} cannot be written: {e}"),
                ),
            };
            self.output.note(look, text);
        }
        Some(Answer::Trust { rules: vec![rule] })
    }

    fn edited(&self, request: &ApprovalRequest) -> Option<Answer> {
        let arguments = request.details.get("arguments").unwrap_or(&Json::Null);
        self.output.note(Look::Plain, format!("  the arguments are {}", visible(&arguments.to_string())));
        self.output.note_piece(Look::Plain, "  the new ones, as JSON on one line\n> ");
        let line = (self.lines)()?;
        let problem = match serde_json::from_str::<Json>(line.trim()) {
            Ok(arguments) if arguments.is_object() => return Some(Answer::Edit { arguments }),
            Ok(_) => "  that is not a JSON object".to_owned(),
            Err(e) => format!("  that is not JSON: {e}"),
        };
        self.output.note(Look::Warning, problem);
        None
    }

    /// Shows the effect and the changes of a call. Returns true if everything was shown.
    fn show(&self, request: &ApprovalRequest) -> bool {
        let shown = question::brief(request, self.sources(request));
        self.print(shown.lines);
        shown.is_whole
    }

    fn sources(&self, request: &ApprovalRequest) -> &[ArgumentSource] {
        self.sources.get(&request.request_id).map(Vec::as_slice).unwrap_or_default()
    }

    fn print(&self, lines: Vec<(Look, String)>) {
        lines.into_iter().for_each(|(look, line)| self.output.note(look, line));
    }
}

fn may(request: &ApprovalRequest, option: &str) -> bool {
    request.options.iter().any(|other| other == option)
}

struct Way {
    /// The short form of the answer, as in the line that lists all answers: `[y]es`.
    key: String,
    /// The text that the person types: a letter, and a placeholder for the text that may follow it.
    typed: &'static str,
    meaning: String,
}

fn ways(asker: Asker, request: &ApprovalRequest, rule: Option<&String>, is_whole: bool) -> Vec<Way> {
    let is_run = asker == Asker::Run;
    let way =
        |key: &str, typed, meaning: &str| Way { key: key.to_owned(), typed, meaning: meaning.to_owned() };
    let mut ways = Vec::new();
    if may(request, "approve") {
        ways.push(match request.kind {
            QuestionKind::InDoubt => way("[y]es, run it again", "y", "run it again"),
            QuestionKind::FailedStep => way("[y]es, try it again", "y", "try it again"),
            _ => way("[y]es", "y", "yes, this once"),
        });
    }
    let reader = if is_run { "is sent to the model" } else { "is part of the result" };
    ways.push(way("[n]o", "n, n WHY", &format!("no; WHY {reader}")));
    if let Some(rule) = rule.map(|rule| visible(rule)) {
        let rest = format!("{rule}; `s RULE` takes another rule");
        if is_run {
            let meaning = format!("yes, and in this session without a question: {rest}");
            ways.push(way("[s]ession", "s, s RULE", &meaning));
        }
        let rest = format!("{rule}; `a RULE` takes another rule");
        ways.push(way(
            &format!("[a]lways {rule}"),
            "a, a RULE",
            &format!("yes, and always in this folder: {rest}"),
        ));
    }
    if request.allow_modification && may(request, "edit") {
        ways.push(way("[e]dit", "e", "change the arguments first"));
    }
    if may(request, "reply") {
        ways.push(match request.kind {
            QuestionKind::FailedStep => {
                way("[r]eply", "r, r TEXT", "continue without it; TEXT replaces its result")
            }
            _ => way("[r]eply TEXT", "r TEXT", "answer with a text"),
        });
    }
    if !is_whole {
        ways.push(way("[v]iew", "v", "show all of it"));
    }
    if is_run {
        ways.push(way("[l]ater", "l", "decide later: the run waits, and `archon approvals` shows it"));
    }
    ways
}

/// A line that a person typed in answer to a request for text.
enum Typed {
    Text(String),
    Decided(Decision),
}

impl Approver for Prompt {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.decide_all(std::slice::from_ref(request)).await.pop().unwrap_or(Decision::Later)
    }

    async fn decide_all(&self, requests: &[ApprovalRequest]) -> Vec<Decision> {
        let (mut own, requests) = (self.clone(), requests.to_vec());
        if let Some(journal) = &self.journal {
            own.sources = provenance::of_questions(&**journal, &requests).await;
        }
        // Reading the keyboard blocks, so it needs a thread.
        tokio::task::spawn_blocking(move || own.ask_all(&requests)).await.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(summary: &str) -> ApprovalRequest {
        let details = json!({"tool": "bash", "arguments": {"command": "git status -s"}});
        let mut request = ApprovalRequest::new(summary, format!("Run `{summary}`"), details);
        request.rules = vec!["bash(git status -s)".into(), "bash(git status:*)".into()];
        request
    }

    fn prompt(typed: &[&str], rules: Option<StoredRules>) -> Prompt {
        let typed: Mutex<Vec<String>> =
            Mutex::new(typed.iter().rev().map(|line| format!("{line}\n")).collect());
        let output = Output::to(Box::new(std::io::sink()), Box::new(std::io::sink()));
        Prompt::new(Arc::new(output), Arc::new(move || typed.lock().unwrap().pop()), rules)
    }

    // spec: AP-11, AP-13
    #[test]
    fn prompt_typed_reply_becomes_the_answer() {
        let trust = |rule: &str| Decision::Now(Answer::Trust { rules: vec![rule.to_owned()] });
        for (typed, expected) in [
            (&["y"][..], Decision::Now(Answer::Approve)),
            (&["no"], Decision::Now(Answer::Cancel { reason: String::new() })),
            (&["n not now"], Decision::Now(Answer::Cancel { reason: "not now".into() })),
            (&["l"], Decision::Later),
            (&[], Decision::Later),
            (&["", "what?", "Y"], Decision::Now(Answer::Approve)),
            (&["s"], trust("bash(git status -s)")),
            (&["s bash(git:*)"], trust("bash(git:*)")),
            (&["s bash(", "s"], trust("bash(git status -s)")),
            (
                &["e", r#"{"command":"ls"}"#],
                Decision::Now(Answer::Edit { arguments: json!({"command": "ls"}) }),
            ),
            (&["e", "ls", "n"], Decision::Now(Answer::Cancel { reason: String::new() })),
        ] {
            assert_eq!(prompt(typed, None).ask_all(&[request("a")]), [expected], "{typed:?}");
        }
        let both = prompt(&["y", "n"], None).ask_all(&[request("a"), request("b")]);
        assert_eq!(
            both,
            [Decision::Now(Answer::Approve), Decision::Now(Answer::Cancel { reason: String::new() })]
        );
    }

    /// The output, for a test to read.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn ask_all(typed: &'static [&str], requests: &[ApprovalRequest]) -> (Vec<Decision>, String) {
        let (page, typed) = (Page::default(), Mutex::new(typed.iter().rev().collect::<Vec<_>>()));
        let output = Output::to(Box::new(std::io::sink()), Box::new(page.clone()));
        let lines: Lines = Arc::new(move || typed.lock().unwrap().pop().map(|line| format!("{line}\n")));
        let decisions = Prompt::new(Arc::new(output), lines, None).ask_all(requests);
        let bytes = page.0.lock().unwrap().clone();
        (decisions, String::from_utf8(bytes).unwrap())
    }

    // spec: AP-05, AP-13
    #[test]
    fn prompt_long_question_is_marked_and_v_shows_the_rest() {
        let mut long = request("long");
        let command = format!("{}rm -rf .\u{1b}[8m", "true;".repeat(1_000));
        long.details = json!({"tool": "bash", "arguments": {"command": command}});
        long.rules = vec!["bash(\u{202e}x:*)".into()];
        let (decisions, text) = ask_all(&["v", "y"], std::slice::from_ref(&long));
        assert_eq!(decisions, [Decision::Now(Answer::Approve)]);
        let (before, after) = text.split_once("[v]iew").unwrap();
        assert!(
            before.contains("more characters not shown: `v` shows all") && !before.contains("rm -rf"),
            "{before}"
        );
        assert!(after.contains("rm -rf .\\u001b[8m"), "{after}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("bash(\\u{202e}x:*)"), "{text}");
        // Of several, the one that is cut is marked where it is asked about.
        let (_, text) = ask_all(&["v", "n", "y"], &[long, request("short")]);
        assert_eq!(text.matches("[v]iew").count(), 2, "{text}");
        assert!(text.contains("rm -rf ."), "{text}");
        let (_, text) = ask_all(&["y"], &[request("short")]);
        assert!(!text.contains("[v]iew") && !text.contains("not shown"), "{text}");
    }

    #[test]
    fn question_help_explains_each_answer_on_its_own_line() {
        let (decisions, text) = ask_all(&["?", "y"], &[request("short")]);
        assert_eq!(decisions, [Decision::Now(Answer::Approve)]);
        let line = "  [y]es  [n]o  [s]ession  [a]lways bash(git status -s)  [e]dit  [l]ater  [?]";
        assert_eq!(text.matches(line).count(), 2, "{text}");
        for help in [
            "  y         yes, this once\n",
            "  n, n WHY  no; WHY is sent to the model\n",
            "  e         change the arguments first\n",
        ] {
            assert!(text.contains(help), "{help}: {text}");
        }
    }

    #[test]
    fn question_of_a_call_without_a_run_has_no_session_and_no_later() {
        let calls = |typed: &[&str]| prompt(typed, None).for_a_call().ask_all(&[request("a")]);
        for (typed, expected) in [
            (&["y"][..], Decision::Now(Answer::Approve)),
            (&["s", "y"], Decision::Now(Answer::Approve)),
            (&["l", "n why"], Decision::Now(Answer::Cancel { reason: "why".to_owned() })),
            (&[], Decision::Later),
        ] {
            assert_eq!(calls(typed), [expected], "{typed:?}");
        }
        let request = request("a");
        let keys: Vec<_> =
            ways(Asker::Call, &request, request.rules.first(), true).into_iter().map(|way| way.key).collect();
        assert_eq!(keys, ["[y]es", "[n]o", "[a]lways bash(git status -s)", "[e]dit"]);
    }

    // spec: MA-38
    #[test]
    fn prompt_missing_input_is_asked_for_by_name() {
        let mut missing = request("send_mail needs `to`: Whom? `urgent`: Is it?");
        missing.kind = QuestionKind::Input;
        missing.details = json!({"tool": "send_mail", "arguments": {}, "missing": [
            {"name": "to", "kind": "text", "description": "Whom?"},
            {"name": "urgent", "kind": "boolean", "description": "Is it?"},
        ]});
        let both = json!({"to": "anna@example.org", "urgent": "yes"});
        let mut words = missing.clone();
        words.details = json!({});
        let mut long = words.clone();
        long.action_summary = "Whom? ".repeat(1_000);
        for (typed, request, expected) in [
            (&["anna@example.org", "yes"][..], &missing, Decision::Now(Answer::Edit { arguments: both })),
            (&["", "yes"], &missing, Decision::Now(Answer::Edit { arguments: json!({"urgent": "yes"}) })),
            (&["l"], &missing, Decision::Later),
            (&[], &missing, Decision::Later),
            (&["n not now"], &missing, Decision::Now(Answer::Cancel { reason: "not now".into() })),
            (&["v", "To Anna"], &long, Decision::Now(Answer::Reply { text: "To Anna".into() })),
            (&["v"], &words, Decision::Now(Answer::Reply { text: "v".into() })),
            (&["", "To Anna"], &words, Decision::Now(Answer::Reply { text: "To Anna".into() })),
        ] {
            assert_eq!(prompt(typed, None).ask_all(std::slice::from_ref(request)), [expected], "{typed:?}");
        }
    }

    // spec: AP-11
    #[test]
    fn prompt_always_stores_a_rule_for_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("archon").join("permissions.toml");
        let stored = |workspace: &str| StoredRules { file: file.clone(), workspace: workspace.to_owned() };
        prompt(&["a"], Some(stored("/one"))).ask_all(&[request("a")]);
        prompt(&["a read_file"], Some(stored("/one"))).ask_all(&[request("a")]);
        prompt(&["a"], Some(stored("/one"))).ask_all(&[request("a")]);
        prompt(&["a bash(make:*)"], Some(stored("/two"))).ask_all(&[request("a")]);
        assert_eq!(stored("/one").rules().unwrap(), ["bash(git status -s)", "read_file"]);
        assert_eq!(stored("/two").rules().unwrap(), ["bash(make:*)"]);
        assert_eq!(stored("/three").rules().unwrap(), Vec::<String>::new());
    }
}
