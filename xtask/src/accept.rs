//! `cargo xtask accept NAME`: runs an acceptance suite in full length. CI runs a seeded sample of the same
//! tests; here nothing is sampled. `all` runs every suite, with one build for all tests.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::{accept_demo, accept_security, accept_speed, eval, fuzz};

/// A suite: cargo commands in order.
struct Suite {
    name: &'static str,
    commands: &'static [&'static str],
    /// Further commands, if the local model was fetched; of [`MEMORY`], if the embedders were.
    with_model: &'static [&'static str],
}

/// The suite whose models are embedders.
const MEMORY: &str = "memory";

/// The name that stands for every suite.
const ALL: &str = "all";

/// All tests of the workspace in one build, in place of the tests of each suite: most of the time of `all` would
/// be builds of the same crates with other features. The bus needs a server of its own, and the engine from
/// source a compiler: their suites' lines stay.
const ALL_TESTS: &str = "xtask postgres test --profile accept --workspace --exclude archon-redis --no-fail-fast --features archon-agents/tokens,archon-agents/git,archon-agents/mcp-sign-in,archon-agents/mcp-serve-http,archon-agents/server-tls,archon-agents/server-websocket,archon-agents/openai-serve,archon-agents/openapi,archon-agents/hooks,archon-agents/skills,archon-agents/web,archon-agents/triggers,archon-agents/notify-mail,archon-agents/oauth,archon-agents/answers-mail,archon-agents/event-sources-imap,archon-agents-cli/chat,archon-store/encryption,archon-store/sqlite-memory,archon-store/postgres-memory,archon-tests/postgres -- --nocapture";

/// Default seconds for each fuzz target: more than the default of `cargo xtask fuzz`.
const FUZZ_SECONDS: u64 = 1800;

const SUITES: &[Suite] = &[
    Suite {
        name: "skeleton",
        commands: &[
            "test --profile accept -p archon-react-loop --test machine",
            "test --profile accept -p archon-tests",
        ],
        with_model: &["xtask eval local --check", "xtask third-party", "xtask demo"],
    },
    // The engine built from source, for platforms without a prebuilt one.
    Suite {
        name: "engine",
        commands: &[
            "xtask native-tools",
            "xtask prepare",
            "test --profile accept -p archon-local-model --features from-source,pull",
            "clippy -p archon-agents-cli --features local-from-source -- -D warnings",
        ],
        with_model: &[],
    },
    Suite {
        name: "loop",
        commands: &[
            "test --profile accept -p archon-react-loop",
            "test --profile accept -p archon-store --features sqlite",
            "test --profile accept -p archon-tests",
            "test --profile accept -p archon-agents-cli",
            "bench --profile measure -p archon-store --features sqlite",
            "bench --profile measure -p archon-agents --features sqlite --bench loop_cost",
        ],
        with_model: &[],
    },
    Suite {
        name: "providers",
        commands: &[
            "test --profile accept -p archon-providers --all-features",
            "bench -p archon-providers --bench decode",
            "xtask conformance providers",
            "xtask fuzz sse partial_json event_stream",
        ],
        with_model: &[],
    },
    Suite {
        name: "tools",
        commands: &[
            "test --profile accept -p archon-tools --all-features",
            "test --profile accept -p archon-macros",
            "test --profile accept -p archon-store --features encryption --test credentials",
            "bench -p archon-tools --bench call_overhead",
        ],
        with_model: &[],
    },
    Suite {
        name: "mcp",
        commands: &[
            "test --profile accept -p archon-mcp --features sign-in",
            "test --profile accept -p archon-tool-search",
            "test --profile accept -p archon-mcp-serve",
            "test --profile accept -p archon-agents --features mcp-http,mcp-serve-http --test mcp --test tool_search --test mcp_serve",
            // Not by the argument of a test name, with which Cargo builds no examples: the fake server is one.
            "test --profile accept -p archon-agents-cli -- mcp",
            "xtask eval tools --check",
            "xtask conformance mcp",
            "xtask conformance servers",
        ],
        with_model: &[],
    },
    Suite {
        name: "extend",
        commands: &[
            "test --profile accept -p archon-openapi -p archon-skills -p archon-hooks",
            "test --profile accept -p archon-agents --features openapi,mcp,orchestrator,planner,skills --test openapi --test skills --test agent_files --test media",
            "test --profile accept -p archon-agents --features orchestrator,planner,server --test server -- media::",
            "test --profile accept -p archon-providers --all-features --lib -- media_tests::",
            "test --profile accept -p archon-agents-cli --test cli -- agents:: attach:: hooks:: openapi:: openapi_login:: project_instructions:: skills:: trust::",
            // GitHub's document: 1,223 operations.
            "xtask openapi",
            // 500 skills, compared with the reference validator.
            "xtask conformance skills",
        ],
        with_model: &[],
    },
    Suite {
        name: "automate",
        commands: &[
            // Three years of 100 schedules in five zones, against a walk over all minutes.
            "test --profile accept -p archon-triggers -p archon-notify -p archon-oauth --features archon-notify/mail -- --nocapture",
            "test --profile accept -p archon-agents --features triggers --test triggers",
            "test --profile accept -p archon-store --features sqlite --test tasks",
            // 1,000 kills at random points, and an event of another process with each.
            "test --profile accept -p archon-tests -- kill_triggers --nocapture",
            "bench --profile measure -p archon-agents --features sqlite,triggers --bench tasks",
            "test --profile accept -p archon-agents-cli --test cli -- assistant:: questions:: questions_by_mail:: tasks::",
            "test --profile accept -p archon-answers -p archon-event-sources --all-features",
            "test --profile accept -p archon-agents --features answers-mail,event-sources-imap,notify-mail,orchestrator,server --test from_outside --test mail_assistant",
            // Notifications over a websocket.
            "test --profile accept -p archon-agents --features server-websocket,notify --test server -- notifications::",
        ],
        with_model: &[],
    },
    Suite {
        name: "planner",
        commands: &[
            "test --profile accept -p archon-planner --features yaml",
            "test --profile accept -p archon-tests plan",
            "bench -p archon-planner",
        ],
        with_model: &[],
    },
    // `xtask eval memory --check` is not part of it: its conversations may not be redistributed and must be
    // fetched, as must the embedder for the ignored test of `archon-local-embedder`.
    Suite {
        name: MEMORY,
        commands: &[
            "test --profile accept -p archon-vectors -p archon-memory-rank -p archon-memory -p archon-local-embedder",
            "test --profile accept -p archon-providers --all-features embed",
            "test --profile accept -p archon-store --features sqlite-memory --test sqlite_memory",
            "xtask postgres test --profile accept -p archon-store --features postgres-memory --test postgres_memory",
            "xtask postgres test --profile accept -p archon-tests --features postgres memory",
            "test --profile accept -p archon-agents-cli --test cli -- memories:: forget::",
            "bench -p archon-vectors",
            "bench -p archon-store --features sqlite-memory --bench memories",
            "bench -p archon-evals --no-default-features --bench recall",
        ],
        with_model: &[
            "test --profile accept -p archon-agents-cli --test cli -- facts_in_other_words --include-ignored --nocapture",
        ],
    },
    Suite {
        name: "orchestrator",
        commands: &[
            "test --profile accept -p archon-bus -p archon-assistant -p archon-orchestrator",
            "bench --profile measure -p archon-bus -p archon-orchestrator",
            "xtask redis test --profile accept -p archon-redis -- --nocapture",
        ],
        with_model: &[],
    },
    Suite {
        name: "serve",
        commands: &[
            "test --profile accept -p archon-http-access -p archon-server -p archon-openai-serve --features archon-server/tls,archon-server/websocket",
            // The layout of graphs, critical paths, timelines, sources of texts, and the performance of tools.
            "test --profile accept -p archon-views",
            // 200 runs are watched live, late and after a reconnect at each of their records.
            // The time of a record with 200 watchers is printed, and judged by a wide limit.
            "test --profile accept -p archon-agents --features server-tls,server-websocket,memory,notify,planner,openai-serve --test server -- --nocapture",
            // The command is killed under 200 runs.
            "test --profile accept -p archon-agents-cli --test cli -- serve:: --nocapture",
            "test --profile accept -p archon-agents --features openai-serve --test openai_serve",
            "xtask conformance openai",
            // Every view in a browser, with axe; a run of 100,000 records.
            "xtask dashboard",
        ],
        with_model: &[],
    },
    Suite {
        name: "terminal",
        commands: &[
            // Random conversations with resizes, and figures by counts.
            "test --profile accept -p archon-terminal -- --nocapture",
            // Random sequences of effects, edits and undo; a workspace of 20,000 files.
            "test --profile accept -p archon-snapshots -- --nocapture",
            // The same with the tools of an agent.
            "test --profile accept -p archon-agents --features undo,bash --test undo -- --nocapture",
            // The program in a pseudo terminal and in tmux, with its times.
            "test --profile accept -p archon-agents-cli --features chat --test cli -- chat:: --test-threads=1 --nocapture",
        ],
        with_model: &[],
    },
    Suite {
        name: "faults",
        commands: &[
            // Kills and races, damaged logs, a writer that is stopped for 615 seconds, the cost of a history
            // of 4,000 runs.
            "test --profile accept -p archon-agents-cli --test cli -- faults:: damages:: frozen:: history:: --nocapture",
            "test --profile accept -p archon-tests --test tests --test other_programs -- kill storage_failures history_costs --nocapture",
            // Clocks that jump: those of runs, and dates in logs.
            "test --profile accept -p archon-agents --lib run_clock",
            "test --profile accept -p archon-tests --test tests times::",
            // Journals with damage, and lists with a history of 4,000 runs.
            "test --profile accept -p archon-store --features sqlite",
        ],
        with_model: &[],
    },
    Suite { name: "packages", commands: &["xtask registry"], with_model: &[] },
    // Every tutorial in a project of its own: about 25 programs.
    Suite { name: "guide", commands: &["xtask tutorials"], with_model: &[] },
    Suite { name: "features", commands: &["xtask features"], with_model: &[] },
    // Runs the demo from nothing instead of cargo commands: see `accept_demo`.
    Suite { name: accept_demo::NAME, commands: &[], with_model: &[] },
    // Prints a line for each promise: see `accept_security`.
    Suite { name: accept_security::NAME, commands: &[], with_model: &[] },
    // Compares instructions with a hand-written program: see `accept_speed`.
    Suite { name: accept_speed::NAME, commands: &[], with_model: &[] },
];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let seed = args.option("--seed")?;
    let fuzz_seconds = args.option("--fuzz-seconds")?;
    let fuzz_seconds = fuzz_seconds.map_or(Ok(FUZZ_SECONDS), |said| fuzz::seconds(Some(&said)))?;
    let name = args.name()?;
    args.finish()?;
    let suites = if name == ALL { SUITES.iter().collect() } else { vec![named(&name)?] };
    let commands = if name == ALL { all_commands(commands(&suites)) } else { commands(&suites) };
    let mut failed = Vec::new();
    let mut attempt = |step: &str, run: &dyn Fn() -> Result<()>| {
        let begun = Instant::now();
        let result = run();
        println!("{step}: {} s, {}", begun.elapsed().as_secs(), if result.is_ok() { "ok" } else { "FAILED" });
        failed.extend(result.err().map(|error| format!("{error:#}")));
    };
    for line in lines(&commands, seed.as_deref(), fuzz_seconds)? {
        attempt(&line.to_string(), &|| line.run());
    }
    for suite in suites {
        match suite.name {
            accept_demo::NAME => attempt(suite.name, &accept_demo::run),
            accept_security::NAME => attempt(suite.name, &|| accept_security::run(seed.as_deref())),
            accept_speed::NAME => attempt(suite.name, &accept_speed::run),
            _ => {}
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{} steps failed:\n{}", failed.len(), failed.join("\n")) }
}

/// Returns the commands of the suites.
fn commands(suites: &[&Suite]) -> Vec<&'static str> {
    let mut all: Vec<&str> = suites.iter().flat_map(|suite| suite.commands).copied().collect();
    for suite in suites {
        let missing = match suite.name {
            MEMORY => eval::missing_embedder(),
            _ => eval::fetched_model().is_none().then_some(eval::LOCAL_MODEL),
        };
        match missing {
            None => all.extend(suite.with_model),
            Some(name) => suite.with_model.iter().for_each(|line| {
                println!("SKIP: {line}: fetch the model first, `archon model pull {name}`");
            }),
        }
    }
    all
}

/// Replaces the tests of the suites by those of the workspace.
fn all_commands(mut commands: Vec<&'static str>) -> Vec<&'static str> {
    let is_covered = |line: &str| {
        let tests = ["test --profile accept -p ", "xtask postgres test --profile accept -p "];
        tests.iter().any(|start| line.starts_with(start))
            && !line.contains("from-source")
            && !line.contains("--include-ignored")
    };
    commands.retain(|line| !is_covered(line));
    commands.insert(0, ALL_TESTS);
    commands
}

/// Returns the commands. Tests read `ARCHON_ACCEPT` (how much to run) and `ARCHON_ACCEPT_SEED` (seed of
/// random cases).
fn lines(commands: &[&str], seed: Option<&str>, fuzz_seconds: u64) -> Result<Vec<CommandLine>> {
    if let Some(seed) = seed.filter(|seed| seed.parse::<u64>().is_err()) {
        bail!("`--seed {seed}` is not a whole number; leave it out to let the tests choose");
    }
    let seconds = format!(" --seconds {fuzz_seconds}");
    let whole = |line: &&str| format!("{line}{}", if line.starts_with("xtask fuzz") { &seconds } else { "" });
    Ok(commands.iter().map(|line| with_settings(&whole(line), seed)).collect())
}

fn named(name: &str) -> Result<&'static Suite> {
    let known = SUITES.iter().find(|suite| suite.name == name);
    let there = || SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ");
    known.with_context(|| format!("there is no acceptance suite `{name}`; there are: {}, {ALL}", there()))
}

fn with_settings(line: &str, seed: Option<&str>) -> CommandLine {
    let line = CommandLine::cargo(line).env("ARCHON_ACCEPT", "full");
    match seed {
        Some(seed) => line.env("ARCHON_ACCEPT_SEED", seed),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_runs_in_full_with_its_seed() {
        let lines = |name, seed| lines(&commands(&[named(name).unwrap()]), seed, 30).unwrap();
        assert_eq!(
            lines("skeleton", Some("7"))[0].to_string(),
            "ARCHON_ACCEPT=full ARCHON_ACCEPT_SEED=7 cargo test --profile accept -p archon-react-loop --test machine"
        );
        assert_eq!(
            lines("providers", None).last().map(ToString::to_string).as_deref(),
            Some("ARCHON_ACCEPT=full cargo xtask fuzz sse partial_json event_stream --seconds 30")
        );
    }

    #[test]
    fn all_builds_the_tests_of_the_workspace_once() {
        let commands = all_commands(commands(&SUITES.iter().collect::<Vec<_>>()));
        // Those of fetched models are not there on each machine.
        let is_test =
            |line: &&&str| line.contains("test --profile accept") && !line.contains("--include-ignored");
        let tests: Vec<_> = commands.iter().filter(is_test).collect();
        assert_eq!(tests.len(), 3, "{tests:?}");
        assert_eq!(*tests[0], ALL_TESTS);
    }

    #[test]
    fn an_unknown_suite_is_refused_with_the_names_of_all() {
        let error = |name| named(name).err().unwrap().to_string();
        assert_eq!(
            error("lunch"),
            "there is no acceptance suite `lunch`; there are: skeleton, engine, loop, providers, tools, mcp, extend, automate, planner, memory, orchestrator, serve, terminal, faults, packages, guide, features, demo, security, speed, all"
        );
        assert_eq!(
            lines(&[], Some("x"), 1).err().unwrap().to_string(),
            "`--seed x` is not a whole number; leave it out to let the tests choose"
        );
    }
}
