//! The 20 turns of plain talk: whether they are answered in words, without a tool.

use anyhow::Result;
use archon::types::RecordBody;
use archon::{Archon, Outcome};
use serde::Deserialize;

use crate::{Row, mark, read, says, table};

/// The rows of the table, and the percentage that each must reach.
const REQUIRED: [(&str, usize); 2] = [("talk without a tool", 90), ("fitting words", 75)];

#[derive(Deserialize)]
struct Turns {
    turns: Vec<Turn>,
}

/// A turn; `about` in the file says what the fields mean.
#[derive(Deserialize)]
struct Turn {
    id: String,
    turn: String,
    answer: Option<String>,
}

/// Runs each turn and prints what came of it; returns what missed its share.
pub(crate) async fn measure(agent: &Archon, verbose: bool) -> Result<Vec<String>> {
    let turns: Turns = read("talk.json")?;
    let (mut without, mut fitting) = (0, 0);
    for Turn { id, turn, answer } in &turns.turns {
        let outcome = Outcome::of_result(agent.run(turn).await)?;
        let records = agent.journal().read(&outcome.run).await?;
        let calls = records.iter().filter_map(|record| match &record.body {
            RecordBody::ModelCallFinished { message, .. } => {
                Some(message.tool_calls().cloned().collect::<Vec<_>>())
            }
            _ => None,
        });
        let called: Vec<String> =
            calls.flatten().map(|call| format!("{} {}", call.name, call.arguments)).collect();
        let said = outcome.last_text().unwrap_or_default().trim();
        let fits = match answer {
            Some(words) => words.split('|').any(|word| says(said, word)),
            None => !said.is_empty(),
        };
        (without, fitting) = (without + usize::from(called.is_empty()), fitting + usize::from(fits));
        println!("{id}  no tool {}  words {}  {turn}", mark(called.is_empty()), mark(fits));
        if verbose || !called.is_empty() || !fits {
            println!("     called: {}\n     said: {}", called.join(", "), said.replace('\n', "\\n"));
        }
    }
    let counts = REQUIRED.into_iter().zip([without, fitting]);
    let of = turns.turns.len();
    Ok(table(&counts.map(|((what, required), right)| Row { what, of, right, required }).collect::<Vec<_>>()))
}
