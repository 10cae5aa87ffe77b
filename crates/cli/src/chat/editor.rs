//! The person's editor, for a draft that is long.

use std::{
    io::{self, Write as _},
    process::Stdio,
};

use tokio::process::{Child, Command};

use crate::{app::App, failure::Failure};

/// A draft that is open in the editor.
pub(crate) struct Editing {
    file: tempfile::NamedTempFile,
    editor: String,
    child: Child,
}

impl Editing {
    /// Writes a draft into a file that only the person can read, and opens it in the editor of `$VISUAL`, otherwise of
    /// `$EDITOR`.
    ///
    /// # Errors
    /// [`Failure`] if there is no editor, or it does not start.
    pub(crate) fn open(app: &App, text: &str) -> Result<Self, Failure> {
        let editor = app.env("VISUAL").or_else(|| app.env("EDITOR")).map(str::trim);
        let Some(editor) = editor.filter(|editor| !editor.is_empty()) else {
            let advice = "set the variable VISUAL or EDITOR, as in: export EDITOR=nano";
            return Err(Failure::usage("there is no editor for the draft", advice));
        };
        let cannot = |e: io::Error| failure(editor, &e.to_string());
        let mut file =
            tempfile::Builder::new().prefix("archon-draft-").suffix(".md").tempfile().map_err(cannot)?;
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(cannot)?;
        let child = command(editor, file.path())
            .stdin(Stdio::inherit())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(cannot)?;
        Ok(Self { editor: editor.to_owned(), file, child })
    }

    /// Waits until the editor has ended, and returns the text of the file without its last line end.
    ///
    /// # Errors
    /// [`Failure`] if the editor failed, or the file is no text any more. The draft is unchanged then.
    pub(crate) async fn text(&mut self) -> Result<String, Failure> {
        let status = self.child.wait().await.map_err(|e| failure(&self.editor, &e.to_string()))?;
        if !status.success() {
            return Err(failure(&self.editor, &status.to_string()));
        }
        // An editor may have put a new file in the place of the old one.
        let read = std::fs::read_to_string(self.file.path());
        let text = read.map_err(|e| failure(&self.editor, &e.to_string()))?.replace("\r\n", "\n");
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

fn failure(editor: &str, why: &str) -> Failure {
    let advice = "the draft is unchanged; check the variables VISUAL and EDITOR";
    Failure::failed(format!("the editor `{editor}` failed: {why}"), advice)
}

/// Returns the command. The variable may have arguments, and quotation marks as in a shell.
#[cfg(unix)]
fn command(editor: &str, path: &std::path::Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(path);
    command
}

/// Returns the command. The variable may have arguments behind spaces.
#[cfg(not(unix))]
fn command(editor: &str, path: &std::path::Path) -> Command {
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(editor));
    command.args(words).arg(path);
    command
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn app(editor: &str) -> App {
        let mut app = App::of(Settings::default());
        app.sources.env = [("EDITOR".to_owned(), editor.to_owned())].into();
        app
    }

    async fn edit(editor: &str) -> Result<String, Failure> {
        Editing::open(&app(editor), "one\n")?.text().await
    }

    #[tokio::test]
    async fn text_of_the_editor_is_that_of_the_file_without_the_last_line_end() {
        assert_eq!(edit("sed -i s/one/two/").await.unwrap(), "two");
        assert_eq!(edit("sh -c 'echo \"a b\" >> \"$0\"'").await.unwrap(), "one\na b");
    }

    #[tokio::test]
    async fn editor_that_fails_or_is_missing_is_an_error_with_advice() {
        for (editor, what) in [
            ("false", "the editor `false` failed: exit status: 1"),
            (" ", "there is no editor for the draft"),
            ("archon-no-such-editor", "exit status: 127"),
        ] {
            let failure = edit(editor).await.unwrap_err();
            assert!(failure.what().contains(what) && failure.advice_line().contains("EDITOR"), "{failure:?}");
        }
    }
}
