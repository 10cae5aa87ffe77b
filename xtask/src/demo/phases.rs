//! Times of the demo's parts, for the person who waited and for the acceptance run.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::build::Built;
use super::progress::seconds;

/// The times of the parts, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Phases {
    /// Checks of the machine.
    pub(crate) look: f64,
    /// Download of crates.
    pub(crate) fetch: f64,
    pub(crate) build: f64,
    /// The model's time after the build.
    pub(crate) model: f64,
    /// The four scenes.
    pub(crate) main_job: f64,
    pub(crate) total: f64,
    /// The machine's load average of the last minute, at the end.
    pub(crate) load: Option<f64>,
}

/// Name of the file with the times, in the build folder.
const FILE: &str = "demo-phases.json";

impl Phases {
    pub(super) fn new(look: Duration, built: &Built, main_job: Duration, total: Duration) -> Self {
        Self {
            look: look.as_secs_f64(),
            fetch: built.fetch.as_secs_f64(),
            build: built.build.as_secs_f64(),
            model: built.model.as_secs_f64(),
            main_job: main_job.as_secs_f64(),
            total: total.as_secs_f64(),
            load: load(),
        }
    }

    /// Returns the time at which the first scene began.
    pub(crate) fn before_main_job(&self) -> f64 {
        self.total - self.main_job
    }

    /// Writes the times into the build folder.
    pub(super) fn keep(&self, target: &Path) -> Result<()> {
        let file = target.join(FILE);
        let Self { look, fetch, build, model, main_job, total, load } = self;
        let text = json!({
            "look": look, "fetch": fetch, "build": build, "model": model, "main_job": main_job, "total": total, "load": load,
        });
        fs::write(&file, text.to_string()).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads the times of the last demo in a build folder.
    pub(crate) fn read(target: &Path) -> Result<Self> {
        let file = target.join(FILE);
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let read = |name: &str| value[name].as_f64();
        let phases = || {
            Some(Self {
                look: read("look")?,
                fetch: read("fetch")?,
                build: read("build")?,
                model: read("model")?,
                main_job: read("main_job")?,
                total: read("total")?,
                load: read("load"),
            })
        };
        phases().with_context(|| format!("{} does not hold the times of a demo", file.display()))
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("look", self.look),
            ("fetch", self.fetch),
            ("build", self.build),
            ("model", self.model),
            ("main job", self.main_job),
            ("total", self.total),
        ];
        let part = |(name, time): &(&str, f64)| {
            let beside = if *name == "model" { " (after the build)" } else { "" };
            format!("{name} {}{beside}", seconds(Duration::from_secs_f64(*time)))
        };
        f.write_str(&parts.iter().map(part).collect::<Vec<_>>().join(", "))?;
        self.load.map_or(Ok(()), |load| write!(f, ", load {load:.1}"))
    }
}

/// Returns the load average of the last minute.
pub(crate) fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases() -> Phases {
        Phases {
            look: 2.1,
            fetch: 12.4,
            build: 118.0,
            model: 0.2,
            main_job: 41.0,
            total: 173.7,
            load: Some(0.82),
        }
    }

    #[test]
    fn phases_summary_is_one_line() {
        assert_eq!(
            phases().to_string(),
            "look 2 s, fetch 12 s, build 1 min 58 s, model 0 s (after the build), main job 41 s, total 2 min 54 s, load 0.8"
        );
    }

    #[test]
    fn phases_saved_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        phases().keep(folder.path()).unwrap();
        assert_eq!(Phases::read(folder.path()).unwrap(), phases());
        assert!((phases().before_main_job() - 132.7).abs() < 1e-9);
    }
}
