//! The command line: global flags and the list of commands.
//!
//! Each command has its arguments in its file under `commands/`.

use std::path::PathBuf;

use clap::{ArgAction, Parser};

use crate::commands::Command;

/// Runs agents that think, act with tools and answer, and keeps a log of everything they do.
#[derive(Debug, Parser)]
#[command(name = "archon", version, propagate_version = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// The command; without one, a conversation on the terminal.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// Folder for runs and models [default: the user's data directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print JSON: one record, delta or item per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Let runs wait for an answer instead of asking on the terminal; see `archon approvals`
    #[arg(long, global = true)]
    pub(crate) ask_later: bool,
    /// Log more; repeat for still more. RUST_LOG sets it exactly
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

const AFTER_HELP: &str = "\
Keys: from the variable of the service, as OPENAI_API_KEY; more of them as OPENAI_API_KEY_2, _3 and so on,
tried in this order. Where none is set: the keys that `archon credentials add SERVICE` has stored, encrypted.
Exit codes: 0 finished, 1 failed, 2 usage, 3 suspended, 4 a limit was reached, 5 a call was not
allowed and nobody could be asked (see --allow), 129 the terminal has gone, 130 interrupted.
Settings: flags, then ARCHON_* variables, then ./archon.toml, then the user's archon.toml.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: Expect) {
        let words = std::iter::once("archon").chain(line.split(' ').filter(|w| !w.is_empty()));
        let seen = match Args::try_parse_from(words) {
            Ok(args) => format!("{args:?}"),
            Err(e) => format!("exit {}: {}", e.exit_code(), e.to_string().lines().next().unwrap_or_default()),
        };
        expected.assert_eq(&seen);
    }

    #[test]
    fn the_definitions_hold_together() {
        Args::command().debug_assert();
    }

    #[test]
    fn args_of_command_lines_are_parsed() {
        check(
            "run hello",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Run(RunArgs { model: ModelFlags { model: None, base_url: None }, tools: ToolFlags { tools: None, workspace: None }, work: WorkFlags { agent: AgentFlags { fallback: None, project_file: None, limits: LimitFlags { max_turns: None, max_tokens: None, max_cost: None, max_duration: None }, mode: None, thinking: None, output_level: None, record: None, replay: None }, allow: AllowFlags { allow: [] }, output: OutputFlags { schema: None }, session: SessionFlags { go_on: false, session: None }, memory: MemoryFlags { memory: None, vectors: EmbedderFlags { embedder: None } } }, plan: false, confirm: false, attach: [], task: ["hello"] })) }"#
            ]],
        );
        check(
            "run --model M --base-url http://h/v1 --tools a,b --max-turns 3 --workspace W --mode text --session s hi",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Run(RunArgs { model: ModelFlags { model: Some("M"), base_url: Some("http://h/v1") }, tools: ToolFlags { tools: Some(Names(["a", "b"])), workspace: Some("W") }, work: WorkFlags { agent: AgentFlags { fallback: None, project_file: None, limits: LimitFlags { max_turns: Some(3), max_tokens: None, max_cost: None, max_duration: None }, mode: Some(Text), thinking: None, output_level: None, record: None, replay: None }, allow: AllowFlags { allow: [] }, output: OutputFlags { schema: None }, session: SessionFlags { go_on: false, session: Some("s") }, memory: MemoryFlags { memory: None, vectors: EmbedderFlags { embedder: None } } }, plan: false, confirm: false, attach: [], task: ["hi"] })) }"#
            ]],
        );
        check(
            "run --continue --json --data-dir D -vv hi",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: Some("D"), json: true, ask_later: false, verbose: 2 }, command: Some(Run(RunArgs { model: ModelFlags { model: None, base_url: None }, tools: ToolFlags { tools: None, workspace: None }, work: WorkFlags { agent: AgentFlags { fallback: None, project_file: None, limits: LimitFlags { max_turns: None, max_tokens: None, max_cost: None, max_duration: None }, mode: None, thinking: None, output_level: None, record: None, replay: None }, allow: AllowFlags { allow: [] }, output: OutputFlags { schema: None }, session: SessionFlags { go_on: true, session: None }, memory: MemoryFlags { memory: None, vectors: EmbedderFlags { embedder: None } } }, plan: false, confirm: false, attach: [], task: ["hi"] })) }"#
            ]],
        );
        check(
            "--json --data-dir D runs list",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: Some("D"), json: true, ask_later: false, verbose: 0 }, command: Some(Runs(List { all: false, status: [], pruned: false })) }"#
            ]],
        );
        check(
            "runs show r1 --json",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: true, ask_later: false, verbose: 0 }, command: Some(Runs(Show(WhichRun { run: "r1" }))) }"#
            ]],
        );
        check(
            "runs fork r1 --at 3",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Runs(Fork(ForkArgs { which: WhichRun { run: "r1" }, at: Some(3), record: None, message: None, model: ModelFlags { model: None, base_url: None } }))) }"#
            ]],
        );
        check(
            "sessions export s1 --out f.json",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Sessions(Export { session: "s1", out: Some("f.json") })) }"#
            ]],
        );
        check(
            "plan --format dot see Paris",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Plan(PlanArgs { command: None, model: ModelFlags { model: None, base_url: None }, tools: ToolFlags { tools: None, workspace: None }, work: WorkFlags { agent: AgentFlags { fallback: None, project_file: None, limits: LimitFlags { max_turns: None, max_tokens: None, max_cost: None, max_duration: None }, mode: None, thinking: None, output_level: None, record: None, replay: None }, allow: AllowFlags { allow: [] }, output: OutputFlags { schema: None }, session: SessionFlags { go_on: false, session: None }, memory: MemoryFlags { memory: None, vectors: EmbedderFlags { embedder: None } } }, format: Some(Dot), execute: false, confirm: false, template: None, set: [], goal: ["see", "Paris"] })) }"#
            ]],
        );
        check(
            "plan --data-dir D show r1 --format mermaid",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: Some("D"), json: false, ask_later: false, verbose: 0 }, command: Some(Plan(PlanArgs { command: Some(Show { which: WhichRun { run: "r1" }, format: Some(Mermaid) }), model: ModelFlags { model: None, base_url: None }, tools: ToolFlags { tools: None, workspace: None }, work: WorkFlags { agent: AgentFlags { fallback: None, project_file: None, limits: LimitFlags { max_turns: None, max_tokens: None, max_cost: None, max_duration: None }, mode: None, thinking: None, output_level: None, record: None, replay: None }, allow: AllowFlags { allow: [] }, output: OutputFlags { schema: None }, session: SessionFlags { go_on: false, session: None }, memory: MemoryFlags { memory: None, vectors: EmbedderFlags { embedder: None } } }, format: None, execute: false, confirm: false, template: None, set: [], goal: [] })) }"#
            ]],
        );
        check(
            "memory search --memory user:anna --limit 2 what now",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Memory(Search { of: Of { collection: "user:anna", vectors: EmbedderFlags { embedder: None } }, limit: 2, question: ["what", "now"] })) }"#
            ]],
        );
        check(
            "replay r1",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Replay(WhichRun { run: "r1" })) }"#
            ]],
        );
        check(
            "resume r1",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Resume(ResumeArgs { flags: RecordedFlags { model: ModelFlags { model: None, base_url: None }, tools: ToolFlags { tools: None, workspace: None }, allow: AllowFlags { allow: [] } }, more: MoreFlags { max_turns: None, max_tokens: None, max_cost: None, max_duration: None }, all: false, run: Some("r1") })) }"#
            ]],
        );
        check(
            "tools call calculator {\"expression\":\"2+2\"}",
            expect![[
                r#"Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Tools(Call { flags: ToolFlags { tools: None, workspace: None }, allow: AllowFlags { allow: [] }, name: "calculator", arguments: ["{\"expression\":\"2+2\"}"] })) }"#
            ]],
        );
        check(
            "model pull",
            expect![
                "Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Model(Pull { name: None })) }"
            ],
        );
        check(
            "schema events",
            expect![
                "Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Schema(Events)) }"
            ],
        );
        check(
            "doctor",
            expect![
                "Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: Some(Doctor(DoctorArgs { fix: false, assistant: None, model: ModelFlags { model: None, base_url: None }, tools: ToolFlags { tools: None, workspace: None } })) }"
            ],
        );
    }

    // spec: CL-01
    #[test]
    fn args_without_a_command_are_parsed_and_have_none() {
        check(
            "",
            expect![
                "Args { global: GlobalArgs { data_dir: None, json: false, ask_later: false, verbose: 0 }, command: None }"
            ],
        );
    }

    #[test]
    fn wrong_command_lines_are_usage_errors() {
        check("run", expect!["exit 2: error: the following required arguments were not provided:"]);
        check(
            "run --continue --session s hi",
            expect!["exit 2: error: the argument '--continue' cannot be used with '--session <NAME>'"],
        );
        check("plan", expect!["exit 2: error: the following required arguments were not provided:"]);
        check("team resume team.toml r1", expect!["exit 2: error: unrecognized subcommand 'resume'"]);
        check("run --mode loud hi", expect!["exit 2: error: invalid value 'loud' for '--mode <MODE>'"]);
        check("run --max-turns -1 hi", expect!["exit 2: error: unexpected argument '-1' found"]);
        check(
            "run --max-turns 0 hi",
            expect!["exit 2: error: invalid value '0' for '--max-turns <N>': 0 is not in 1..=4294967295"],
        );
        check(
            "memory list --memory a::b",
            expect![
                "exit 2: error: invalid value 'a::b' for '--memory <COLLECTION>': `a::b` is not a valid collection name: it has an empty part"
            ],
        );
        check("rnu hi", expect!["exit 2: error: unrecognized subcommand 'rnu'"]);
        check("schema nothing", expect!["exit 2: error: unrecognized subcommand 'nothing'"]);
    }
}
