//! Ends orphans: processes that left the group of a server before the group's keeper was killed. The keeper is the
//! process that started the server. The group itself ends with its keeper; orphans are found by an environment
//! variable that names the keeper.
//!
//! An orphan that cleared its environment is not found. It is ended when a run that used its server is resumed: the
//! run's log has the group, and the mark of the process follows from the group (`mark.rs`).

use std::{fs, sync::Once};

use super::{KEEPER_VARIABLE, kill_if, table};

/// Returns the value of [`KEEPER_VARIABLE`] that names this process: boot id, namespace of process ids, process id
/// and start time.
pub(super) fn keeper() -> Option<String> {
    let own = std::process::id();
    Some(format!("{}/{own}/{}", numbers()?, table::start_ticks(own)?))
}

/// Ends the processes whose keeper is dead. Done once, before the first server starts.
pub(super) fn end_orphans() {
    static DONE: Once = Once::new();
    DONE.call_once(sweep);
}

fn sweep() {
    let Some(here) = numbers() else { return };
    for process in table::system::ids() {
        if process != std::process::id() && is_orphan(process, &here) {
            tracing::info!(target: "archon::process", process, "a process whose keeper died is ended");
            kill_if(process, || is_orphan(process, &here));
        }
    }
}

/// Returns whether a process has a keeper that is dead. A keeper in another container cannot be seen from
/// here, so its processes do not count as orphans.
fn is_orphan(process: u32, here: &str) -> bool {
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let prefix = format!("{KEEPER_VARIABLE}={here}/");
    let keeper = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(prefix.as_bytes()));
    let keeper = keeper.and_then(|keeper| std::str::from_utf8(keeper).ok()?.split_once('/'));
    let keeper = keeper.and_then(|(number, ticks)| Some((number.parse().ok()?, ticks.parse().ok()?)));
    keeper.is_some_and(|(number, ticks): (u32, u64)| table::start_ticks(number) != Some(ticks))
}

/// Returns the boot id and the namespace in which the process ids that we see are valid.
fn numbers() -> Option<String> {
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{}/{}", table::boot(), namespace.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(keeper: &str) -> Child {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("1000").env(KEEPER_VARIABLE, keeper).spawn().unwrap()
    }

    #[test]
    fn a_process_is_ended_if_its_keeper_is_dead_and_left_alone_otherwise() {
        let mut keeper = Command::new("sleep").arg("1000").spawn().unwrap();
        let ticks = table::start_ticks(keeper.id()).unwrap();
        let name = format!("{}/{}/{ticks}", numbers().unwrap(), keeper.id());
        let mut others = [
            sleeper(&super::keeper().unwrap()),
            sleeper(&format!("another/{}/{ticks}", keeper.id())),
            sleeper("nonsense"),
        ];
        let mut orphan = sleeper(&name);
        sweep();
        assert_eq!(orphan.try_wait().unwrap(), None, "its keeper is alive");
        keeper.kill().unwrap();
        keeper.wait().unwrap();
        // A process's environment is empty for a moment during `exec`, so one look could miss it.
        let status = loop {
            sweep();
            if let Some(status) = orphan.try_wait().unwrap() {
                break status;
            }
        };
        assert!(!status.success());
        for other in &mut others {
            assert_eq!(other.try_wait().unwrap(), None);
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }
}
