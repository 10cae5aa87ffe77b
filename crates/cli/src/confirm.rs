//! Asks a person about a plan: shows it, and takes an approval, a rejection, an edited plan, or a later
//! decision.

use std::{io, path::Path, process::Command, sync::Arc};

use archon::{
    planner::{
        PlanFormat, PlanMachine, Reading, fold, open_questions, plan_of_json, read_plan, render, show_diff,
    },
    types::{Answer, ApprovalRequest, CallId, Json, QuestionKind, Record, RunId, Task},
};

use crate::{
    app::App,
    failure::Failure,
    output::Look,
    question::{barred, cut},
    text::{one_line, visible},
};

/// The maximum number of shown characters of a question.
const SHOWN: usize = 400;

/// Shows the plan of an existing run, if the run waits for the plan's approval.
pub(crate) fn show(app: &App, records: &[Arc<Record>]) {
    let Some(machine) = fold(records).filter(|_| !app.json) else { return };
    if open_questions(records).iter().any(|(call, _)| machine.node(*call).is_none()) {
        let text = match machine.proposal() {
            Some((diff, _)) => visible(&show_diff(diff)),
            None => visible(&render(&machine.task(), PlanFormat::Text)),
        };
        text.lines().for_each(|line| app.output.note(Look::Plain, format!("  {line}")));
    }
}

/// Shows a question and takes the answer; `None` if no person can be asked, or if the person decides later.
pub(crate) async fn ask(
    app: &App,
    machine: &PlanMachine,
    call: CallId,
    request: &ApprovalRequest,
) -> Result<Option<Answer>, Failure> {
    let is_plan = machine.node(call).is_none();
    let proposal = machine.proposal().filter(|_| is_plan);
    let result = || barred(request.details["result"].as_str().filter(|_| !is_plan).unwrap_or_default());
    let (shown, missing) = cut(result());
    if !app.json {
        app.output.note(Look::Warning, visible(&request.action_summary));
        let change = proposal.as_ref().map(|(diff, _)| visible(&show_diff(diff))).unwrap_or_default();
        change.lines().for_each(|line| app.output.note(Look::Plain, format!("  {line}")));
        print(app, shown);
        if let Some(missing) = missing {
            app.output.note(Look::Warning, format!("  ... {missing} not shown: `v` shows all"));
        }
    }
    let task = proposal.map_or_else(|| machine.task(), |(_, task)| task);
    if !app.can_ask() {
        return Ok(None);
    }
    loop {
        let edit = if is_plan { "  [e]dit" } else { "" };
        let view = if missing.is_some() { "  [v]iew all" } else { "" };
        app.output.note_piece(Look::Plain, &format!("[y]es  [n]o{edit}{view}  Enter: decide later\n> "));
        let Some(line) = line().await else { return Ok(None) };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(Answer::Approve)),
            "n" | "no" => return Ok(Some(Answer::Cancel { reason: "declined at the terminal".to_owned() })),
            "" => return Ok(None),
            "v" | "view" => print(app, result()),
            "e" | "edit" if is_plan => match edited_by_hand(app, &task) {
                Ok(answer) => return Ok(Some(answer)),
                Err(failure) => app.output.failure(&failure),
            },
            _ => {}
        }
    }
}

fn print(app: &App, lines: Vec<String>) {
    lines.iter().for_each(|line| app.output.note(Look::Plain, line));
}

/// Explains the ways to answer later.
pub(crate) fn print_how_to_answer(app: &App, run: &RunId, request: &ApprovalRequest) {
    if app.json {
        return;
    }
    if !app.output.asks {
        let what = one_line(&request.action_summary, SHOWN);
        app.output.note(Look::Warning, format!("no person can be asked here, so the run waits: {what}"));
    }
    for (what, how) in [("approve with", "approve"), ("reject with", "reject")] {
        app.output.note(Look::Plain, format!("{what}: archon plan {how} {run}"));
    }
    if request.kind == QuestionKind::InDoubt {
        let reply = format!("archon approvals reply {} TEXT", request.request_id);
        app.output.note(Look::Plain, format!("if the call has taken effect, give its result with: {reply}"));
    }
    if request.kind == QuestionKind::FailedStep {
        let reply = format!("archon approvals reply {}", request.request_id);
        app.output.note(Look::Plain, format!("give its result yourself with: {reply} TEXT"));
        app.output.note(Look::Plain, format!("continue without a result with: {reply} \"\""));
    }
}

/// Reads a line from standard input; `None` at the end of the input, or if Ctrl-C comes first.
async fn line() -> Option<String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).ok().filter(|read| *read > 0).map(|_| line)
    });
    tokio::select! {
        line = read => line.ok().flatten(),
        _ = tokio::signal::ctrl_c() => None,
    }
}

/// Lets the person change the plan in an editor.
fn edited_by_hand(app: &App, task: &Task) -> Result<Answer, Failure> {
    let Some(editor) = app.env("VISUAL").or_else(|| app.env("EDITOR")) else {
        return Err(Failure::usage(
            "no editor is set",
            "set EDITOR; or decide later, and then: archon plan approve RUN --edit FILE",
        ));
    };
    let failed =
        |what: &str, e: io::Error| Failure::failed(format!("cannot {what}: {e}"), "set another EDITOR");
    let place = app.data_dir.join(format!("plan-{}.json", std::process::id()));
    std::fs::write(&place, text_of(task)).map_err(|e| failed("write the plan for the editor", e))?;
    let succeeded = edit(editor, &place);
    let text = std::fs::read_to_string(&place);
    let _ = std::fs::remove_file(&place);
    match succeeded.map_err(|e| failed("start the editor", e))? {
        true => edited(task, &text.map_err(|e| failed("read the edited plan", e))?),
        false => Err(Failure::failed("the editor failed", "the plan is unchanged")),
    }
}

/// Opens the file in the editor, and waits until the editor ends; true if the editor succeeded. `editor` may
/// contain arguments.
fn edit(editor: &str, place: &Path) -> io::Result<bool> {
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    Ok(Command::new(program).args(words).arg(place).status()?.success())
}

fn text_of(task: &Task) -> String {
    let plan = serde_json::json!({ "goal": task.goal, "subtasks": task.subtasks });
    format!("{plan:#}\n")
}

/// Parses an edited plan: a list of subtasks, an object with them, or the output of `archon plan show
/// --format json`. An unchanged plan is an approval.
pub(crate) fn edited(task: &Task, text: &str) -> Result<Answer, Failure> {
    let whole: Result<Json, _> = serde_json::from_str(text);
    let read = match whole.as_ref().ok().and_then(|whole| whole.get("task")) {
        Some(inner) => plan_of_json(inner),
        None => read_plan(text, Reading::Strict),
    };
    let read = read.map_err(|problems| Failure::of_problems(&problems))?;
    let mut new = task.clone().with_subtasks(read.subtasks);
    if let Some(goal) = read.goal {
        new.goal = goal;
    }
    if new == *task {
        return Ok(Answer::Approve);
    }
    let arguments = serde_json::to_value(&new)
        .map_err(|e| Failure::failed(format!("cannot write the edited plan: {e}"), "edit it again"))?;
    Ok(Answer::Edit { arguments })
}

#[cfg(test)]
mod tests {
    use archon::types::SubTask;

    use super::*;

    // spec: PL-24
    #[test]
    fn edited_plan_is_read_in_every_format() {
        let plan = vec![SubTask::new("a", "First"), SubTask::new("b", "Then").after(["a"])];
        let task = Task::new("t", "A goal").with_subtasks(plan);
        assert_eq!(edited(&task, &text_of(&task)).unwrap(), Answer::Approve);
        assert_eq!(edited(&task, &render(&task, PlanFormat::Json)).unwrap(), Answer::Approve);
        let only = r#"[{"id": "a", "description": "Only this", "dependencies": []}]"#;
        let Answer::Edit { arguments } = edited(&task, only).unwrap() else { panic!("it is another plan") };
        let new: Task = serde_json::from_value(arguments).unwrap();
        assert_eq!((new.subtasks.len(), new.goal.as_str(), &new.id), (1, "A goal", &task.id));
        let failure = edited(&task, r#"[{"id": "a"}] and more"#).unwrap_err();
        assert!(failure.what().contains("cannot be followed"), "{failure:?}");
    }
}
