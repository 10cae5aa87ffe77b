//! What Archon promises, tested across its crates. Each file is one promise.

mod kill;
mod live;
mod scenarios;
mod wire;
