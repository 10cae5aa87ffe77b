//! Commands beside a long history: what lists runs or looks for questions costs as much beside thousands of runs as
//! beside ten.

use std::{sync::Arc, time::Duration};

use archon::{
    store::JsonlJournal,
    types::{Durability, Journal, OpenMode, Record, RecordBody, RunFilter, RunId, SessionId},
};
use archon_testkit::{MockServer, cases, instructions, may_skip};

use crate::setup::{Place, answer, asks_for};

/// Runs of the short history.
const FEW: usize = 10;

/// The records of a run that ended, and of one that waits for a person.
async fn models() -> [Vec<Arc<Record>>; 2] {
    let write = asks_for("write_file", r#"{"path": ".vscode/tasks.json", "content": "{}"}"#);
    let server = MockServer::start([answer("Done."), write]).await;
    let place = Place::with_server(&server);
    assert_eq!(place.archon("run", &["Hello."]).await.code, Some(0));
    let waits = place.archon("run --ask-later --tools write_file", &["Write."]).await;
    assert_eq!(waits.code, Some(3), "{waits:?}");
    let journal = JsonlJournal::new(place.data());
    let heads = journal.list(&RunFilter::all()).await.unwrap();
    let [waiting, ended] = &heads[..] else { panic!("{heads:?}") };
    [journal.read(&ended.run_id).await.unwrap(), journal.read(&waiting.run_id).await.unwrap()]
}

/// A place with so many runs, ten minutes apart, and others among them that wait.
async fn history([ended, waiting]: &[Vec<Arc<Record>>; 2], runs: usize, wait: usize) -> Place {
    let place = Place::new();
    let journal = JsonlJournal::open(place.data()).unwrap();
    let mut waits = 0;
    for n in 0..runs {
        copy(&journal, ended, &format!("run_{n}"), 2 * n).await;
        if waits < wait && n * (wait + 1) >= (waits + 1) * runs {
            copy(&journal, waiting, &format!("waiting_{n}"), 2 * n + 1).await;
            waits += 1;
        }
    }
    // The first list makes the index.
    journal.list(&RunFilter::all().limit(1)).await.unwrap();
    place
}

async fn copy(journal: &JsonlJournal, of: &[Arc<Record>], run: &str, place: usize) {
    let later = Duration::from_secs(300 * place as u64);
    let records = of.iter().map(|record| {
        let mut record = (**record).clone();
        record.at = record.at + later;
        if let RecordBody::RunStarted(started) = &mut record.body {
            (started.run, started.session) = (RunId::new(run), SessionId::new(format!("s_{run}")));
        }
        Arc::new(record)
    });
    let records: Vec<_> = records.collect();
    let mut open = journal.open(&RunId::new(run), OpenMode::Create).await.unwrap();
    open.writer.append(&records, Durability::Buffered).await.unwrap();
}

/// Instructions of a command above those of its start, for each line that it prints.
fn cost(place: &Place, line: &str, start: u64) -> Option<u64> {
    let (count, printed) = instructions(place.command(line, &[]).as_std())?;
    let lines = printed.lines().count() as u64;
    assert!(lines > 0, "{line} prints nothing");
    Some((count - start) / lines)
}

/// With so many runs that wait.
async fn check(line: &str, wait: usize) {
    let models = models().await;
    let nothing = Place::new();
    let Some((start, _)) = instructions(nothing.command(line, &[]).as_std()) else {
        assert!(may_skip(), "costs of a history are not counted: install `valgrind`");
        eprintln!("SKIP: costs of a history are not counted: there is no `valgrind`");
        return;
    };
    let many = usize::try_from(cases(400, 4_000)).unwrap();
    let few = cost(&history(&models, FEW, wait).await, line, start).unwrap();
    let most = cost(&history(&models, many, wait).await, line, start).unwrap();
    let ratio = most as f64 / few as f64;
    eprintln!(
        "{line}: {few} instructions a line beside {FEW} runs, {most} beside {many}: {ratio:.2} times; start {start}"
    );
    assert!(ratio <= 1.2, "{line}: {ratio:.2} times the instructions, of 1.2 that are allowed");
}

#[tokio::test]
async fn runs_list_beside_a_long_history_costs_as_beside_a_short_one() {
    check("runs list", 0).await;
}

#[tokio::test]
async fn approvals_list_beside_a_long_history_costs_as_beside_a_short_one() {
    check("approvals list", 3).await;
}
