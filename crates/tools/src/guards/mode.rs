//! Guard: applies the mode of the session. In plan mode only tools that change nothing run; the guard `Consent`
//! asks no question about edits that the mode accepts.

use std::path::{Path, PathBuf};

use archon_types::{Context, Effect, PLAN_TOOL, SessionMode, Subject, ToolSpec};

use crate::guard::{Guard, Inspection, Verdict};

pub(crate) struct Mode;

impl Guard for Mode {
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let Some(tool) = &inspection.tool else { return Verdict::Pass };
        let (spec, run) = (&tool.spec, inspection.run);
        // A person agreed to exactly this call, or chooses all calls of this engine.
        if run.agreed.is_some() || run.agreed_above || !inspection.options.has_plan_mode {
            return Verdict::Pass;
        }
        match (run.mode.get(), spec.name == PLAN_TOOL) {
            (SessionMode::Plan, false) if !is_for_plan_mode(spec) => {
                let has_plan_tool = !is_called(run) && inspection.registry.find(PLAN_TOOL).is_some();
                Verdict::refuse("permission_denied", plan_mode(&spec.name, has_plan_tool))
            }
            (SessionMode::Plan, true) if is_called(run) => Verdict::refuse(
                "permission_denied",
                format!(
                    "Tool '{PLAN_TOOL}' asks a person about the plan of the session, and another agent called you. It \
                     was not run. Write what you found, and the plan if you were asked for one, as your answer: your \
                     caller goes on with it."
                ),
            ),
            (SessionMode::Ask | SessionMode::AcceptEdits, true) => Verdict::refuse(
                "permission_denied",
                format!(
                    "Tool '{PLAN_TOOL}' ends plan mode, and the session is not in plan mode. It was not run. Go on \
                     with the work, or write the plan in your answer."
                ),
            ),
            _ => Verdict::Pass,
        }
    }
}

/// Returns true if a tool runs in plan mode. An agent does, because the mode also applies to its own calls.
fn is_for_plan_mode(spec: &ToolSpec) -> bool {
    spec.annotations.effect == Effect::ReadOnly || spec.annotations.agent
}

/// Returns true if another run called this run. In such a run `finish_plan` is refused, because a person's approval of
/// its plan would not end the plan mode of the session.
fn is_called(run: &Context) -> bool {
    run.depth > 0
}

fn plan_mode(tool: &str, has_plan_tool: bool) -> String {
    let way = match has_plan_tool {
        true => format!("call {PLAN_TOOL} with the whole plan; a person decides about it"),
        false => "write the whole plan as your answer".to_owned(),
    };
    format!(
        "Tool '{tool}' may change something, and the session is in plan mode, in which nothing is changed. It was not \
         run. Go on with tools that only read. When you know what has to be done, {way}."
    )
}

/// Returns true if the mode of the session accepts a call without a question: the call changes files of the
/// workspace, and nothing else. Git's own files are left out, because no undo takes back a change of them.
pub(crate) fn is_accepted_edit(spec: &ToolSpec, subject: &Subject, run: &Context) -> bool {
    if run.mode.get() != SessionMode::AcceptEdits {
        return false;
    }
    let edits_files = spec.annotations.permissions == ["fs_write"] && !spec.annotations.requires_confirmation;
    let is_inside = match subject {
        Subject::Paths { root, paths } => {
            let is_own = |path: &PathBuf| path.strip_prefix(root).is_ok_and(|path| !is_of_git(path));
            !paths.is_empty() && paths.iter().all(is_own)
        }
        _ => false,
    };
    edits_files && is_inside
}

fn is_of_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}
