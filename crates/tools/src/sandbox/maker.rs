//! Names of resources that identify the process that made them, so that a later process can remove what a
//! crash left.

use std::fs;

use archon_process::start_ticks;

/// Returns a name that consists of `prefix`, this process (its process namespace, its id there and its
/// start time) and `of`, which makes the name unique within the process.
pub(super) fn name(prefix: &str, of: &str) -> Option<String> {
    let us = std::process::id();
    Some(format!("{prefix}{}-{us}-{}-{of}", namespace()?, start_ticks(us)?))
}

/// Returns whether the process that made `name` with [`name`](name()) is gone. A process of another namespace
/// cannot be seen from here and counts as alive, so its resources stay.
pub(super) fn is_stale(name: &str, prefix: &str, namespace: &str) -> bool {
    let mut parts = name.strip_prefix(prefix).unwrap_or_default().split('-');
    let (Some(of), Some(pid), Some(ticks), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Some((pid, ticks)) = pid.parse().ok().zip(ticks.parse().ok()) else { return false };
    of == namespace && start_ticks(pid) != Some(ticks)
}

/// Returns the id of this process's namespace of process ids: the number in `pid:[4026531836]`.
pub(super) fn namespace() -> Option<String> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_str()?.chars().filter(char::is_ascii_digit).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    // spec: TE-58
    #[test]
    fn is_stale_is_true_only_for_names_of_dead_processes() {
        let ours = namespace().unwrap();
        let us = std::process::id();
        let ticks = start_ticks(us).unwrap();
        for (name, expected) in [
            (name("archon-", "17").unwrap(), false),
            (format!("archon-{ours}-{us}-{}-17", ticks + 1), true),
            (format!("archon-1-{us}-{}-17", ticks + 1), false),
            (format!("archon-{ours}-{us}-17"), false),
            ("archon-17".to_owned(), false),
            ("system.slice".to_owned(), false),
        ] {
            assert_eq!(is_stale(&name, "archon-", &ours), expected, "{name}");
        }
    }
}
