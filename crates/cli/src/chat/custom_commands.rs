//! A person's own commands: Markdown files whose text becomes a message.
//!
//! They are in `.archon/commands` of the project and in `commands` beside the person's settings. The name of a command
//! is that of its file; a file in a folder has the folder's name and a colon before it. A text never runs anything: it
//! only reaches the agent, after the person has given the command.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{app::App, toolset};

/// The maximum size of a file, in bytes.
const MOST: u64 = 64 * 1024;
/// The maximum number of files of a folder, and the maximum depth of folders.
const FILES: usize = 200;
const DEPTH: usize = 4;

/// A command from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CustomCommand {
    /// The name without the `/`.
    pub(crate) name: String,
    /// The arguments, for people; empty if the file does not name them.
    pub(crate) arguments: String,
    /// The effect, as one line.
    pub(crate) about: String,
    /// The text of the message, with placeholders for the arguments.
    text: String,
}

/// The commands that were found, and the files that are not valid commands.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) commands: Vec<CustomCommand>,
    /// The files that cannot be read, each with the reason and the remedy.
    pub(crate) problems: Vec<(PathBuf, String)>,
}

/// Reads the person's own commands. If two commands have the same name, the one beside the settings counts, so that a
/// project cannot replace a command that the person knows.
pub(crate) fn find(app: &App) -> Found {
    let mut found = Found::default();
    if let Some(settings) = app.sources.user.as_deref().and_then(Path::parent) {
        found.read(&settings.join("commands"), None);
    }
    if let Some(project) = toolset::folder(app) {
        found.read(&project.join(".archon/commands"), Some(&project));
    }
    found
}

impl Found {
    /// Reads the files of a folder. A file of a project must not be a link out of the project.
    fn read(&mut self, folder: &Path, project: Option<&Path>) {
        let mut files = Vec::new();
        if project.is_some_and(|project| is_outside(folder, project)) {
            // There is no such folder, or it is a link.
            return;
        }
        if let Err(e) = list(folder, DEPTH, &mut files) {
            self.problems.push((folder.to_owned(), format!("the folder cannot be read: {e}")));
        }
        files.sort();
        if files.len() > FILES {
            let why = format!("the folder has more than {FILES} commands, so the rest is left out");
            self.problems.push((folder.to_owned(), why));
        }
        for file in files.into_iter().take(FILES) {
            let Some(name) = name(folder, &file) else {
                let why = "a command needs a name of letters, digits, - and _: rename the file".to_owned();
                self.problems.push((file, why));
                continue;
            };
            match text(&file, project) {
                Ok(_) if self.commands.iter().any(|known| known.name == name) => {
                    self.problems.push((file, format!("/{name} is already a command: rename the file")));
                }
                Ok(text) => self.commands.push(CustomCommand::of(name, &text)),
                Err(why) => self.problems.push((file, why)),
            }
        }
    }
}

/// Lists the Markdown files of a folder and of the folders in it. A folder that does not exist has none.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        // A link to a folder could lead anywhere.
        if entry.file_type()?.is_dir() {
            if depth > 0 && files.len() <= FILES {
                list(&path, depth - 1, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the name of the command in a file; `None` if a person could not type it.
fn name(folder: &Path, file: &Path) -> Option<String> {
    let below = file.strip_prefix(folder).ok()?.with_extension("");
    let parts = below.iter().map(|part| part.to_str().filter(|part| is_plain(part)));
    Some(parts.collect::<Option<Vec<_>>>()?.join(":"))
}

fn is_plain(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

/// Reads the text of a file, or returns why it is no command, and what to do.
fn text(file: &Path, project: Option<&Path>) -> Result<String, String> {
    let unreadable = |e: io::Error| match e.kind() {
        io::ErrorKind::InvalidData => "the file is not UTF-8: write it again in UTF-8".to_owned(),
        _ => format!("the file cannot be read: {e}"),
    };
    if project.is_some_and(|project| is_outside(file, project)) {
        return Err("the file is a link out of the project: put the text itself there".to_owned());
    }
    let of_file = fs::metadata(file).map_err(unreadable)?;
    if !of_file.is_file() {
        return Err("this is no file".to_owned());
    }
    if of_file.len() > MOST {
        return Err(format!("the file is larger than {} KiB: shorten it", MOST / 1024));
    }
    fs::read_to_string(file).map_err(unreadable)
}

/// Returns true if a path leads out of the project. Such a link could send any file of this machine to the model.
fn is_outside(path: &Path, project: &Path) -> bool {
    !path.canonicalize().is_ok_and(|path| path.starts_with(project))
}

impl CustomCommand {
    /// Creates the command of a text. Lines of the form `key: value` between two lines `---` at the beginning describe
    /// it: `description` and `argument-hint`; others are not used.
    fn of(name: String, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let parts = text.strip_prefix("---\n").and_then(|rest| match rest.strip_prefix("---\n") {
            Some(text) => Some(("", text)),
            None => rest.split_once("\n---\n").or_else(|| Some((rest.strip_suffix("\n---")?, ""))),
        });
        let (front, text) = parts.unwrap_or(("", text.as_str()));
        let value = |key: &str| {
            let line =
                front.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == key);
            line.map(|(_, value)| without_quotes(value.trim()).to_owned()).unwrap_or_default()
        };
        let about = match value("description") {
            about if about.is_empty() => first_line(text),
            about => about,
        };
        Self { name, arguments: value("argument-hint"), about, text: text.trim().to_owned() }
    }

    /// Returns the message: `$ARGUMENTS` stands for all arguments, `$1` to `$9` for single ones. If the text has no
    /// such placeholder, the arguments are appended to it.
    pub(crate) fn message(&self, arguments: &str) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let mut message = String::new();
        let mut rest = self.text.as_str();
        let mut has_place = false;
        while let Some((before, after)) = rest.split_once('$') {
            message.push_str(before);
            let digit = after.chars().next().and_then(|c| c.to_digit(10)).filter(|digit| *digit > 0);
            if let Some(after) = after.strip_prefix("ARGUMENTS") {
                message.push_str(arguments);
                (rest, has_place) = (after, true);
            } else if let Some(number) = digit.and_then(|digit| usize::try_from(digit).ok()) {
                message.push_str(words.get(number - 1).copied().unwrap_or_default());
                (rest, has_place) = (after.get(1..).unwrap_or_default(), true);
            } else {
                message.push('$');
                rest = after;
            }
        }
        message.push_str(rest);
        if !has_place && !arguments.is_empty() {
            message.push_str("\n\n");
            message.push_str(arguments);
        }
        message
    }
}

fn without_quotes(value: &str) -> &str {
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    quoted('"').or_else(|| quoted('\'')).unwrap_or(value)
}

/// Returns the first line of a text that is not empty, without the signs of a heading.
fn first_line(text: &str) -> String {
    let line = text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    line.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> CustomCommand {
        CustomCommand::of("fix".to_owned(), text)
    }

    #[test]
    fn front_matter_describes_a_command_and_is_no_part_of_the_message() {
        let text =
            "---\ndescription: \"Mend: an issue\"\nargument-hint: NUMBER\nmodel: x\n---\nMend issue $1.\n";
        let found = command(text);
        assert_eq!((found.about.as_str(), found.arguments.as_str()), ("Mend: an issue", "NUMBER"));
        assert_eq!(found.message("12"), "Mend issue 12.");
    }

    #[test]
    fn text_without_front_matter_is_described_by_its_first_line() {
        for (text, about, message) in [
            ("\n# Mend it\r\n\r\nNow.", "Mend it", "# Mend it\n\nNow."),
            ("---\nno end", "---", "---\nno end"),
            ("---\n---\nHello", "Hello", "Hello"),
            ("", "", ""),
        ] {
            let found = command(text);
            assert_eq!((found.about.as_str(), found.message("").as_str()), (about, message), "{text:?}");
        }
    }

    #[test]
    fn message_has_its_arguments_in_their_places() {
        for (text, arguments, expected) in [
            ("Say $ARGUMENTS now", "a  b", "Say a  b now"),
            ("$2 before $1", "one two", "two before one"),
            ("costs $5 or $0", "a", "costs  or $0"),
            ("a $ sign", "", "a $ sign"),
            ("no place", "one two", "no place\n\none two"),
            // An argument that looks like a place is only text.
            ("$1 and $2", "$2 $ARGUMENTS", "$2 and $ARGUMENTS"),
        ] {
            assert_eq!(command(text).message(arguments), expected, "{text}");
        }
    }

    #[test]
    fn find_names_files_that_are_no_commands() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("commands");
        fs::create_dir_all(folder.join("git")).unwrap();
        fs::write(folder.join("git/tidy.md"), "Tidy up.").unwrap();
        fs::write(folder.join("bad.md"), [0xff, 0xfe, 0x00]).unwrap();
        fs::write(folder.join("two words.md"), "x").unwrap();
        fs::write(folder.join("notes.txt"), "x").unwrap();
        let mut found = Found::default();
        found.read(&folder, None);
        found.read(&folder, None);
        let names: Vec<&str> = found.commands.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["git:tidy"]);
        let why =
            |file: &str| found.problems.iter().filter(|(path, _)| path.ends_with(file)).collect::<Vec<_>>();
        assert!(why("bad.md")[0].1.contains("not UTF-8"), "{found:?}");
        assert!(why("two words.md")[0].1.contains("rename the file"), "{found:?}");
        assert!(why("tidy.md")[0].1.contains("already a command"), "{found:?}");
        assert!(why("notes.txt").is_empty(), "{found:?}");
    }

    #[cfg(unix)]
    #[test]
    fn link_out_of_the_project_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = root.join("project");
        let folder = project.join(".archon/commands");
        fs::create_dir_all(&folder).unwrap();
        fs::write(root.join("secret"), "sk-123").unwrap();
        std::os::unix::fs::symlink(root.join("secret"), folder.join("leak.md")).unwrap();
        let mut found = Found::default();
        found.read(&folder, Some(&project));
        assert!(found.commands.is_empty());
        assert!(found.problems[0].1.contains("link out of the project"), "{found:?}");
    }
}
