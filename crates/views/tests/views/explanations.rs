//! The answer of a run with the results that it has words of.

use std::sync::Arc;

use archon_types::{
    Answer, CallId, CommandId, Content, Json, OutcomeStatus, PromptSource, Record, RecordBody, ToolCall,
    ToolResult,
};
use archon_views::Explanation;
use serde_json::json;

use crate::{
    samples::{answered, ended, finished, prompted, started},
    support::at,
};

const PATHS: [&str; 3] = ["a.txt", "b.txt", "c.txt"];

/// The log of a run that reads three files, with these results and this end.
fn log(results: [ToolResult; 3], end: RecordBody) -> Vec<Arc<Record>> {
    let read = |path: &str| Content::from(ToolCall::new("c", "read_file", json!({ "path": path })));
    let mut bodies = vec![
        RecordBody::RunStarted(Box::new(started())),
        prompted("How high was the water in Bremen in 2024?", PromptSource::Prompt),
        answered(0, PATHS.map(read).to_vec()),
    ];
    let ends = (0..).zip(results).map(|(index, result)| {
        let call = CallId::new(CommandId(0), index);
        RecordBody::ToolCallFinished { call, result: Arc::new(result) }
    });
    bodies.extend(ends);
    bodies.push(end);
    records(bodies)
}

fn records(bodies: Vec<RecordBody>) -> Vec<Arc<Record>> {
    (0..).zip(bodies).map(|(seq, body)| Arc::new(Record { seq, at: at(seq), body })).collect()
}

fn results() -> [ToolResult; 3] {
    [
        ToolResult::success("Bremen, 2024: nothing\nwas read"),
        ToolResult::success("{\"level\":312}"),
        ToolResult::error("312 is not there"),
    ]
}

fn explain(results: [ToolResult; 3], answer: &str) -> Json {
    json!(Explanation::of(&log(results, finished(answer))).unwrap())
}

// spec: EX-13
#[test]
fn explanation_has_the_successful_results_with_words_that_no_message_has() {
    let explanation = Explanation::of(&log(results(), finished("In 2024, it was 312."))).unwrap();
    let evidence = json!([{ "source": "read_file b.txt", "result": "{\"level\":312}", "record": 4 }]);
    assert_eq!(
        json!(explanation),
        json!({ "conclusion": "In 2024, it was 312.", "evidence": evidence, "is_quoted": true })
    );
    assert_eq!(
        explanation.paragraph(),
        "The answer is \"In 2024, it was 312.\". It has words of these results: \
         read_file b.txt gave \"{\"level\":312}\"."
    );
}

// spec: EX-13
#[test]
fn explanation_of_an_answer_without_such_words_has_all_successful_results_and_says_so() {
    let all = explain(results(), "I do not know.");
    let sources: Vec<_> = all["evidence"].as_array().unwrap().iter().map(|found| &found["source"]).collect();
    assert_eq!(sources, ["read_file a.txt", "read_file b.txt"]);
    assert_eq!(all["is_quoted"], false);
    assert_eq!(all["evidence"][0]["result"], "Bremen, 2024: nothing was read");

    let none = [(); 3].map(|()| ToolResult::error("no such file"));
    let none = Explanation::of(&log(none, finished("312."))).unwrap();
    assert!(none.evidence.is_empty() && none.paragraph().contains("No tool gave a result"), "{none:?}");
}

// spec: EX-13
#[test]
fn explanation_names_the_child_run_of_a_result_and_the_arguments_that_a_person_changed() {
    let mut of_child = results();
    of_child[1].child_run = Some("run_2".into());
    assert_eq!(explain(of_child, "It was 312.")["evidence"][0]["run"], "run_2");

    let call = CallId::new(CommandId(0), 1);
    let answer = Answer::Edit { arguments: json!({ "path": "d.txt" }) };
    let mut bodies: Vec<_> =
        log(results(), finished("312")).iter().map(|record| record.body.clone()).collect();
    bodies.insert(3, RecordBody::ApprovalAnswered { call, answer });
    let edited = Explanation::of(&records(bodies)).unwrap();
    assert_eq!((edited.evidence[0].source.as_str(), edited.evidence[0].record), ("read_file d.txt", 5));
}

#[test]
fn explanation_of_a_run_that_did_not_finish_is_none() {
    for end in [ended(OutcomeStatus::Failed, Some("312")), RecordBody::Resumed, finished("")] {
        assert_eq!(Explanation::of(&log(results(), end)), None);
    }
}
