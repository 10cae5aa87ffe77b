//! Checks this machine before anything long begins, so that a person does not wait minutes for a build that could not
//! have worked. The facts come from [`super::machine`]; this only judges them.

use std::fmt;

/// The oldest glibc that the engine runs on.
pub(crate) const GLIBC: (u32, u32) = (2, 34);

/// The last number of `libstdc++.so.6.0.N` in GCC 11, the oldest that the engine runs with.
const LIBSTDCXX: u32 = 29;

/// The free memory in MB that is needed. Two compilers at once were measured at 1,000.
pub(crate) const MEMORY_MB: u64 = 1_500;

/// The facts about this machine. An unknown fact is `None` and does not stop the demo.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) os: String,
    pub(super) cpu: String,
    pub(super) c_library: CLibrary,
    pub(super) libstdcxx: Libstdcxx,
    /// The C compiler's fault, if it has one.
    pub(super) compiler: Option<String>,
    /// Free memory in MB.
    pub(super) memory_mb: Option<u64>,
    pub(super) disks: Vec<Disk>,
    /// The network's error, if something must be fetched and cannot be.
    pub(super) network: Option<String>,
    pub(super) silent: Vec<Silent>,
}

/// A server that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Silent {
    /// The thing that comes from it.
    pub(super) what: &'static str,
    pub(super) host: &'static str,
    pub(super) why: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CLibrary {
    Glibc(Option<(u32, u32)>),
    Musl,
    /// The only C library of another system.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Libstdcxx {
    /// The number `N` of `libstdc++.so.6.0.N`, if the file's name has it.
    There(Option<u32>),
    Missing,
}

/// A file system to which something will be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// Its mount point.
    pub(super) mount: String,
    pub(super) free_mb: u64,
    pub(super) needed_mb: u64,
    /// The things that will be written there.
    pub(super) for_what: Vec<&'static str>,
}

/// A problem and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) what: String,
    pub(super) remedy: String,
}

/// Returns all problems at once, so that a person can mend them together.
pub(super) fn problems(machine: &Machine) -> Vec<Problem> {
    let engine = match platform(machine) {
        Some(problem) => vec![problem],
        None => c_library(machine).into_iter().chain(libstdcxx(machine)).collect(),
    };
    let disks = machine.disks.iter().filter_map(disk);
    engine
        .into_iter()
        .chain(machine.compiler.as_deref().map(compiler))
        .chain(memory(machine))
        .chain(disks)
        .chain(servers(machine))
        .collect()
}

fn problem(what: String, remedy: &str) -> Problem {
    Problem { what, remedy: remedy.to_owned() }
}

fn platform(machine: &Machine) -> Option<Problem> {
    let (os, cpu) = (machine.os.as_str(), machine.cpu.as_str());
    match (os, cpu) {
        ("linux", "x86_64" | "aarch64") => None,
        ("linux", _) => Some(problem(
            format!("no engine is built for the processor {cpu}"),
            "the engine under the local model is there for x86_64 and aarch64",
        )),
        _ => Some(problem(
            format!("no engine is built for {os}"),
            "the engine under the local model is there for Linux on x86_64 and aarch64",
        )),
    }
}

fn c_library(machine: &Machine) -> Option<Problem> {
    let (least, remedy) = (format!("{}.{}", GLIBC.0, GLIBC.1), "use a newer system, or a container with one");
    match machine.c_library {
        CLibrary::Musl => Some(problem(
            format!("the C library here is musl, and the engine needs glibc {least} or newer"),
            "use a system with glibc, or a container with one, such as Debian or Fedora",
        )),
        CLibrary::Glibc(Some(found)) if found < GLIBC => Some(problem(
            format!("glibc is {}.{}, and the engine needs {least} or newer", found.0, found.1),
            remedy,
        )),
        _ => None,
    }
}

fn libstdcxx(machine: &Machine) -> Option<Problem> {
    // A system without glibc has that as its problem already.
    if !matches!(machine.c_library, CLibrary::Glibc(_)) {
        return None;
    }
    match machine.libstdcxx {
        Libstdcxx::Missing => Some(problem(
            "there is no libstdc++.so.6, which the engine needs".to_owned(),
            "install it: `apt-get install libstdc++6`, `dnf install libstdc++` or `pacman --sync gcc-libs`",
        )),
        Libstdcxx::There(Some(number)) if number < LIBSTDCXX => Some(problem(
            format!(
                "libstdc++.so.6.0.{number} is too old: the engine needs that of GCC 11 (6.0.{LIBSTDCXX})"
            ),
            "install the libstdc++ of a newer GCC, or use a newer system",
        )),
        Libstdcxx::There(_) => None,
    }
}

fn compiler(why: &str) -> Problem {
    problem(
        format!("there is no C compiler that works: {why}"),
        "rustc links with it: `apt-get install gcc libc6-dev`, `dnf install gcc` or `pacman --sync gcc`",
    )
}

fn memory(machine: &Machine) -> Option<Problem> {
    let free = machine.memory_mb.filter(|free| *free < MEMORY_MB)?;
    Some(problem(
        format!("{free} MB of memory are free, and {MEMORY_MB} MB are needed"),
        "close other programs, or raise the limit of the container",
    ))
}

fn disk(disk: &Disk) -> Option<Problem> {
    let Disk { mount, free_mb, needed_mb, for_what } = disk;
    let what = for_what.join(", ");
    (free_mb < needed_mb).then(|| {
        problem(
            format!("{free_mb} MB are free on {mount}, and {needed_mb} MB are needed for {what}"),
            "make room; CARGO_TARGET_DIR, CARGO_HOME and XDG_DATA_HOME name other places",
        )
    })
}

/// If the whole network fails, that is the only problem.
fn servers(machine: &Machine) -> Vec<Problem> {
    match machine.network.as_deref() {
        Some(why) => vec![network(why)],
        None => machine.silent.iter().map(silent).collect(),
    }
}

fn silent(Silent { what, host, why }: &Silent) -> Problem {
    problem(
        format!("{what} comes from {host}, which cannot be reached: {why}"),
        "check the connection; a proxy stands in HTTPS_PROXY, mirrors in NPM_CONFIG_REGISTRY and PIP_INDEX_URL",
    )
}

fn network(why: &str) -> Problem {
    problem(
        format!("the network lets nothing through: {why}"),
        "check the connection; a proxy stands in HTTPS_PROXY, a mirror of the registry in cargo's settings",
    )
}

/// Instructions for using Archon without the demo's model.
const WITHOUT_MODEL: &str = "\
everything but the model in the process works without this. With any server that speaks OpenAI's protocol:
  cargo build -p archon-agents-cli --no-default-features --features yaml
  target/debug/archon run --base-url http://127.0.0.1:8080/v1 --model NAME \"What is 15% of 200?\"
and with no model at all, by a script: cargo run -p archon-agents --example custom_tool";

/// Formats all problems for a person.
pub(super) struct Report(pub(super) Vec<Problem>);

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the demo cannot run on this machine")?;
        for Problem { what, remedy, .. } in &self.0 {
            write!(f, "\n- {what}\n  {remedy}")?;
        }
        write!(f, "\n{WITHOUT_MODEL}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit() -> Machine {
        Machine {
            os: "linux".into(),
            cpu: "x86_64".into(),
            c_library: CLibrary::Glibc(Some((2, 34))),
            libstdcxx: Libstdcxx::There(Some(29)),
            compiler: None,
            memory_mb: Some(MEMORY_MB),
            disks: vec![disk(2_000)],
            network: None,
            silent: Vec::new(),
        }
    }

    fn disk(free_mb: u64) -> Disk {
        Disk { mount: "/".into(), free_mb, needed_mb: 2_000, for_what: vec!["the build", "the model"] }
    }

    fn whats(machine: Machine) -> Vec<String> {
        problems(&machine).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn problems_of_a_machine_that_just_fits_are_none() {
        assert_eq!(problems(&fit()), []);
        assert_eq!(problems(&Machine { cpu: "aarch64".into(), ..fit() }), []);
    }

    #[test]
    fn problems_ignore_unknown_values() {
        let unknown = Machine {
            c_library: CLibrary::Glibc(None),
            libstdcxx: Libstdcxx::There(None),
            memory_mb: None,
            disks: vec![],
            ..fit()
        };
        assert_eq!(problems(&unknown), []);
    }

    #[test]
    fn problems_each_thing_that_is_missing_is_named_with_what_is_needed() {
        let cases = [
            (Machine { os: "macos".into(), ..fit() }, "no engine is built for macos"),
            (Machine { cpu: "riscv64".into(), ..fit() }, "no engine is built for the processor riscv64"),
            (
                Machine { c_library: CLibrary::Musl, libstdcxx: Libstdcxx::Missing, ..fit() },
                "the C library here is musl, and the engine needs glibc 2.34 or newer",
            ),
            (
                Machine { c_library: CLibrary::Glibc(Some((2, 31))), ..fit() },
                "glibc is 2.31, and the engine needs 2.34 or newer",
            ),
            (
                Machine { libstdcxx: Libstdcxx::There(Some(28)), ..fit() },
                "libstdc++.so.6.0.28 is too old: the engine needs that of GCC 11 (6.0.29)",
            ),
            (
                Machine { libstdcxx: Libstdcxx::Missing, ..fit() },
                "there is no libstdc++.so.6, which the engine needs",
            ),
            (
                Machine { compiler: Some("no `cc` on PATH".into()), ..fit() },
                "there is no C compiler that works: no `cc` on PATH",
            ),
            (Machine { memory_mb: Some(700), ..fit() }, "700 MB of memory are free, and 1500 MB are needed"),
            (
                Machine { disks: vec![disk(1_999)], ..fit() },
                "1999 MB are free on /, and 2000 MB are needed for the build, the model",
            ),
            (
                Machine { network: Some("[6] Could not resolve host".into()), ..fit() },
                "the network lets nothing through: [6] Could not resolve host",
            ),
        ];
        for (machine, expected) in cases {
            assert_eq!(whats(machine), [expected]);
        }
    }

    #[test]
    fn problems_of_one_silent_server_name_it_and_of_no_network_name_only_that() {
        let silent = vec![Silent { what: "the engine", host: "npm.example", why: "timed out".into() }];
        let machine = Machine { silent, ..fit() };
        let expected = "the engine comes from npm.example, which cannot be reached: timed out";
        assert_eq!(whats(machine.clone()), [expected]);
        let machine = Machine { network: Some("z".into()), ..machine };
        assert_eq!(whats(machine), ["the network lets nothing through: z"]);
    }

    #[test]
    fn problems_of_several_kinds_are_all_listed() {
        let machine = Machine { compiler: Some("x".into()), network: Some("y".into()), ..fit() };
        assert_eq!(problems(&machine).len(), 2);
    }

    #[test]
    fn report_lists_missing_parts_then_working_ones() {
        let text = Report(problems(&Machine { network: Some("x".into()), ..fit() })).to_string();
        assert!(text.starts_with("the demo cannot run on this machine\n- the network"), "{text}");
        assert!(text.contains("--base-url") && text.contains("--example custom_tool"), "{text}");
    }
}
