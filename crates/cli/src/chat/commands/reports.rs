//! `/cost`, `/context` and `/status`: what the conversation has used, and what it works with.

use archon::{
    RunError,
    react_loop::context_report,
    types::{SessionId, Spending, format_money},
};
use archon_terminal::Meter;

use super::Situation;
use crate::{
    app::App,
    chat::{history_of_session, surroundings},
    failure::Failure,
    lists::models::grouped,
    text::visible_path,
    toolset,
};

/// The share of the window, in percent, from which a message comes with a warning.
const HIGH: u64 = 90;
/// The share of the window, in percent, from which the next request hardly fits.
const CRITICAL: u64 = 95;

/// Prints the tokens and the money of the conversation and of its last run.
pub(super) fn cost(situation: &Situation<'_>) {
    let (app, meter) = (situation.app, situation.meter);
    app.note(format!("this conversation  {}", spending(meter, meter.spent)));
    let limit = meter.max_cost_micros.map(|most| format!(" of at most ${}", format_money(most)));
    app.note(format!("its last run       {}{}", spending(meter, meter.run_spent), limit.unwrap_or_default()));
    if let Some(session) = situation.session {
        app.hint(format!(
            "of all its runs, also those that are not shown: archon sessions metrics {session}"
        ));
    }
}

fn spending(meter: &Meter, spent: Spending) -> String {
    let tokens = grouped(spent.tokens);
    match meter.has_price {
        true => format!("{tokens} tokens, ${}", format_money(spent.cost_micros)),
        false => format!("{tokens} tokens, at a price that is not known"),
    }
}

/// Prints how full the context window is, and what fills it.
pub(super) fn context(situation: &Situation<'_>) {
    let meter = situation.meter;
    let text = match (meter.window, meter.share()) {
        (Some(window), Some(share)) => {
            let (filled, window) = (grouped(meter.filled), grouped(window));
            format!("{share} % of the context window: {filled} of {window} tokens")
        }
        (Some(window), None) => format!("the context window has {} tokens and is empty", grouped(window)),
        (None, _) => "the context window is not known before the first message".to_owned(),
    };
    situation.app.note(text);
    let (app, session) = (situation.app.clone(), situation.session.cloned());
    situation.spawn(async move {
        if let Some(session) = session {
            parts(&app, &session).await?;
        }
        app.hint("a conversation is compacted by itself before the window is full; /compact does it now");
        Ok(())
    });
}

/// Prints the parts of the next request of the agent, as estimated by its tokenizer.
async fn parts(app: &App, session: &SessionId) -> Result<(), Failure> {
    let history = history_of_session::read(&app.runs()?, session).await?;
    // A line of the person says nothing about the agent.
    let Some(started) = history.last_loop() else { return Ok(()) };
    let report = context_report(&app.journal(), &started.run).await.map_err(RunError::from)?;
    for (part, tokens) in [
        ("instructions", report.system),
        ("tools", report.tools),
        ("memories", report.memory),
        ("messages", report.messages),
        ("results of tools", report.tool_results),
    ] {
        app.note(format!("  {part:<16}  {:>9} tokens", grouped(tokens)));
    }
    if let Some(free) = report.free() {
        app.note(format!("  {:<16}  {:>9} tokens", "free", grouped(free)));
    }
    Ok(())
}

/// Returns the warning for a message that is sent while the context window is nearly full.
pub(crate) fn warning(meter: &Meter) -> Option<String> {
    let share = meter.share().filter(|share| *share > HIGH)?;
    let what = match share > CRITICAL {
        true => "the next request hardly fits, so older parts are compacted now",
        false => "older parts are compacted soon",
    };
    Some(format!("the context window is {share} % full: {what}; /clear begins a new conversation"))
}

/// Prints what the conversation works with.
pub(super) fn status(situation: &Situation<'_>) {
    let Situation { app, session, memory, .. } = situation;
    let none = || "none".to_owned();
    let rows = [
        ("archon", env!("CARGO_PKG_VERSION").to_owned()),
        ("model", Some(situation.model.to_owned()).filter(|model| !model.is_empty()).unwrap_or_else(none)),
        ("session", session.map_or_else(|| "begins with the first message".to_owned(), ToString::to_string)),
        ("folder", toolset::folder(app).map_or_else(none, |folder| visible_path(&folder))),
        (
            "branch",
            toolset::folder(app).and_then(|folder| surroundings::branch(&folder)).unwrap_or_else(none),
        ),
        ("memory", memory.map_or_else(none, ToString::to_string)),
        (
            "sandbox",
            if situation.is_sandboxed { "commands are sandboxed" } else { "no commands run here" }.to_owned(),
        ),
        ("data", visible_path(&app.data_dir)),
    ];
    rows.iter().for_each(|(name, value)| app.note(format!("{name:<9}{value}")));
    app.hint("archon doctor checks this machine");
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: CL-13
    #[test]
    fn warning_comes_only_with_a_window_that_is_nearly_full() {
        let of = |filled| {
            let mut meter = Meter::default();
            (meter.window, meter.filled) = (Some(1_000), filled);
            warning(&meter)
        };
        assert_eq!(of(0), None);
        assert_eq!(of(900), None);
        assert!(of(910).is_some_and(|text| text.contains("91 %") && text.contains("soon")));
        assert!(of(960).is_some_and(|text| text.contains("96 %") && text.contains("hardly fits")));
        assert_eq!(warning(&Meter::default()), None, "a window that is not known");
    }
}
