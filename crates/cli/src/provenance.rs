//! Finds where the arguments of a call come from, such as a message or the result of a tool, for a person who decides
//! about the call.

use std::{collections::HashMap, sync::Arc};

use archon::{
    types::{ApprovalRequest, Journal, PendingApproval, Record, RecordBody, RunFilter},
    views::{ArgumentSource, SourceLogs, TextSource, TextSources},
};

use crate::text::visible;

/// The number of runs in which the run of a question is looked for: those that were written last.
const LATEST: usize = 4;

/// Returns the texts from which the arguments of an open question come. They are found in the log of the run that asks,
/// and in the logs of the runs before it. Without a readable log, the result is empty.
pub(crate) async fn of_pending(journal: &dyn Journal, pending: &PendingApproval) -> Vec<ArgumentSource> {
    let log = match journal.read(pending.asker()).await {
        Ok(log) => log,
        // An agent without a log asks in that of its caller.
        Err(_) => journal.read(&pending.run).await.unwrap_or_default(),
    };
    texts(journal, log).await.of_request(&pending.request)
}

/// Does the same as [`of_pending`] for the questions that a run of this process asks now. Returns the sources by the
/// ids of the questions.
pub(crate) async fn of_questions(
    journal: &dyn Journal,
    requests: &[ApprovalRequest],
) -> HashMap<String, Vec<ArgumentSource>> {
    let Some(first) = requests.iter().find(|request| request.details["arguments"].is_object()) else {
        return HashMap::new();
    };
    let Some(log) = log_of(journal, &first.request_id).await else { return HashMap::new() };
    let sources = texts(journal, log).await;
    let found = |request: &ApprovalRequest| (request.request_id.clone(), sources.of_request(request));
    requests.iter().map(found).collect()
}

/// Describes a source for a person, such as `from your message: "…"`.
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
    let mut logs = SourceLogs::new(log);
    while let Some(run) = logs.missing().cloned() {
        logs.add(journal.read(&run).await.unwrap_or_default());
    }
    logs.into_sources()
}
