//! The guards, one file each, and the order in which a call meets them.

mod consent;
mod exists;
mod matches_schema;
mod size;
mod well_formed;

use crate::guard::Guard;

/// Every guard in order. A new one is a new file and a line here.
pub(crate) const GUARDS: &[&dyn Guard] = &[
    &exists::Exists,                // the tool is registered
    &well_formed::WellFormed,       // the arguments were JSON
    &size::Size,                    // they are neither too large nor too deep
    &matches_schema::MatchesSchema, // they fit the tool's schema
    &consent::Consent,              // a person agrees, where one has to
];
