//! Sample roles.

use archon_types::TeamRole;

/// Returns the four usual roles: `researcher`, `writer`, `software_engineer` and `quality_analyst`.
pub fn sample_roles() -> Vec<TeamRole> {
    vec![
        TeamRole::new(
            "researcher",
            "You find out what is the case. Name where each fact is from, and say what you could not find.",
        ),
        TeamRole::new(
            "writer",
            "You write for readers who were not there. Use what others found, and add no facts of your own.",
        ),
        TeamRole::new(
            "software_engineer",
            "You write programs that work. Run what you wrote before you say that it does.",
        ),
        TeamRole::new(
            "quality_analyst",
            "You look for what is wrong or missing. Approve only what you would answer for.",
        ),
    ]
}
