//! Test programs whose tests need something that a machine may lack, such as PostgreSQL. If it is missing, the test
//! is reported as ignored; the standard harness cannot decide that at run time.

use std::{env, future::Future, pin::Pin, process::ExitCode, sync::OnceLock};

use libtest_mimic::{Arguments, Completion, Failed};
use tokio::runtime::Builder;

/// Something that tests need and a machine may lack.
#[derive(Debug)]
pub struct Need {
    look: fn() -> Result<(), String>,
    required_by: &'static str,
    /// True if the thing is also required with `CI=true`.
    required_in_ci: bool,
    found: OnceLock<Result<(), String>>,
}

impl Need {
    /// Creates a need. `look` is called once; its error names the missing thing and the way to get it. If the
    /// thing is missing, tests are ignored; with `CI=true`, or if the environment variable `required_by` is
    /// set, they fail.
    pub const fn new(look: fn() -> Result<(), String>, required_by: &'static str) -> Self {
        Self { look, required_by, required_in_ci: true, found: OnceLock::new() }
    }

    /// Lets tests be ignored with `CI=true` too, for a thing that not every machine for CI can install.
    #[must_use]
    pub const fn optional_in_ci(mut self) -> Self {
        self.required_in_ci = false;
        self
    }

    fn check(&self) -> Result<Completion, Failed> {
        let is_ci = || env::var("CI").is_ok_and(|value| value == "true");
        let is_required = || (self.required_in_ci && is_ci()) || env::var_os(self.required_by).is_some();
        match self.found.get_or_init(self.look) {
            Ok(()) => Ok(Completion::Completed),
            Err(missing) if is_required() => Err(missing.into()),
            Err(missing) => Ok(Completion::ignored_with(missing)),
        }
    }
}

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// A test of [`run_trials`], made by [`trial!`](crate::trial).
///
/// ```
/// use archon_testkit::{Need, Trial};
///
/// static REDIS: Need = Need::new(|| Err("there is no redis-server".to_owned()), "REQUIRE_REDIS");
/// let trial = Trial::new("all::bus::reads", || Box::pin(async {})).needs(&REDIS).on_threads(2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    path: &'static str,
    run: fn() -> Running,
    threads: usize,
    need: Option<&'static Need>,
}

impl Trial {
    /// Creates a test that runs on one thread and needs nothing. `path` is the test's path, which begins with
    /// the name of the test program.
    pub const fn new(path: &'static str, run: fn() -> Running) -> Self {
        Self { path, run, threads: 0, need: None }
    }

    /// Runs the test only where `need` is found.
    #[must_use]
    pub const fn needs(mut self, need: &'static Need) -> Self {
        self.need = Some(need);
        self
    }

    /// Runs the test on a runtime with this number of worker threads.
    #[must_use]
    pub const fn on_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Returns the test's name as the standard harness gives it: the path without the name of the test
    /// program.
    fn name(&self) -> &'static str {
        self.path.split_once("::").map_or(self.path, |(_, name)| name)
    }

    fn run(&self) {
        let mut runtime = Builder::new_current_thread();
        if self.threads > 0 {
            runtime = Builder::new_multi_thread();
            runtime.worker_threads(self.threads);
        }
        let runtime = runtime.enable_all().build().unwrap_or_else(|e| panic!("no runtime can be built: {e}"));
        runtime.block_on((self.run)());
    }

    fn attempt(&self) -> Result<Completion, Failed> {
        let found = self.need.map_or(Ok(Completion::Completed), Need::check)?;
        if matches!(found, Completion::Completed) {
            self.run();
        }
        Ok(found)
    }
}

/// Makes a [`Trial`] of an `async fn` without arguments.
#[macro_export]
macro_rules! trial {
    ($test:ident) => {
        $crate::Trial::new(concat!(module_path!(), "::", stringify!($test)), || {
            ::std::boxed::Box::pin($test())
        })
    };
}

/// Runs the tests of a program with `harness = false`, with the arguments and the output of the standard
/// harness. `main` returns the result.
///
/// # Example
/// ```no_run
/// // With the feature `trials`, and with `harness = false` below `[[test]]` in Cargo.toml.
/// use std::{path::Path, process::ExitCode};
///
/// use archon_testkit::{Need, Trial, run_trials, trial};
///
/// static SERVER: Need = Need::new(
///     || Path::new("/run/server.sock").exists().then_some(()).ok_or_else(|| "no server; start it".to_owned()),
///     "REQUIRE_SERVER",
/// );
///
/// static TRIALS: &[Trial] = &[trial!(answers).needs(&SERVER), trial!(names_are_checked)];
///
/// async fn answers() {}
///
/// async fn names_are_checked() {}
///
/// fn main() -> ExitCode {
///     run_trials(&[TRIALS])
/// }
/// ```
pub fn run_trials(tables: &[&[Trial]]) -> ExitCode {
    let trials = tables.concat();
    let names: Vec<&str> = trials.iter().map(Trial::name).collect();
    let arguments = arguments(env::args(), &names);
    let trials = trials
        .into_iter()
        .map(|trial| libtest_mimic::Trial::ignorable_test(trial.name(), move || trial.attempt()));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Command-line options whose value is the next argument.
const WITH_VALUE: &[&str] = &["--skip", "--test-threads", "--logfile", "--color", "--format", "-Z"];

/// Parses the arguments. The standard harness takes several filters and libtest-mimic takes one, so several
/// filters are replaced by a `--skip` for each test that matches none of them.
fn arguments(words: impl IntoIterator<Item = String>, names: &[&str]) -> Arguments {
    let (mut options, mut filters) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    options.extend(words.next());
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            filters.push(word);
            continue;
        }
        let has_value = WITH_VALUE.contains(&word.as_str());
        options.push(word);
        if has_value {
            options.extend(words.next());
        }
    }
    let mut arguments = Arguments::from_iter(options);
    if filters.len() < 2 {
        arguments.filter = filters.pop();
        return arguments;
    }
    let exact = arguments.exact;
    let is_in = |list: &[String], name: &str| {
        list.iter().any(|part| if exact { name == part } else { name.contains(part.as_str()) })
    };
    let left_out = names.iter().filter(|name| !is_in(&filters, name) || is_in(&arguments.skip, name));
    let left_out = left_out.map(|name| (*name).to_owned()).collect();
    (arguments.skip, arguments.exact) = (left_out, true);
    arguments
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn read(line: &str) -> Arguments {
        let names = ["a::kill", "a::kill_again", "b::list", "b::make"];
        arguments(["program"].into_iter().chain(line.split(' ')).map(str::to_owned), &names)
    }

    #[test]
    fn one_filter_and_options_are_passed_on() {
        let read = read("--test-threads 2 kill --skip again --nocapture");
        assert_eq!((read.filter.as_deref(), read.exact, read.test_threads), (Some("kill"), false, Some(2)));
        assert_eq!(read.skip, ["again"]);
    }

    #[test]
    fn several_filters_leave_out_what_none_of_them_names() {
        for (line, left_out) in [
            ("kill list --nocapture", &["b::make"][..]),
            ("kill list --skip again", &["a::kill_again", "b::make"]),
            ("--exact a::kill b::make", &["a::kill_again", "b::list"]),
        ] {
            let read = read(line);
            assert_eq!((read.filter, read.exact), (None, true), "{line}");
            assert_eq!(read.skip, left_out, "{line}");
        }
    }

    #[test]
    fn name_begins_below_the_program() {
        async fn holds() {}
        assert_eq!(crate::trial!(holds).name(), "trials::tests::holds");
    }

    #[test]
    fn test_without_its_need_does_not_run_and_is_looked_for_once() {
        static LOOKS: AtomicU32 = AtomicU32::new(0);
        static NOTHING: Need = Need::new(
            || {
                LOOKS.fetch_add(1, Ordering::Relaxed);
                Err("no server: start one".to_owned())
            },
            "PATH",
        );
        async fn never() {
            unreachable!("its server is missing");
        }
        for _ in 0..2 {
            let outcome = crate::trial!(never).needs(&NOTHING).attempt();
            // `PATH` is set, so that it is required.
            assert_eq!(outcome.err().unwrap().message(), Some("no server: start one"));
        }
        assert_eq!(LOOKS.load(Ordering::Relaxed), 1);
    }
}
