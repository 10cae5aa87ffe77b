//! Formats a question for a person: whole, or cut with a mark that gives the size of the missing part.

use archon::{
    types::{ApprovalRequest, Json},
    views::ArgumentSource,
};

use crate::{
    output::Look,
    provenance,
    text::{one_line, visible, visible_line},
};

/// The maximum number of lines of a part of a question that are shown at first.
const LINES: usize = 60;
/// The maximum number of characters of a part of a question that are shown at first.
const CHARACTERS: usize = 4_000;
/// The maximum number of characters of the words in a line about their source.
const WORDS: usize = 60;

/// The shown part of a question.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) lines: Vec<(Look, String)>,
    /// True if nothing is missing.
    pub(crate) is_whole: bool,
}

/// Returns the effect and the changes of a call, limited to the length that a person reads at once. `sources` are the
/// texts from which the arguments come.
pub(crate) fn brief(request: &ApprovalRequest, sources: &[ArgumentSource]) -> Shown {
    let differences = differences(request);
    let is_compared = !differences.is_empty() && changes(request).all(|(_, diff)| diff.is_some());
    let mut body = Vec::new();
    for (path, _) in changes(request).filter(|_| is_compared) {
        let found = sources_of_path(sources, path).into_iter();
        body.extend(found.map(|source| format!("  {}: {source}", visible_line(path))));
    }
    body.extend(differences);
    if !is_compared {
        body.extend(arguments(request, sources));
    }
    let (summary, missing_of_summary) = cut(summary(request));
    let (body, missing) = cut(body);
    let is_whole = missing.is_none() && missing_of_summary.is_none();
    let mark = |missing: Option<Missing>| {
        missing.map(|missing| {
            let how = format!("`v` shows all, and later `archon approvals show {}`", request.request_id);
            (Look::Warning, format!("  ... {missing} not shown: {how}"))
        })
    };
    let lines = looking(Look::Warning, summary)
        .chain(mark(missing_of_summary))
        .chain(about(request))
        .chain(looking(Look::Dim, body))
        .chain(mark(missing))
        .collect();
    Shown { lines, is_whole }
}

/// Returns the effect of a call in one line, and true if there is more text.
pub(crate) fn first_line(request: &ApprovalRequest) -> (String, bool) {
    let (lines, missing) = cut(summary(request));
    let is_cut = missing.is_some() || lines.len() > 1;
    let first = lines.into_iter().next().unwrap_or_default();
    (if is_cut { first + " ..." } else { first }, is_cut)
}

/// Returns the question without the differences of files and without the arguments.
pub(crate) fn head(request: &ApprovalRequest) -> Vec<(Look, String)> {
    looking(Look::Warning, summary(request)).chain(about(request)).collect()
}

/// Returns the whole question. `sources` are the texts from which the arguments come.
pub(crate) fn whole(request: &ApprovalRequest, sources: &[ArgumentSource]) -> Vec<(Look, String)> {
    head(request)
        .into_iter()
        .chain(looking(Look::Plain, differences(request)))
        .chain(looking(Look::Plain, arguments(request, sources)))
        .collect()
}

/// The size of the missing part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    lines: usize,
    characters: usize,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |n| if n == 1 { "" } else { "s" };
        write!(f, "{} more character{}", self.characters, s(self.characters))?;
        match self.lines {
            0 => Ok(()),
            lines => write!(f, " ({lines} line{})", s(lines)),
        }
    }
}

/// Returns the beginning of a text, and the size of the rest.
pub(crate) fn cut(lines: Vec<String>) -> (Vec<String>, Option<Missing>) {
    let (mut shown, mut room) = (Vec::new(), CHARACTERS);
    let mut missing = Missing { lines: 0, characters: 0 };
    for line in lines {
        let characters = line.chars().count();
        if missing.characters == 0 && shown.len() < LINES && characters <= room {
            room -= characters;
            shown.push(line);
            continue;
        }
        let part = if missing.characters == 0 && shown.len() < LINES { room } else { 0 };
        if part > 0 {
            shown.push(line.chars().take(part).collect());
        } else {
            missing.lines += 1;
        }
        room = 0;
        // An empty line counts as one character, so that it is not missing silently.
        missing.characters += (characters - part).max(1);
    }
    (shown, (missing.characters > 0).then_some(missing))
}

/// Puts a bar before each line of a tool's text, so that no line looks like a line of this program.
pub(crate) fn barred(text: &str) -> Vec<String> {
    visible(text).lines().map(|line| format!("  | {line}")).collect()
}

fn looking(look: Look, lines: Vec<String>) -> impl Iterator<Item = (Look, String)> {
    lines.into_iter().map(move |line| (look, line))
}

fn summary(request: &ApprovalRequest) -> Vec<String> {
    let text = visible(&request.action_summary);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let mut lines = vec![format!("? {first}")];
    lines.extend(barred(rest));
    lines
}

/// Returns the name of the agent that asks, if it has one.
pub(crate) fn asker(request: &ApprovalRequest) -> Option<String> {
    let name = visible(&request.agent_name);
    (!name.is_empty() && name != UNNAMED).then_some(name)
}

/// The name of an agent without a name.
const UNNAMED: &str = "agent";

/// Returns further facts about the question.
fn about(request: &ApprovalRequest) -> Vec<(Look, String)> {
    let mut lines = Vec::new();
    let run = request.asker().map(|below| visible(&below.run.to_string()));
    let asker = match (asker(request), run) {
        (Some(agent), Some(run)) => Some(format!("{agent} in {run}, a child run of this run")),
        (None, Some(run)) => Some(format!("{run}, a child run of this run")),
        (agent, None) => agent,
    };
    lines.extend(asker.map(|asker| (Look::Dim, format!("  asked by {asker}"))));
    for (path, _) in changes(request).filter(|(_, diff)| diff.is_none()) {
        let path = visible_line(path);
        lines.push((Look::Warning, format!("  {path}: the difference is too large to show")));
    }
    if request.details["preview"]["outside_cwd"] == Json::Bool(true) {
        lines.push((Look::Warning, "  it is outside the working directory".to_owned()));
    }
    lines
}

/// Returns the files that a call would change, each with its difference unless the difference is too large.
pub(crate) fn changes(request: &ApprovalRequest) -> impl Iterator<Item = (&str, Option<&str>)> {
    let changes = request.details["preview"]["changes"].as_array();
    changes.into_iter().flatten().map(|c| (c["path"].as_str().unwrap_or_default(), c["diff"].as_str()))
}

fn differences(request: &ApprovalRequest) -> Vec<String> {
    changes(request).filter_map(|(_, diff)| diff).flat_map(barred).collect()
}

/// Returns the texts from which the path of a changed file comes, in words.
pub(crate) fn sources_of_path(sources: &[ArgumentSource], path: &str) -> Vec<String> {
    let names_it = |found: &&ArgumentSource| {
        found.words.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    sources.iter().filter(names_it).map(|found| provenance::in_words(&found.source)).collect()
}

/// Returns the arguments by name: as JSON, or line by line for text with several lines. Below each argument stand the
/// texts from which its words come.
pub(crate) fn arguments(request: &ApprovalRequest, sources: &[ArgumentSource]) -> Vec<String> {
    let Some(arguments) = request.details.get("arguments") else { return Vec::new() };
    let Some(named) = arguments.as_object() else { return barred(&arguments.to_string()) };
    let mut lines = Vec::new();
    for (name, value) in named {
        let found = sources.iter().filter(|found| found.argument == *name);
        let name = visible_line(name);
        match value.as_str().filter(|text| text.contains('\n')) {
            Some(text) => {
                lines.push(format!("  {name}:"));
                lines.extend(barred(text));
                if text.ends_with('\n') {
                    lines.push("  | (and a line break)".to_owned());
                }
            }
            None => lines.push(format!("  {name}: {}", visible(&value.to_string()))),
        }
        lines.extend(found.map(|found| {
            let source = provenance::in_words(&found.source);
            match value.is_string() {
                true => format!("    {source}"),
                false => format!("    \"{}\" {source}", one_line(&found.words, WORDS)),
            }
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use archon::{
        types::{Message, PromptSource, Record, RecordBody, Timestamp},
        views::TextSources,
    };
    use archon_testkit::{Chance, cases, first_seed};
    use serde_json::json;

    use super::*;

    fn asks(summary: &str, details: Json) -> ApprovalRequest {
        ApprovalRequest::new("approval_1", summary, details)
    }

    fn text(lines: &[(Look, String)]) -> String {
        lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    fn bash(command: &str) -> ApprovalRequest {
        asks("Run bash", json!({ "tool": "bash", "arguments": { "command": command } }))
    }

    fn brief(request: &ApprovalRequest) -> Shown {
        super::brief(request, &[])
    }

    fn whole(request: &ApprovalRequest) -> Vec<(Look, String)> {
        super::whole(request, &[])
    }

    // spec: AP-05
    #[test]
    fn question_names_the_source_below_each_argument_that_has_one() {
        let message = Message::user("Copy ./notes.txt and the rest.\u{202e}", Timestamp::default()).into();
        let body = RecordBody::MessageAdded { message, source: PromptSource::Prompt };
        let mut sources = TextSources::default();
        sources.apply(&"run_1".into(), &Record { seq: 0, at: Timestamp::default(), body });
        let source = "from your message: \"Copy ./notes.txt and the rest.\\u{202e}\"";
        let shown = |arguments: Json, changes: Json| {
            let preview = json!({ "changes": changes });
            let request = asks("Copy", json!({ "arguments": arguments, "preview": preview }));
            let found = sources.of_request(&request);
            (text(&super::brief(&request, &found).lines), text(&super::whole(&request, &found)))
        };
        let arguments = json!({ "from": "./notes.txt", "all": ["the rest", "x"], "to": "elsewhere" });
        let lines = format!(
            "? Copy\n  from: \"./notes.txt\"\n    {source}\n  all: [\"the rest\",\"x\"]\n    \"the rest\" {source}\n  to: \"elsewhere\""
        );
        assert_eq!(shown(arguments.clone(), json!([])), (lines.clone(), lines));
        // The difference is shown in place of the arguments.
        let (brief, _) = shown(
            arguments,
            json!([{ "path": "notes.txt", "diff": "+x\n" }, { "path": "otes.txt", "diff": "+y\n" }]),
        );
        assert_eq!(brief, format!("? Copy\n  notes.txt: {source}\n  | +x\n  | +y"));
    }

    // spec: AP-05, AP-13
    #[test]
    fn question_brief_is_cut_with_a_mark_and_whole_is_complete() {
        let harmless = "true;".repeat(900);
        let request = bash(&format!("{harmless} rm -rf ."));
        let shown = brief(&request);
        assert!(!shown.is_whole && !text(&shown.lines).contains("rm -rf"), "{shown:?}");
        let mark = text(&shown.lines).lines().last().unwrap_or_default().to_owned();
        // `  command: ` and two quotes are shown as well.
        assert_eq!(
            mark,
            "  ... 522 more characters not shown: `v` shows all, and later `archon approvals show approval_1`"
        );
        assert!(text(&whole(&request)).contains(&format!("{harmless} rm -rf .\"")));
        let shown = brief(&bash("ls"));
        assert_eq!((shown.is_whole, text(&shown.lines).as_str()), (true, "? Run bash\n  command: \"ls\""));
    }

    #[test]
    fn question_names_the_asking_agent_if_it_has_a_name() {
        let mut request = bash("ls");
        request.agent_name = "ada\u{1b}[2K".to_owned();
        for shown in [text(&brief(&request).lines), text(&whole(&request))] {
            assert_eq!(shown, "? Run bash\n  asked by ada\\u{1b}[2K\n  command: \"ls\"");
        }
        let call = archon::types::CallId::new(archon::types::CommandId(0), 0);
        let mut below = request.clone().from_below("run_2".into(), call);
        let asked_by =
            |request: &ApprovalRequest| text(&brief(request).lines).lines().nth(1).unwrap().to_owned();
        assert_eq!(asked_by(&below), "  asked by ada\\u{1b}[2K in run_2, a child run of this run");
        below.agent_name = "agent".to_owned();
        assert_eq!(asked_by(&below), "  asked by run_2, a child run of this run");
    }

    // spec: AP-13, CL-09
    #[test]
    fn question_brief_of_a_long_diff_counts_the_missing_lines() {
        let diff: String = (1..=100).map(|n| format!("+line {n}\n")).collect();
        let preview =
            json!({ "summary": "x", "changes": [{ "path": "a", "diff": diff, "added": 100, "removed": 0 }] });
        let request =
            asks("Create 'a'", json!({ "tool": "write_file", "arguments": {}, "preview": preview }));
        let shown = brief(&request);
        assert!(!shown.is_whole);
        assert!(
            text(&shown.lines).contains("  | +line 60\n  ... 481 more characters (40 lines) not shown"),
            "{shown:?}"
        );
        assert!(text(&whole(&request)).ends_with("  | +line 100"));
        // The difference was too large to be made, so the arguments are shown.
        let preview = json!({ "summary": "x", "changes": [{ "path": "a", "added": 0, "removed": 0 }] });
        let request = asks("Overwrite 'a'", json!({ "arguments": { "content": "new" }, "preview": preview }));
        assert_eq!(
            text(&brief(&request).lines),
            "? Overwrite 'a'\n  a: the difference is too large to show\n  content: \"new\""
        );
        let preview = json!({ "summary": "x", "changes": [{ "path": "a\n? Run `ls`" }] });
        let request = asks("Overwrite", json!({ "arguments": {}, "preview": preview }));
        let shown = "? Overwrite\n  a\\n? Run `ls`: the difference is too large to show";
        assert_eq!(text(&head(&request)), shown);
    }

    // spec: AP-05
    #[test]
    fn question_escapes_control_characters_and_imitated_prompts() {
        let hidden = "echo ok\u{1b}[2K\r\u{202e}fr- mr\u{200b}\n  y once\n> y";
        let mut request = bash(hidden);
        request.action_summary = format!("Run `{hidden}`");
        for shown in [text(&brief(&request).lines), text(&whole(&request))] {
            assert!(!shown.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{shown:?}");
            assert!(shown.contains("echo ok\\u{1b}[2K\\u{d}\\u{202e}fr- mr\\u{200b}"), "{shown}");
            assert!(
                shown.lines().all(|line| line.starts_with("? Run")
                    || line.starts_with("  | ")
                    || line == "  command:"),
                "{shown}"
            );
        }
        let (first, is_cut) = first_line(&request);
        assert!(is_cut && first.ends_with(" ...") && !first.contains('\n'), "{first}");
    }

    // spec: AP-05, AP-13
    #[test]
    fn question_brief_shown_plus_missing_lines_equal_the_whole() {
        for seed in first_seed()..first_seed() + cases(200, 10_000) {
            let mut chance = Chance(seed);
            let lines: Vec<String> = (0..chance.below(150))
                .map(|_| {
                    let most = if chance.percent(5) { 6_000 } else { 80 };
                    "é".repeat(1 + usize::try_from(chance.below(most)).unwrap())
                })
                .collect();
            let count = |lines: &[String]| lines.iter().map(|line| line.chars().count()).sum::<usize>();
            let (shown, missing) = cut(lines.clone());
            let said = missing.map_or((0, 0), |missing| (missing.characters, missing.lines));
            assert_eq!(
                (count(&shown) + said.0, shown.len() + said.1),
                (count(&lines), lines.len()),
                "seed {seed}"
            );
            assert!(shown.len() <= LINES && count(&shown) <= CHARACTERS, "seed {seed}");
            assert!(
                shown.iter().zip(&lines).all(|(shown, line)| line.starts_with(shown.as_str())),
                "seed {seed}"
            );
        }
    }
}
