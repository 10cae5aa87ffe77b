//! Runs the commands of a page's `console` and `sh` blocks in a folder of their own, against the scripted model, and
//! compares the output of `console` with the page.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::checks;
use super::output::{self, Ids};
use super::scripted_model::{Answer, ScriptedModel};
use super::session::{self, Ran, Step, Verdict};
use crate::markdown::{self, Block, Fence};
use crate::repository::TextFile;

/// The settings of the person who reads the page.
const SETTINGS: &str = "model = \"openai:gpt-5-mini\"\n";
/// Only a command that hangs takes so long, also where the processor is busy with other work.
const PATIENCE: Duration = Duration::from_secs(240);

/// Runs all commands of a page in `folder`, which must not exist; `program` is the built `archon`.
pub(crate) fn run(page: &TextFile, program: &Path, folder: &Path) -> Result<Ran> {
    let mut place = Place::create(program, folder)?;
    let mut problems = Vec::new();
    let (mut differences, mut changes) = (Vec::new(), Vec::new());
    for block in markdown::blocks(&page.text) {
        match block {
            Block::Comment(line, text) => match place.answers(&text) {
                Ok(()) => {}
                Err(error) => problems.push(format!("{}:{line}: {error:#}", page.path)),
            },
            Block::Fence(fence) => {
                place.write_file(&fence)?;
                for step in steps(&fence) {
                    let at = |text| format!("{}:{}: {text}", page.path, step.line);
                    match place.check(&step)? {
                        Verdict::Fits => {}
                        Verdict::Problem(problem) => problems.push(at(problem)),
                        Verdict::Differs(difference, printed) => {
                            differences.push(at(difference));
                            changes.push((step, printed));
                        }
                    }
                }
            }
        }
    }
    match place.model.unused() {
        0 => {}
        left => problems.push(format!("{}: no command used {left} of the model's answers", page.path)),
    }
    Ok(Ran { problems, differences, updated: session::updated(&page.text, changes) })
}

fn steps(fence: &Fence) -> Vec<Step> {
    match fence.language() {
        "console" => session::steps(fence),
        "sh" if checks::is_run(fence) => {
            let (line, command) = (fence.line + 1, fence.lines.join("\n"));
            vec![Step { line, command, shown: vec![output::ANY_LINES.to_owned()], shown_at: line }]
        }
        _ => vec![],
    }
}

/// A home directory, with a folder for the page's project inside.
struct Place {
    home: PathBuf,
    path: String,
    model: ScriptedModel,
    ids: Ids,
}

impl Place {
    fn create(program: &Path, home: &Path) -> Result<Self> {
        let settings = home.join(".config/archon");
        fs::create_dir_all(&settings).with_context(|| format!("cannot create {}", settings.display()))?;
        fs::create_dir_all(home.join("project"))?;
        let model = ScriptedModel::start()?;
        // The price of the real model, so that pages can limit and show money.
        let price = format!("\n[models.\"openai@{}:gpt-5-mini\"]\ninput = 0.25\noutput = 2\n", model.url());
        fs::write(settings.join("archon.toml"), SETTINGS.to_owned() + &price)?;
        let folder = |program: &Path| program.parent().unwrap_or(program).display().to_string();
        // Cargo names itself here; the program of that name on the path may be rustup's, which needs the real home.
        let cargo = env::var_os("CARGO").map(PathBuf::from).unwrap_or_default();
        let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", folder(program), folder(&cargo));
        Ok(Self { home: home.to_owned(), path, model, ids: Ids::default() })
    }

    /// Takes the answers of a comment that begins with `model`.
    fn answers(&self, comment: &str) -> Result<()> {
        let Some(lines) = comment.strip_prefix("model\n") else { return Ok(()) };
        lines.lines().filter(|line| !line.trim().is_empty()).try_for_each(|line| {
            self.model.push(Answer::parse(line)?);
            Ok(())
        })
    }

    /// Writes a block below a comment `file: NAME` to that file of the project.
    fn write_file(&self, fence: &Fence) -> Result<()> {
        let Some(name) = fence.comment.as_deref().and_then(|comment| comment.strip_prefix("file: ")) else {
            return Ok(());
        };
        let path = self.home.join("project").join(name.trim());
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(&path, fence.lines.join("\n") + "\n")
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn check(&mut self, step: &Step) -> Result<Verdict> {
        if let [id, ..] = self.ids.unknown(&step.command)[..] {
            return Ok(Verdict::Problem(format!("no output above this command has {id}")));
        }
        let (exit, printed) = self.execute(&self.ids.to_real(&step.command))?;
        Ok(session::verdict(step, exit, &printed, &mut self.ids))
    }

    fn execute(&self, command: &str) -> Result<(Option<i32>, Vec<String>)> {
        // In a file, so that a process that the command leaves behind cannot block us.
        let file = self.home.join(".output");
        let printed = File::create(&file).with_context(|| format!("cannot write {}", file.display()))?;
        let child = Command::new("sh")
            .args(["-ec", command])
            .current_dir(self.home.join("project"))
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", &self.path)
            .envs([
                ("LANG", "C.UTF-8"),
                ("TZ", "UTC"),
                ("COLUMNS", "100"),
                ("NO_COLOR", "1"),
                ("CARGO_NET_OFFLINE", "true"),
            ])
            .env("ARCHON_LOCAL_SERVERS", "none")
            .env("ARCHON_BASE_URL", self.model.url())
            .stdin(Stdio::null())
            .stdout(printed.try_clone()?)
            .stderr(printed)
            .spawn()
            .with_context(|| format!("cannot start `{command}`"))?;
        let exit = session::wait(child, command, PATIENCE)?;
        let text = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
        let text = text
            .replace(&format!("@{}", self.model.url()), "")
            .replace(&self.model.url(), "https://api.openai.com/v1")
            .replace(&self.home.display().to_string(), "~");
        Ok((exit, text.lines().map(str::to_owned).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Ran {
        let folder = tempfile::tempdir().unwrap();
        let page = TextFile::new("docs/a.md", text);
        run(&page, Path::new("/usr/bin/true"), &folder.path().join("home")).unwrap()
    }

    #[test]
    fn run_output_that_the_page_shows_is_no_problem() {
        let text = "<!-- file: a/b.txt -->\n```text\nhello\n```\n\n```console\n$ cat a/b.txt\nhello\n\n$ pwd; false # exit 1\n~/project\n\
                    $ printf '%s\\n' \\\n> one\none\n```\n";
        let ran = check(text);
        assert_eq!([ran.problems, ran.differences].concat(), [""; 0]);
    }

    #[test]
    fn run_output_that_differs_is_a_problem_and_can_be_written_into_the_page() {
        let text = "Run:\n\n  ```console\n  $ echo one\n  two\n\n  $ echo three\n  ```\n\nDone.\n";
        let ran = check(text);
        assert_eq!(
            ran.differences,
            [
                "docs/a.md:4: `echo one` printed:\n    one\n  the page shows:\n    two\n",
                "docs/a.md:7: `echo three` printed:\n    three\n  the page shows:\n"
            ]
        );
        let updated =
            "Run:\n\n  ```console\n  $ echo one\n  one\n\n  $ echo three\n  three\n  ```\n\nDone.\n";
        assert_eq!(ran.updated, updated);
        let again = check(updated);
        assert_eq!([again.problems, again.differences].concat(), [""; 0]);
    }

    #[test]
    fn run_exit_code_answers_left_and_an_unknown_id_are_problems() {
        let id = "1".repeat(32);
        let text = format!("<!-- model\n\"a\"\nb\n-->\n```console\n$ exit 3\n$ echo run_{id}\n```\n");
        let problems = check(&text).problems;
        let [json, exit, unknown, left] = &problems[..] else { panic!("{problems:?}") };
        assert!(json.starts_with("docs/a.md:1: an answer of the model must be one line of JSON"), "{json}");
        assert!(exit.starts_with("docs/a.md:6: `exit 3` ended with exit code 3, not 0:"), "{exit}");
        assert_eq!(unknown, &format!("docs/a.md:7: no output above this command has run_{id}"));
        assert_eq!(left, "docs/a.md: no command used 1 of the model's answers");
    }

    #[test]
    fn run_sh_block_is_one_script_with_any_output() {
        let text = "```sh\nmkdir a\ncd a\necho one > b; cat b\n```\n\n<!-- not run: needs a server -->\n```sh\nexit 4\n```\n\
                    ```console\n$ cat a/b\none\n```\n";
        let ran = check(text);
        assert_eq!([ran.problems, ran.differences].concat(), [""; 0]);
        assert_eq!(ran.updated, text);
    }

    #[test]
    fn run_sh_block_of_which_one_command_fails_is_a_problem() {
        let problems = check("Text\n```sh\nfalse\ntrue\n```\n").problems;
        assert_eq!(problems, ["docs/a.md:3: `false\ntrue` ended with exit code 1, not 0:\n"]);
    }

    #[test]
    fn run_sh_block_has_cargo_without_the_network() {
        let text = "```sh\ncargo new --quiet a; cd a\ntest -f Cargo.toml; test \"$CARGO_NET_OFFLINE\"\n```\n";
        assert_eq!(check(text).problems, [""; 0]);
    }
}
