//! An agent with a tool of its own: `cargo run -- "How many words has: to be or not to be"`.

#[cfg(test)]
mod tests;

use archon::{Archon, ArchonBuilder, RunError, tool};

/// The model, unless the variable `ARCHON_MODEL` names another one as `PROVIDER:MODEL`.
const MODEL: &str = "ollama:qwen3";

/// Counts the words of a text.
#[tool(read_only)]
async fn count_words(
    /// The text, word for word.
    text: String,
) -> usize {
    text.split_whitespace().count()
}

/// Gives an agent its instructions and tools, whatever its model is.
fn equip(agent: ArchonBuilder) -> ArchonBuilder {
    agent.system("Count with the tool, never in your head. Answer in one sentence.").tool(count_words)
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let model = std::env::var("ARCHON_MODEL").unwrap_or_else(|_| MODEL.to_owned());
    let task: Vec<String> = std::env::args().skip(1).collect();
    let agent = equip(Archon::builder().model(model)).build()?;
    println!("{}", agent.run(task.join(" ")).await?.into_text()?);
    Ok(())
}
