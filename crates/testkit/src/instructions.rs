//! Counts the instructions that a command executes: unlike times, they are the same in every run.

use std::{ffi::OsStr, process::Command};

/// Runs a command under valgrind, and returns its number of instructions and its standard output. Returns
/// `None` if valgrind is not installed.
///
/// # Panics
/// If the command fails.
pub fn instructions(command: &Command) -> Option<(u64, String)> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => valgrind.env(name, value),
            None => valgrind.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        valgrind.current_dir(folder);
    }
    let output = match valgrind.output() {
        Ok(output) => output,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => panic!("valgrind cannot be started: {e}"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} fails: {errors}", command.get_args().collect::<Vec<&OsStr>>());
    let count = errors.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    let count = count.unwrap_or_else(|| panic!("valgrind counted nothing: {errors}"));
    Some((count, String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_a_command_are_counted_and_what_it_printed_is_there() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo \"$WORD\""]).env("WORD", "hello");
        let Some((count, printed)) = instructions(&command) else { return };
        assert!(count > 1_000 && printed == "hello\n", "{count}: {printed}");
    }
}
