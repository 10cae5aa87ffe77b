//! `cargo xtask instructions`: counts the instructions of a turn, a streamed delta, an append and a guarded
//! call with valgrind, and compares them with `docs/instructions.txt`. Counts are repeatable, unlike times,
//! so a loss of speed is seen on a busy machine too.
//!
//! Counts depend on the processor and the C library, so each row is for one pair of them. On a machine
//! without a row the parent commit is built and counted for comparison.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::{
    callgrind::{self, Without},
    repository,
};

const KEPT: &str = "docs/instructions.txt";

const PROGRAM: &str = "crates/archon/examples/counted.rs";

const BUILD: &str = "build --locked --profile measure -p archon-agents --example counted";

/// The allowed increase, in percent.
const ALLOWED: f64 = 5.0;

/// A measurement: repetitions in a short run and in a long run.
struct Cell {
    name: &'static str,
    few: u64,
    many: u64,
}

const CELLS: [Cell; 4] = [
    Cell { name: "turn", few: 10, many: 40 },
    Cell { name: "delta", few: 500, many: 3_000 },
    Cell { name: "append", few: 50, many: 550 },
    Cell { name: "call", few: 100, many: 1_100 },
];

/// Instructions per unit of each cell, in order.
type Counts = [u64; CELLS.len()];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let renew = args.flag("--renew");
    args.finish()?;
    if callgrind::is_skipped(Without::Skip)? {
        return Ok(());
    }
    let machine = machine()?;
    let target = callgrind::target();
    let counts = count(&repository::root(), &target)?;
    let path = repository::root().join(KEPT);
    let kept = fs::read_to_string(&path).with_context(|| format!("cannot read {KEPT}"))?;
    if renew {
        fs::write(&path, renewed(&kept, &machine, &counts))
            .with_context(|| format!("cannot write {KEPT}"))?;
        println!("{KEPT} holds the counts for {machine}");
        return Ok(());
    }
    match row(&kept, &machine) {
        Some(before) => compare(&counts, &before, KEPT),
        None => match of_parent(&target)? {
            Some(before) => compare(&counts, &before, "the parent commit"),
            None => {
                println!(
                    "{KEPT} has no row for {machine}, and there is no parent commit to compare with: {counts:?}"
                );
                Ok(())
            }
        },
    }
}

/// Names the machine by what counts depend on: the processor's level and the C library.
fn machine() -> Result<String> {
    let libc = CommandLine::new("getconf").args(["GNU_LIBC_VERSION"]).output()?;
    // Valgrind offers programs at most the third level.
    #[cfg(target_arch = "x86_64")]
    let level = if std::arch::is_x86_feature_detected!("avx2") { "-v3" } else { "" };
    #[cfg(not(target_arch = "x86_64"))]
    let level = "";
    Ok(format!("{}{level} {}", std::env::consts::ARCH, libc.trim().replace(' ', "-")))
}

/// Builds the program of a checkout and counts.
fn count(root: &Path, target: &Path) -> Result<Counts> {
    let [program] = callgrind::build(root, target, BUILD, ["counted"])?;
    let mut counts = [0; CELLS.len()];
    for (count, cell) in counts.iter_mut().zip(&CELLS) {
        let times = |n: u64| callgrind::count(&program, &[cell.name, &n.to_string()]);
        let (few, many) = (times(cell.few)?.instructions, times(cell.many)?.instructions);
        *count = many.saturating_sub(few) / (cell.many - cell.few);
        println!("{:>9} instructions per {}", count, cell.name);
    }
    Ok(counts)
}

/// Counts the parent commit; unchanged dependencies are built only once.
fn of_parent(target: &Path) -> Result<Option<Counts>> {
    let folder = std::env::temp_dir().join(format!("archon-parent-{}", std::process::id()));
    let path = folder.display().to_string();
    let made = CommandLine::new("git").args(["worktree", "add", "--detach", &path, "HEAD~1"]).output();
    if made.is_err() || !folder.join(PROGRAM).exists() {
        return Ok(None);
    }
    println!("counting the parent commit, because {KEPT} has no row for this machine");
    let counts = count(&folder, target);
    let _ = CommandLine::new("git").args(["worktree", "remove", "--force", &path]).output();
    counts.map(Some)
}

fn compare(counts: &Counts, before: &Counts, whose: &str) -> Result<()> {
    let mut worse = Vec::new();
    for ((cell, now), before) in CELLS.iter().zip(counts).zip(before) {
        let change = 100.0 * (*now as f64 / *before as f64 - 1.0);
        println!("{:>9} of {before} in {whose} ({change:+.1} %) per {}", now, cell.name);
        if change > ALLOWED {
            worse.push(format!("{}: {change:.1} % more instructions ({now}, {before} before)", cell.name));
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    bail!(
        "{}; {ALLOWED} % are allowed. Find what is slower, or keep the new figures with `cargo xtask instructions --renew` \
         and say why in the commit",
        worse.join("; ")
    )
}

/// Returns the counts in the row of a machine.
fn row(kept: &str, machine: &str) -> Option<Counts> {
    let line = kept.lines().find_map(|line| line.strip_prefix(machine))?;
    let counts: Vec<u64> = line.split_whitespace().map(|count| count.parse().ok()).collect::<Option<_>>()?;
    counts.try_into().ok()
}

fn renewed(kept: &str, machine: &str, counts: &Counts) -> String {
    let others = kept.lines().filter(|line| !line.starts_with(machine));
    let counts = counts.map(|count| count.to_string()).join(" ");
    others.map(str::to_owned).chain([format!("{machine} {counts}")]).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_of_a_count_above_its_limit_fails_and_names_it() {
        assert!(compare(&[104, 10, 10, 10], &[100, 10, 20, 10], "x").is_ok());
        let refused = compare(&[106, 10, 10, 10], &[100, 10, 20, 10], "x").unwrap_err().to_string();
        assert!(refused.starts_with("turn: 6.0 % more") && refused.contains("--renew"), "{refused}");
    }

    #[test]
    fn row_of_a_machine_is_read_back_as_renewed_wrote_it() {
        let kept = renewed(
            "# a\nx86_64-v3 glibc-2.36 1 2 3 4\nother 5 6 7 8\n",
            "x86_64-v3 glibc-2.36",
            &[9, 2, 3, 4],
        );
        assert_eq!(kept, "# a\nother 5 6 7 8\nx86_64-v3 glibc-2.36 9 2 3 4\n");
        assert_eq!(row(&kept, "x86_64-v3 glibc-2.36"), Some([9, 2, 3, 4]));
        assert_eq!(row(&kept, "aarch64 glibc-2.36"), None);
    }
}
