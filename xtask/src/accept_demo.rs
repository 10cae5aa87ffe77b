//! `cargo xtask accept demo`: runs the demo as on a new machine, three times, and once more with everything
//! there. Each run has its own folders for crates, models and the build; those of the machine are not
//! touched.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command_line::CommandLine;
use crate::demo::Phases;

pub(crate) const NAME: &str = "demo";

/// Number of runs from nothing.
const COLD: usize = 3;

/// The longest time for the median of the runs from nothing.
const LONGEST: Duration = Duration::from_secs(240);

/// The longest time in seconds for the four scenes.
const LONGEST_MAIN_JOB: f64 = 60.0;

/// The longest time until the first scene if everything is there.
const LONGEST_AGAIN: Duration = Duration::from_secs(5);

pub(crate) fn run() -> Result<()> {
    let top = env::temp_dir().join(format!("archon-accept-demo-{}", std::process::id()));
    let measured = measure(&top);
    // Some GB: removed in any case.
    if top.exists() {
        fs::remove_dir_all(&top).with_context(|| format!("cannot remove {}", top.display()))?;
    }
    judge(&measured?)
}

/// Measurements of one run.
struct Run {
    phases: Phases,
    /// From the command to its end; includes cargo's build of `xtask`.
    wall: Duration,
}

impl Run {
    /// Seconds before the demo's own program ran.
    fn xtask(&self) -> f64 {
        (self.wall.as_secs_f64() - self.phases.total).max(0.0)
    }

    /// From the command to the first scene.
    fn before_main_job(&self) -> Duration {
        Duration::from_secs_f64(self.xtask() + self.phases.before_main_job())
    }
}

/// Runs the demo from nothing several times, and once more.
fn measure(top: &Path) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    let mut last = PathBuf::new();
    for number in 1..=COLD {
        println!("\n[{number}/{}] the demo with nothing there", COLD + 1);
        if number > 1 {
            fs::remove_dir_all(&last).with_context(|| format!("cannot remove {}", last.display()))?;
        }
        last = top.join(number.to_string());
        runs.push(demo(&last)?);
    }
    println!("\n[{}/{}] the demo with everything there", COLD + 1, COLD + 1);
    runs.push(demo(&last)?);
    Ok(runs)
}

/// Runs the demo with its folders below `top`.
fn demo(top: &Path) -> Result<Run> {
    let folder = |name: &str| {
        let folder = top.join(name);
        let made = fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()));
        made.map(|()| folder)
    };
    let (crates, target) = (folder("cargo")?, folder("target")?);
    keep_settings(&crates);
    let line = CommandLine::cargo("xtask demo")
        .env("CARGO_HOME", crates.display().to_string())
        .env("CARGO_TARGET_DIR", target.display().to_string())
        .env("XDG_DATA_HOME", folder("data")?.display().to_string())
        .env("ARCHON_DATA_DIR", folder("data/archon")?.display().to_string())
        // No compiler cache: it would change the measurement.
        .env("RUSTC_WRAPPER", "");
    println!("load before it: {}", crate::demo::load().unwrap_or_default());
    let began = Instant::now();
    line.run()?;
    Ok(Run { wall: began.elapsed(), phases: Phases::read(&target)? })
}

/// Copies this machine's mirrors and proxies into an empty folder of crates.
fn keep_settings(crates: &Path) {
    let Some(home) = crate::demo::cargo_home() else { return };
    for name in ["config.toml", "config", "credentials.toml"] {
        // Most machines have none of them.
        let _ = fs::copy(home.join(name), crates.join(name));
    }
}

/// Prints the table, and fails if a run took too long.
fn judge(runs: &[Run]) -> Result<()> {
    println!("\n{}", table(runs));
    let Some((again, cold)) = runs.split_last() else { bail!("the demo was not run") };
    let median = median(cold);
    println!("median of {} with nothing there: {:.0} s", cold.len(), median.as_secs_f64());
    let begun = again.before_main_job();
    println!("with everything there, the first scene began after {:.1} s", begun.as_secs_f64());
    if median > LONGEST {
        bail!(
            "the demo from empty folders took {:.0} s (median of {} runs), and the limit is {} s",
            median.as_secs_f64(),
            cold.len(),
            LONGEST.as_secs()
        );
    }
    if let Some(run) = cold.iter().find(|run| run.phases.main_job > LONGEST_MAIN_JOB) {
        bail!(
            "the scenes of a demo took {:.0} s, and the limit is {LONGEST_MAIN_JOB} s",
            run.phases.main_job
        );
    }
    if begun > LONGEST_AGAIN {
        bail!(
            "the demo with everything in place began its first scene after {:.1} s, and the limit is {} s",
            begun.as_secs_f64(),
            LONGEST_AGAIN.as_secs()
        );
    }
    Ok(())
}

fn median(runs: &[Run]) -> Duration {
    let mut walls: Vec<Duration> = runs.iter().map(|run| run.wall).collect();
    walls.sort();
    walls.get(walls.len() / 2).copied().unwrap_or_default()
}

fn table(runs: &[Run]) -> String {
    let mut text = String::from(
        "run | xtask s | look s | fetch s | build s | model s | main job s | all s | load\n---|---:|---:|---:|---:|---:|---:|---:|---:\n",
    );
    for (number, run) in runs.iter().enumerate() {
        let Phases { look, fetch, build, model, main_job, load, .. } = &run.phases;
        let load = load.map(|load| format!("{load:.1}")).unwrap_or_default();
        text.push_str(&format!(
            "{} | {:.1} | {look:.1} | {fetch:.1} | {build:.1} | {model:.1} | {main_job:.1} | {:.1} | {load}\n",
            number + 1,
            run.xtask(),
            run.wall.as_secs_f64()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wall: u64, before_main_job: f64) -> Run {
        let main_job = 40.0;
        Run {
            wall: Duration::from_secs(wall),
            phases: Phases { main_job, total: main_job + before_main_job, ..Phases::default() },
        }
    }

    #[test]
    fn judge_of_runs_within_the_limits_is_content() {
        judge(&[run(250, 150.0), run(240, 150.0), run(200, 150.0), run(44, 3.0)]).unwrap();
    }

    #[test]
    fn judge_of_runs_over_a_limit_names_it() {
        let error = |runs: [Run; 4]| judge(&runs).unwrap_err().to_string();
        assert_eq!(
            error([run(242, 150.0), run(241, 150.0), run(200, 150.0), run(44, 3.0)]),
            "the demo from empty folders took 241 s (median of 3 runs), and the limit is 240 s"
        );
        assert_eq!(
            error([run(200, 150.0), run(200, 150.0), run(200, 150.0), run(46, 3.0)]),
            "the demo with everything in place began its first scene after 6.0 s, and the limit is 5 s"
        );
    }

    #[test]
    fn table_has_a_line_for_each_run_with_what_cargo_took_first() {
        let table = table(&[run(200, 150.0)]);
        assert_eq!(table.lines().last(), Some("1 | 10.0 | 0.0 | 0.0 | 0.0 | 0.0 | 40.0 | 200.0 | "));
    }
}
