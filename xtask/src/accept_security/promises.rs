//! The promises of `SECURITY.md`, and the tests behind each.

use crate::layers;

/// A promise and its tests.
pub(super) struct Promise {
    /// Text of the printed line.
    pub(super) text: &'static str,
    /// The package, and the flags to build its tests.
    pub(super) build: &'static str,
    /// Names of tests, or parts of them; each must be found.
    pub(super) tests: &'static [&'static str],
    /// It rests on the kernel, so it is tested as an ordinary user, too.
    pub(super) of_kernel: bool,
}

const TOOLS: &str = "-p archon-tools --all-features";
const CLI: &str = "-p archon-agents-cli";
const WHOLE: &str = "-p archon-tests";

const fn promise(text: &'static str, build: &'static str, tests: &'static [&'static str]) -> Promise {
    Promise { text, build, tests, of_kernel: false }
}

const fn of_kernel(text: &'static str, tests: &'static [&'static str]) -> Promise {
    Promise { text, build: TOOLS, tests, of_kernel: true }
}

impl Promise {
    /// Returns the package's folder, in which cargo would run its tests.
    pub(super) fn folder(&self) -> Option<String> {
        let package = self.build.split_whitespace().nth(1)?;
        Some(if package == "archon-tests" { "tests".to_owned() } else { layers::folder(package) })
    }
}

pub(super) const PROMISES: &[Promise] = &[
    promise(
        "options before a subcommand hide it from no rule",
        TOOLS,
        &["ruling_of_options_before_a_subcommand"],
    ),
    promise(
        "a line with a form of the shell that is not understood needs its exact rule",
        TOOLS,
        &["analyse_of_a_dollar_that_is_no_plain_variable_refuses_the_line"],
    ),
    promise(
        "a rule for a program allows its harmless options only",
        TOOLS,
        &[
            "ruling_of_an_option_or_program_that_is_not_known_to_be_harmless",
            "ruling_of_words_and_harmless_options_behind_them_allows",
            "shell_rules_allowed_random_lines_run_and_write_only_what_the_rules_name",
        ],
    ),
    promise(
        "lines that people use are seldom asked about",
        TOOLS,
        &["ruling_of_harmless_lines_under_the_rules"],
    ),
    of_kernel(
        "a command changes no control file, and a whole flow of git works",
        &[
            "a_command_changes_no_control_file_and_makes_none",
            "sandbox_detects_renamed_and_hidden_control_files",
            "a_command_in_a_workspace_that_cannot_be_listed_is_refused",
            "sandbox_without_root_restores_changed_control_files",
            "a_whole_flow_of_git_works",
        ],
    ),
    promise(
        "a file tool asks about a control file each time",
        TOOLS,
        &[
            "file_tool_asks_about_control_files_despite_allow_rules",
            "a_control_file_is_written_by_its_own_path_only",
            "decides_is_true_for_files_named_by_git_settings_in_every_tree",
        ],
    ),
    of_kernel(
        "Archon's own folders are not there for commands",
        &[
            "folders_that_belong_to_no_workspace",
            "sandbox_refuses_commands_if_a_private_folder_cannot_be_hidden",
        ],
    ),
    promise(
        "Archon's own folders are in no workspace of the command, and an answer without a seal is not heard",
        CLI,
        &[
            "a_workspace_that_holds_the_settings_and_the_data_folder_does_not_reach_into_them",
            "forged_inbox_answer_does_not_approve_a_call",
        ],
    ),
    promise(
        "a project's settings choose nobody who listens before a person agreed",
        CLI,
        &[
            "project_settings_for_models_and_tools_have_no_effect_before_an_agreement",
            "on_a_terminal_the_settings_are_shown_and_only_a_yes_agrees",
        ],
    ),
    promise(
        "a setting that weakens a protection is said",
        CLI,
        &["weakened_protection_is_announced_at_the_start_of_a_run"],
    ),
    promise(
        "a yes for always is kept for its workspace",
        CLI,
        &["prompt_always_stores_a_rule_for_the_workspace"],
    ),
    promise(
        "files that are kept are for their owner alone",
        CLI,
        &["data_directory_is_readable_by_its_owner_only"],
    ),
    promise(
        "keys typed before a question answer nothing",
        CLI,
        &["terminal_approval_ignores_input_typed_before_the_question"],
    ),
    promise(
        "a yes to a file is for where its path led",
        WHOLE,
        &["approval_of_a_file_is_bound_to_its_resolved_path", "destructive_tool_needs_approval_by_default"],
    ),
    promise(
        "a path that is swapped for a link leads nowhere else",
        TOOLS,
        &[
            "a_call_that_was_let_through_goes_nowhere_else",
            "shows_no_names_from_outside",
            "write_paths_cannot_escape_the_workspace",
        ],
    ),
    promise(
        "a line that makes links or moves files redirects by no rule",
        TOOLS,
        &["ruling_does_not_allow_a_redirection_next_to_link_or_move_commands"],
    ),
    promise(
        "denied paths hold for the words of command lines",
        TOOLS,
        &["ruling_of_a_command_with_a_denied_path_among_its_words_denies"],
    ),
    of_kernel(
        "denied paths hold for whatever a command opens",
        &["sandbox_denied_files_cannot_be_read", "sandbox_denied_files_cannot_be_written"],
    ),
    of_kernel(
        "mounts hold the commands of an ordinary user",
        &["an_ordinary_user_s_commands_are_held_by_mounts"],
    ),
    of_kernel(
        "commands read toolchains that a person's PATH names, and no credentials",
        &["find_of_a_search_path_reads_its_toolchains", "with_toolchains_of_a_workspace_s_own_folder"],
    ),
    promise(
        "a session of programming under the documented rules is seldom asked about",
        CLI,
        &["run_of_a_coding_session_under_the_documented_rules"],
    ),
    of_kernel("a command inherits no descriptor", &["a_command_has_no_descriptor_that_we_were_started_with"]),
    of_kernel(
        "a command changes no modes or times outside, and makes no program that runs as its owner",
        &["modes_and_times_outside_of_the_workspace", "a_command_makes_no_program_that_runs_as_its_owner"],
    ),
    of_kernel(
        "a command reaches no shared memory by number",
        &["a_command_reaches_no_shared_memory_by_its_number"],
    ),
    of_kernel("a command schedules nobody else", &["sandbox_command_cannot_change_the_scheduling_of_others"]),
    of_kernel("a command makes no namespaces", &["a_command_has_no_namespaces_of_its_own"]),
    of_kernel(
        "memory and disks are limited",
        &[
            "the_memory_of_all_processes_is_limited",
            "a_command_that_fills_a_disk_is_stopped",
            "sandbox_scratch_folder_has_a_size_limit",
        ],
    ),
    of_kernel(
        "nothing is left of a call, nor of a process that was killed",
        &[
            "sandbox_leaves_no_files_or_processes_after_a_call",
            "the_scratch_folder_of_a_process_that_was_killed_goes",
        ],
    ),
    of_kernel(
        "no program of the workspace takes the place of one of the system's",
        &["a_program_of_the_workspace_takes_the_place_of_none"],
    ),
    promise("files get at most 64 new folders", TOOLS, &["a_file_gets_at_most_64_new_folders"]),
    promise(
        "nothing from outside steers a terminal",
        CLI,
        &[
            "are_printed_with_escaped_control_characters",
            "streamed_answer_on_a_terminal_is_escaped",
            "model_names_of_a_server_are_printed_escaped_on_one_line",
        ],
    ),
    promise(
        "an inbox deletes no file by a message's id, and no pipe stops a listing",
        "-p archon-store --features sqlite-memory",
        &[
            "a_message_whose_id_is_another_path_deletes_nothing",
            "named_pipe_in_place_of_a_log_does_not_block",
            "sqlite_memory_foreign_triggers_do_not_run",
        ],
    ),
    promise(
        "one answer has limits, and no key goes over plain http elsewhere",
        "-p archon-providers --all-features",
        &[
            "an_answer_that_is_past_a_limit_ends_with_the_limit",
            "http_check_refuses_secrets_over_plain_http_except_to_loopback",
            "the_key_is_sent_and_never_shown",
        ],
    ),
    promise(
        "keys are in no log and on no screen, in no form",
        WHOLE,
        &["model_key_never_appears_in_any_encoding"],
    ),
    promise(
        "an assistant's words come back as its own",
        WHOLE,
        &["recalled_assistant_message_is_attributed_and_next_to_the_persons"],
    ),
    promise(
        "no result hides a part of itself or ends its turn",
        TOOLS,
        &[
            "internal_results_are_hidden_only_for_annotated_tools",
            "chat_template_tokens_are_escaped_for_the_model_only",
        ],
    ),
    promise(
        "no result ends its own fence",
        "-p archon-react-loop",
        &["text_mode_result_cannot_imitate_the_end_of_its_tag"],
    ),
    promise(
        "no text opens a turn of the local model's template, and no download is longer than declared",
        "-p archon-local-model --features engine,pull",
        &["prompt_write_escapes_template_tokens_in_all_texts", "from_a_server_that_sends_more_than_there_is"],
    ),
    promise(
        "own addresses are private, rules match hosts, deep pages are refused",
        TOOLS,
        &[
            "addresses_of_the_internet_are_refused_where_they_are_of_this_machine",
            "ruling_of_an_address_holds_scheme_host_and_path",
            "laid_out_refuses_deeply_nested_pages_of_any_tags",
        ],
    ),
];
