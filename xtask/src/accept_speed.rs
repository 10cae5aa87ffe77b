//! `cargo xtask accept speed`: compares the instructions of a turn, a streamed delta and a turn of a long run
//! with a hand-written program (`crates/archon/examples/floor.rs`). Fails if a ratio is above its limit.
//!
//! The hand-written program ("floor") is built with Cargo's release defaults, archon like its releases; both
//! ask the same mock server. A floor built like archon is shown as well, without a limit. A count is a long
//! run minus a short one, so that the start of the process is not included.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    callgrind::{self, Without},
    repository,
};

pub(crate) const NAME: &str = "speed";

const BUILD: &str =
    "build --locked --profile profiling -p archon-agents --example floor --example bench_driver";
const BUILD_BY_HAND: &str = "build --locked --profile by-hand -p archon-agents --example floor";

/// A measurement: this many units in this many runs with a model.
struct Cell {
    name: &'static str,
    model: &'static str,
    runs: u64,
    units: u64,
    /// The highest allowed ratio of instructions per unit to the floor's.
    limit: f64,
}

const CELLS: [Cell; 3] = [
    Cell { name: "a turn of 20 deltas", model: "mock-t50-p1-k20", runs: 4, units: 4 * 51, limit: 1.25 },
    Cell { name: "a streamed delta", model: "mock-t0-p1-k20000", runs: 1, units: 20_000, limit: 1.15 },
    Cell { name: "a turn of a run of 296", model: "mock-t295-p1-k4", runs: 1, units: 296, limit: 1.15 },
];

pub(crate) fn run() -> Result<()> {
    if callgrind::is_skipped(Without::Fail)? {
        return Ok(());
    }
    let (root, target) = (repository::root(), callgrind::target());
    let [floor] = callgrind::build(&root, &target, BUILD_BY_HAND, ["floor"])?;
    let [alike, ours] = callgrind::build(&root, &target, BUILD, ["floor", "bench_driver"])?;
    let mut counts = Vec::new();
    for cell in &CELLS {
        let count = |program| instructions(&floor, program, cell);
        counts.push([count(&floor)?, count(&alike)?, count(&ours)?]);
    }
    compare(&counts)
}

/// Repetitions of each count. The number of deltas in a read depends on the machine and moves a count by 3 %.
const TIMES: usize = 3;

/// Returns a program's instructions for one unit of a cell; the median.
fn instructions(server: &Path, program: &Path, cell: &Cell) -> Result<u64> {
    let server = Server::start(server)?;
    let once = |runs: u64| -> Result<u64> {
        let runs = runs.to_string();
        let args = ["--base-url", &server.url, "--model", cell.model, "--runs", &runs];
        let counted = callgrind::count(program, &args)?;
        let line: serde_json::Value = serde_json::from_str(&counted.stdout)?;
        ensure!(line["failures"] == 0, "`{} {}` failed: {line}", program.display(), args.join(" "));
        Ok(counted.instructions)
    };
    let count = |runs: u64| -> Result<u64> {
        let mut counts = (0..TIMES).map(|_| once(runs)).collect::<Result<Vec<_>>>()?;
        counts.sort_unstable();
        Ok(counts[TIMES / 2])
    };
    Ok(count(cell.runs)?.saturating_sub(count(0)?) / cell.units)
}

/// The mock server; it ends with its input.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("the mock server could not be started")?;
        let out = child.stdout.take().context("the output of the mock server is not piped")?;
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url).context("cannot read the URL of the mock server")?;
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Prints the ratios in the order of the cells, and fails if one is above its limit.
fn compare(counts: &[[u64; 3]]) -> Result<()> {
    let mut missed = Vec::new();
    let heads = ["by hand", "archon", "ratio", "at most", "by hand, built alike", "ratio"];
    println!(
        "{:24} {:>9} {:>9} {:>6} {:>7} {:>21} {:>6}",
        "instructions", heads[0], heads[1], heads[2], heads[3], heads[4], heads[5]
    );
    for (cell, [floor, alike, ours]) in CELLS.iter().zip(counts) {
        let (ratio, strict) = (*ours as f64 / *floor as f64, *ours as f64 / *alike as f64);
        println!(
            "{:24} {floor:>9} {ours:>9} {ratio:>6.2} {:>7.2} {alike:>21} {strict:>6.2}",
            cell.name, cell.limit
        );
        if ratio > cell.limit {
            missed.push(format!("{} takes {ratio:.3} times as many (at most {})", cell.name, cell.limit));
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    bail!(
        "archon takes too many instructions for the work of the program written by hand: {}; find what is slower \
         with `valgrind --tool=callgrind` on `bench_driver`",
        missed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_of_a_ratio_above_its_limit_fails_and_names_it() {
        assert!(compare(&[[1000, 1, 1250], [1000, 1, 1150], [1000, 1, 1150]]).is_ok());
        let missed = compare(&[[1000, 1, 1250], [1000, 1, 1151], [1000, 1, 1150]]).unwrap_err().to_string();
        assert!(missed.starts_with("archon takes too many instructions for the work of"), "{missed}");
        assert!(missed.contains("by hand: a streamed delta takes 1.151 times as many (at most"), "{missed}");
        assert!(compare(&[[1000, 1, 1251], [1000, 1, 1], [1000, 1, 1]]).is_err());
    }
}
