//! The acceptance scenarios of several agents, and of one conversation with several prompts.

use std::sync::Arc;

use archon::{
    Archon, Journal, RunId, RunOptions,
    react_loop::{Elaborate, TokenEfficient},
    store::InMemoryJournal,
    types::{
        ContextConfig, EvaluationStrategy, Message, ModelEvent, RecordBody, TokenCounter, TokenEstimate,
        Usage,
    },
    views::{AgentEvent, AgentEvents, Session},
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

use crate::shared::stage::{Answer, Show, Stage, call};

fn read(request: &archon::types::Request) -> String {
    request.messages.iter().map(|m| m.text()).collect::<Vec<_>>().join("\n")
}

// spec: A-23, S-14
#[tokio::test]
async fn the_second_question_is_understood_from_the_first() {
    let stage = Stage::new(|_, request| match request.messages.iter().last().map(|m| m.text()).as_deref() {
        Some("What is the capital of France?") => FnProvider::text("Paris."),
        Some("What is its population?") if read(request).contains("Paris.") => {
            FnProvider::text("About two million people live in Paris.")
        }
        other => panic!("{other:?}"),
    });
    let (first, show) = stage.play("What is the capital of France?").await;
    assert_eq!(first.last_text(), Some("Paris."));
    let session = show.agent.newest_run(None).await.unwrap().unwrap().session.unwrap();
    let second = show.says("What is its population?", RunOptions::in_session(session)).await;
    assert!(second.last_text().unwrap_or_default().contains("two million"), "{second:?}");
}

fn new_messages(show: &Show) -> Vec<Vec<String>> {
    let mut projection = AgentEvents::new();
    let events = show.sink.events();
    let ends = events.iter().flat_map(|e| projection.push(e)).filter_map(|e| match e {
        AgentEvent::AgentEnd { messages, .. } => Some(messages),
        _ => None,
    });
    ends.map(|m| m.iter().map(|m| m.as_llm().map(Message::text).unwrap_or_default()).collect()).collect()
}

// spec: R-01
#[tokio::test]
async fn a_loop_that_is_started_or_continued_gives_all_its_new_messages() {
    let show = Stage::new(|n, _| match n {
        0 => call("c0", "calculator", json!({"expression": "1 + 1"})),
        1 => FnProvider::text("two"),
        2 => vec![Err(archon::types::ProviderError::Auth("no".into()))],
        _ => FnProvider::text("three"),
    })
    .raise();
    let conversation = show.agent.conversation();
    let watched = || RunOptions::default().watched_by(Arc::new(show.sink.clone()));
    let said = |text: &str| vec![Message::user(text, Default::default()).into()];
    conversation.prompt_with(said("1 + 1?"), watched()).await.unwrap().reply().await.ended();
    conversation.prompt_with(said("1 + 2?"), watched()).await.unwrap().reply().await.ended();
    let last = conversation.continue_with(watched()).await.unwrap().reply().await.ended();
    assert_eq!(last.last_text(), Some("three"));
    let new = new_messages(&show);
    assert_eq!(new[0], ["1 + 1?", "", "2", "two"], "the question, the call, its result, the answer");
    assert_eq!(new[2], ["three"], "who goes on says nothing again");
}

const BUDGET: u64 = 1_000;

/// A long conversation in a small window, and whether every request kept within it.
async fn long_conversation() -> Show {
    let mut context = ContextConfig::new(BUDGET);
    (context.system_prompt_tokens, context.min_interval_ms, context.keep_recent) = (0, 0, 4);
    let stage = Stage::new(|n, _| FnProvider::text(&format!("Answer {n}: {}", "a fact or two. ".repeat(40))));
    let show = stage.with(|b| b.context(Some(context))).raise();
    let conversation = show.agent.conversation();
    for n in 0..12 {
        let mut run = conversation.prompt(format!("Question {n}?")).await.unwrap();
        while futures_util::StreamExt::next(&mut run).await.is_some() {}
        assert!(run.reply().await.ended().is_finished());
    }
    show
}

// spec: A-23, C-02
#[tokio::test]
async fn long_history_is_summarized_within_the_budget() {
    let show = long_conversation().await;
    let requests = show.model.requests();
    assert_eq!(requests.len(), 12);
    let size =
        |messages: &[Arc<Message>]| -> u64 { messages.iter().map(|m| TokenEstimate.count_message(m)).sum() };
    for (n, request) in requests.iter().enumerate() {
        let tokens = size(&request.messages);
        assert!(tokens <= BUDGET, "request {n} takes {tokens} tokens");
        assert!(read(request).contains(&format!("Question {n}?")), "the question is there");
    }
    let last = &requests[11];
    assert!(last.messages.len() < 23, "{}", last.messages.len());
    assert!(last.messages[0].text().contains("Question 0?"), "the first goal survives");
}

/// A model whose answer takes so many tokens.
fn takes(answer: &'static str, output: u64) -> impl Fn(usize, &archon::types::Request) -> Answer {
    move |_, _| {
        let mut events = FnProvider::text(answer);
        if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
            message.usage = Usage { input: 10, output, ..Usage::default() };
        }
        events
    }
}

// spec, S-05
#[tokio::test]
async fn of_two_branches_the_thrifty_or_the_elaborate_one_wins_and_the_session_marks_it() {
    let strategies: [(Arc<dyn EvaluationStrategy>, u32, &str); 2] =
        [(Arc::new(TokenEfficient), 1, "short"), (Arc::new(Elaborate), 0, "a long answer")];
    for (strategy, winner, answer) in strategies {
        let journal = InMemoryJournal::new();
        let agent = |answer, tokens| -> Archon {
            let model = FnProvider::new(takes(answer, tokens));
            let builder = Archon::builder().provider(Arc::new(model), "m").journal(Arc::new(journal.clone()));
            builder.build().unwrap()
        };
        let branches = [agent("a long answer", 100), agent("short", 10)];
        let mut options = RunOptions::default();
        options.run = Some(RunId::new("both"));
        let outcome = agent("unused", 1)
            .parallel(branches, strategy)
            .unwrap()
            .run_with("Which?", options)
            .await
            .unwrap();
        assert_eq!(
            (outcome.choice.selected, outcome.choice.outcome.last_text().unwrap_or_default()),
            (Some(winner), answer)
        );
        let log = journal.read(&RunId::new("both")).await.unwrap();
        assert!(log.iter().any(
            |r| matches!(&r.body, RecordBody::ParallelFinished(choice) if choice.selected == Some(winner))
        ));

        let session = Session::read(&journal, &outcome.session).await.unwrap().unwrap();
        let marked: Vec<(&str, bool)> = session
            .loops
            .iter()
            .filter_map(|l| Some((l.run_id.as_ref()?.as_str(), l.parallel_group.as_ref()?.is_selected)))
            .collect();
        let chosen: Vec<_> = marked.iter().filter(|(_, is_selected)| *is_selected).collect();
        assert_eq!((marked.len(), chosen.len()), (2, 1), "{marked:?}");
        assert_eq!(chosen[0].0, format!("both-{winner}"));
    }
}
