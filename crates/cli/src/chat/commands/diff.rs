//! `/diff`: the changes of the workspace since the last commit, and its new files.

use archon::types::{ToolResult, ToolResultStatus};
use serde_json::json;

use super::{Situation, call::call};
use crate::{
    app::App,
    failure::Failure,
    output::Look,
    text::{one_line, visible_path},
    toolset,
};

/// The maximum number of printed lines.
const LINES: usize = 500;
/// The maximum number of characters of git's reason.
const SHOWN: usize = 400;

pub(super) fn print(situation: &Situation<'_>) {
    let app = situation.app.clone();
    situation.spawn(async move {
        let status = call(&app, None, "git_status", json!({})).await?;
        if status.status != ToolResultStatus::Success {
            return Err(failure(&app, &status));
        }
        let status = status.text();
        let new: Vec<&str> = status.lines().filter_map(|line| line.strip_prefix("?? ")).collect();
        let diff = call(&app, None, "git_diff", json!({})).await?;
        let has_commit = diff.status == ToolResultStatus::Success;
        app.hint_if(
            !has_commit,
            "there is no commit to compare with, so only the state of the files is shown",
        );
        let text = if has_commit { diff.text() } else { status.clone() };
        let mut lines = text.lines();
        for line in lines.by_ref().take(LINES) {
            app.output.note(look(line), line);
        }
        let more = lines.count();
        app.hint_if(more > 0, format!("{more} more lines: git diff"));
        new.iter()
            .filter(|_| has_commit)
            .for_each(|file| app.output.note(Look::Added, format!("new file: {file}")));
        Ok(())
    });
}

fn failure(app: &App, result: &ToolResult) -> Failure {
    let text = result.text();
    let folder = toolset::folder(app).map(|folder| visible_path(&folder)).unwrap_or_default();
    match text.contains("not a git repository") {
        true => Failure::usage(format!("{folder} is in no git repository"), "git init begins one"),
        false => Failure::failed(
            format!("git cannot show the changes of {folder}: {}", one_line(&text, SHOWN)),
            "look with !git status",
        ),
    }
}

fn look(line: &str) -> Look {
    match line {
        _ if line.starts_with("+++") || line.starts_with("---") => Look::Dim,
        _ if line.starts_with('+') => Look::Added,
        _ if line.starts_with('-') => Look::Removed,
        _ if line.starts_with("@@") || line.starts_with("diff ") || line.starts_with("index ") => Look::Dim,
        _ => Look::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_of_a_line_follows_from_its_sign() {
        for (line, expected) in [
            ("+new", Look::Added),
            ("-old", Look::Removed),
            (" same", Look::Plain),
            ("+++ b/file", Look::Dim),
            ("--- a/file", Look::Dim),
            ("@@ -1 +1 @@", Look::Dim),
        ] {
            assert_eq!(look(line), expected, "{line}");
        }
    }
}
