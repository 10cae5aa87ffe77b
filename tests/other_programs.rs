//! What Archon promises of other programs: of memories in PostgreSQL, beside the other stores, and of costs that
//! valgrind counts. Where such a program is missing, its tests are ignored.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::process::ExitCode;

mod memory {
    pub(crate) mod at_once;
    pub(crate) mod collections;
    pub(crate) mod cut_off;
    pub(crate) mod facts;
    pub(crate) mod kill;
    pub(crate) mod layers;
    pub(crate) mod parts;
    pub(crate) mod places;
    pub(crate) mod unread;
}

mod sessions {
    pub(crate) mod history_costs;
}

fn main() -> ExitCode {
    archon_testkit::run_trials(&[
        memory::at_once::TRIALS,
        memory::cut_off::TRIALS,
        memory::facts::TRIALS,
        memory::kill::TRIALS,
        memory::layers::TRIALS,
        memory::parts::TRIALS,
        memory::unread::TRIALS,
        sessions::history_costs::TRIALS,
    ])
}
