//! An answer as a value of a type: the model is asked for its form, and told what does not fit until it does. Without a
//! network: the model is scripted, and wrong at first. `cargo run -p archon-agents --example typed`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use archon::{
    Archon, FailureKind, RunError,
    providers::ScriptedProvider,
    schemars::{self, JsonSchema},
};

/// Where to, and for how long.
#[derive(serde::Deserialize, JsonSchema)]
struct Trip {
    city: String,
    /// Nights included.
    days: u8,
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let model =
        ScriptedProvider::texts([r#"{"city": "Paris", "days": "three"}"#, r#"{"city": "Paris", "days": 3}"#]);
    let agent = Archon::builder().provider(Arc::new(model), "scripted").build()?;
    match agent.run_typed::<Trip>("Plan a trip to Paris").await {
        Ok(trip) => {
            let Trip { city, days } = trip.value;
            println!("{days} days in {city}, after {} turns", trip.outcome.turns);
        }
        // The error says what did not fit, and where.
        Err(error) if error.kind() == Some(FailureKind::StructuredOutput) => println!("{error}"),
        Err(error) => return Err(error),
    }
    Ok(())
}
