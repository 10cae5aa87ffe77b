//! The sources of the arguments of a call, for a person who decides about the call.

use std::{collections::HashMap, sync::Arc};

use archon::{
    types::{
        ApprovalRequest, CallId, Journal, Origin, PendingApproval, Record, RecordBody, RunFilter, RunStarted,
    },
    views::{ArgumentSource, TextSource, TextSources},
};

use crate::text::visible;

/// The number of the last written runs among which the run of a question is looked for.
const LATEST: usize = 4;
/// The number of records after which no earlier run is read.
const ENOUGH: usize = 2_000;

/// Returns the sources of the arguments of a question, as far as these texts have them.
pub(crate) fn of_request(sources: &TextSources, request: &ApprovalRequest) -> Vec<ArgumentSource> {
    sources.of_arguments(&request.details["arguments"])
}

/// Returns the sources of the arguments of an open question. They are read from the log of the run that asks and from
/// those of the runs before it. Without a readable log there are none.
pub(crate) async fn of_pending(journal: &dyn Journal, pending: &PendingApproval) -> Vec<ArgumentSource> {
    let log = match journal.read(pending.asker()).await {
        Ok(log) => log,
        // An agent without a log asks in that of its caller.
        Err(_) => journal.read(&pending.run).await.unwrap_or_default(),
    };
    of_request(&texts(journal, log).await, &pending.request)
}

/// Does the same as [`of_pending`] for the questions that a run of this process asks now, by the ids of the questions.
pub(crate) async fn of_questions(
    journal: &dyn Journal,
    requests: &[ApprovalRequest],
) -> HashMap<String, Vec<ArgumentSource>> {
    let Some(first) = requests.iter().find(|request| request.details["arguments"].is_object()) else {
        return HashMap::new();
    };
    let Some(log) = log_of(journal, &first.request_id).await else { return HashMap::new() };
    let sources = texts(journal, log).await;
    let found = |request: &ApprovalRequest| (request.request_id.clone(), of_request(&sources, request));
    requests.iter().map(found).collect()
}

/// Returns a source in words.
pub(crate) fn in_words(source: &TextSource) -> String {
    let text = match source {
        TextSource::Message { beginning } => format!("from your message: \"{beginning}\""),
        TextSource::Answer { beginning } => format!("from your answer: \"{beginning}\""),
        TextSource::File { name } => format!("from the attached file {name}"),
        TextSource::ToolResult { tool, .. } if tool.is_empty() => "from the result of a tool".to_owned(),
        TextSource::ToolResult { tool, argument } => format!("from the result of {tool} {argument}"),
        TextSource::Memory => "from a memory".to_owned(),
        TextSource::Instructions => "from the project's instructions".to_owned(),
        _ => "from a message that may not be yours".to_owned(),
    };
    visible(text.trim_end()).replace('\n', "\\n")
}

/// Finds the log with a question that was asked just now.
async fn log_of(journal: &dyn Journal, question: &str) -> Option<Vec<Arc<Record>>> {
    for head in journal.list(&RunFilter::all().limit(LATEST)).await.ok()? {
        let log = journal.read(&head.run_id).await.unwrap_or_default();
        if log.iter().any(|record| has_question(&record.body, question)) {
            return Some(log);
        }
    }
    None
}

fn has_question(body: &RecordBody, question: &str) -> bool {
    matches!(body, RecordBody::ApprovalRequested { request, .. } if request.request_id == question)
}

/// Reads the texts of a log and of the runs before it, until there are enough or a log cannot be read.
async fn texts(journal: &dyn Journal, log: Vec<Arc<Record>>) -> TextSources {
    let (mut logs, mut next, mut count) = (Vec::new(), Some(log), 0);
    while let Some(log) = next.take() {
        count += log.len();
        if count < ENOUGH {
            next = records_before(journal, &log).await;
        }
        logs.push(log);
    }
    let mut sources = TextSources::default();
    for log in logs.iter().rev() {
        if let Some(started) = RunStarted::of(log) {
            log.iter().for_each(|record| sources.apply(&started.run, record));
        }
    }
    sources
}

/// Returns the records that came before a log: those of the run that it continues, or of the run that called it.
async fn records_before(journal: &dyn Journal, log: &[Arc<Record>]) -> Option<Vec<Arc<Record>>> {
    match &RunStarted::of(log)?.origin {
        Origin::Continues { run, records, .. } => {
            let mut before = journal.read(run).await.ok()?;
            before.truncate(usize::try_from(*records).unwrap_or(usize::MAX));
            Some(before)
        }
        Origin::CalledBy { run, call } => {
            let log = journal.read(run).await.ok()?.into_iter();
            Some(log.take_while(|record| !begins(&record.body, *call)).collect())
        }
        _ => None,
    }
}

fn begins(body: &RecordBody, call: CallId) -> bool {
    matches!(body, RecordBody::ToolCallStarted { call: started, .. } if *started == call)
}

#[cfg(test)]
mod tests {
    use archon::{
        store::InMemoryJournal,
        types::{CommandId, Durability, Effect, OpenMode, RunConfig, RunId, Timestamp, ToolResult},
    };

    use super::*;

    async fn stored(
        journal: &InMemoryJournal,
        run: RunId,
        origin: Origin,
        bodies: Vec<RecordBody>,
    ) -> Vec<Arc<Record>> {
        let mut started =
            RunStarted::new(run.clone(), "s".into(), "a".into(), "l".into(), RunConfig::default());
        started.origin = origin;
        let bodies = [RecordBody::RunStarted(Box::new(started))].into_iter().chain(bodies);
        let record = |(seq, body)| Arc::new(Record { seq, at: Timestamp::default(), body });
        let records: Vec<_> = (0..).zip(bodies).map(record).collect();
        let mut open = journal.open(&run, OpenMode::Create).await.unwrap();
        open.writer.append(&records, Durability::Synced).await.unwrap();
        records
    }

    #[tokio::test]
    async fn texts_of_a_called_run_have_of_its_caller_what_came_before_the_call() {
        let journal = InMemoryJournal::new();
        let call = |index| CallId::new(CommandId(0), index);
        let result = |index, text: &str| {
            let result = Arc::new(ToolResult::success(text));
            RecordBody::ToolCallFinished { call: call(index), result }
        };
        let (effect, child_run) = (Effect::default(), Some("child".into()));
        let begins = RecordBody::ToolCallStarted { call: call(1), attempt: 0, effect, child_run };
        let bodies = vec![result(0, "early.txt"), begins, result(2, "later.txt")];
        stored(&journal, "caller".into(), Origin::Prompt, bodies).await;
        let origin = Origin::CalledBy { run: "caller".into(), call: call(1) };
        let log = stored(&journal, "child".into(), origin, Vec::new()).await;
        let sources = texts(&journal, log).await;
        assert!(sources.find("early.txt").is_some());
        assert_eq!(sources.find("later.txt"), None);
    }
}
