//! Files that a message names: `@path` in the workspace, and images and PDF files by their paths.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use archon::{
    tools::Workspace,
    types::{Content, ToolError},
};
use archon_terminal::{AttachedFile, Draft};

use crate::{
    app::App,
    attach::{MOST_FILES, Size, read_media},
    failure::Failure,
    output::Look,
    skills::SkillCall,
    text::visible,
    tool_workspace::tool_workspace,
};

/// The maximum size of a file whose text is attached, in bytes.
const MOST_TEXT: u64 = 100 * 1_024;
/// The maximum number of files that a note names.
const MOST_NAMED: usize = 3;
/// Matches the punctuation that a sentence may have after a path.
const PUNCTUATION: fn(char) -> bool = |c| c.is_ascii_punctuation() && c != '/';
/// The ends of the names of images and PDF files.
const MEDIA: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"];

/// A message of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PersonMessage {
    pub(crate) text: String,
    /// The part of the text that the person typed or dropped. Only file names in this part attach files.
    pub(crate) own_words: String,
    /// The skill that the message activates.
    pub(crate) skill: Option<SkillCall>,
}

/// The files that are attached to a message, and notes to the person about files that are not attached.
#[derive(Debug, Default)]
struct Attached {
    /// The path and the content of each file.
    blocks: Vec<(String, Content)>,
    notes: Vec<String>,
    /// The first note about an image or a PDF file.
    refused: Option<String>,
    size: Size,
}

/// Returns the words of a draft in which files are named: typed text, and pastes that have only paths of images and PDF files,
/// as when such files are dropped on the terminal. Other pastes do not count, because anybody may have written their text.
pub(crate) fn own_words(draft: &Draft) -> String {
    let (mut words, mut from) = (String::new(), 0);
    for part in &draft.pasted {
        words.push_str(draft.text.get(from..part.start).unwrap_or_default());
        let pasted = draft.text.get(part.clone()).unwrap_or_default();
        words.push_str(if is_dropped(pasted) { pasted } else { "\n" });
        from = part.end;
    }
    words + draft.text.get(from..).unwrap_or_default()
}

/// Returns true if a paste is one line with nothing but paths of images and PDF files.
fn is_dropped(pasted: &str) -> bool {
    let mut rest = pasted.trim();
    if rest.contains('\n') {
        return false;
    }
    while !rest.is_empty() {
        let (word, after) = word(rest);
        if !is_media(&word) {
            return false;
        }
        rest = after.trim_start();
    }
    true
}

/// Returns the path and the content of each file that a message names. Writes a note about each text file that is not
/// attached.
///
/// # Errors
/// [`Failure`] if an image or a PDF file cannot be attached: without it, the message has little sense.
pub(crate) async fn of(app: &App, message: &PersonMessage) -> Result<Vec<(String, Content)>, Failure> {
    let names = names_in(&message.own_words);
    let all = names_in(&message.text);
    if all.is_empty() {
        return Ok(Vec::new());
    }
    // Without a workspace the agent has no tools for files either.
    let Ok(workspace) = tool_workspace(app) else { return Ok(Vec::new()) };
    let read = tokio::task::spawn_blocking(move || {
        let mut attached = attach(&workspace, &names);
        attached.notes.extend(note_about_others(&workspace, &names, &all));
        attached
    });
    let attached = read.await.unwrap_or_default();
    if let Some(why) = attached.refused {
        return Err(Failure::usage(why, "change or remove its name, and send the message again"));
    }
    attached.notes.iter().for_each(|note| app.output.note(Look::Warning, note));
    Ok(attached.blocks)
}

/// A file that a message names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FileName {
    /// A path after `@`.
    Mention(String),
    /// The path of an image or a PDF file, such as one that was dropped on the terminal.
    Media(String),
}

/// Returns the files that a text names, each once.
fn names_in(text: &str) -> Vec<FileName> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('@') {
            Some(behind) => {
                let (word, after) = word(behind);
                (FileName::Mention(word), after)
            }
            None => {
                let (word, after) = word(rest);
                (FileName::Media(word), after)
            }
        };
        let names_file = match &word {
            FileName::Mention(path) => !path.is_empty(),
            FileName::Media(path) => is_media(path),
        };
        if names_file && !names.contains(&word) {
            names.push(word);
        }
        rest = after.trim_start();
    }
    names
}

/// Splits off the first word: a text in quotation marks, or all up to a space without a backslash before it.
fn word(text: &str) -> (String, &str) {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let quoted = quote.and_then(|quote| text.strip_prefix(quote)?.split_once(quote));
    if let Some((word, after)) = quoted.filter(|(word, _)| !word.contains('\n')) {
        return (word.to_owned(), after);
    }
    let mut word = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        match next.filter(|next| c == '\\' && !next.is_alphanumeric() && *next != '\n') {
            // Terminals write a dropped path in this way.
            Some(escaped) => {
                word.push(escaped);
                characters.next();
            }
            None if c.is_whitespace() => return (word, text.get(at..).unwrap_or_default()),
            None => word.push(c),
        }
    }
    (word, "")
}

fn is_media(path: &str) -> bool {
    let small = path.to_lowercase();
    MEDIA.iter().any(|end| small.ends_with(end))
}

fn attach(workspace: &Workspace, names: &[FileName]) -> Attached {
    let mut attached = Attached::default();
    for file in names {
        let (path, result) = match file {
            FileName::Mention(path) => block_of_mention(workspace, path),
            FileName::Media(path) => (path.as_str(), block_of_media(workspace, path)),
        };
        match result {
            Ok(Some(_)) if attached.blocks.len() == MOST_FILES => {
                attached.notes.push(format!("only the first {MOST_FILES} files of the message are attached"));
                break;
            }
            // The same file may have two names.
            Ok(Some(block)) if attached.blocks.iter().any(|(_, other)| *other == block) => {}
            Ok(Some(block)) => attached.add(path, block),
            Ok(None) => {}
            Err(why) => attached.note(path, &why),
        }
    }
    attached
}

impl Attached {
    fn add(&mut self, path: &str, block: Content) {
        let size = match &block {
            Content::Media(media) => self.size.add(media),
            _ => Ok(()),
        };
        match size {
            Ok(()) => self.blocks.push((path.to_owned(), block)),
            Err(why) => self.note(path, &why),
        }
    }

    fn note(&mut self, path: &str, why: &str) {
        let note = format!("{} is not attached: {why}", visible(path));
        if is_media(path) {
            self.refused.get_or_insert_with(|| note.clone());
        }
        self.notes.push(note);
    }
}

/// The content of a file; `None` if the word names no file; or the reason why the file is not attached.
type Block = Result<Option<Content>, String>;

/// Returns a note about the workspace files that are in `all` but not in `typed`, the files whose names the person
/// typed.
fn note_about_others(workspace: &Workspace, typed: &[FileName], all: &[FileName]) -> Option<String> {
    let find = |name: &FileName| match name {
        FileName::Mention(path) => file_of_mention(workspace, path).map(|(path, file)| (visible(path), file)),
        FileName::Media(path) => Some((visible(path), workspace.resolve(path).ok()?)),
    };
    let typed: Vec<PathBuf> = typed.iter().filter_map(find).map(|(_, file)| file).collect();
    let others = all.iter().filter_map(find).filter(|(_, file)| !typed.contains(file));
    let left: Vec<String> = others.map(|(path, _)| path).take(MOST_NAMED + 1).collect();
    let (named, more) = left.split_at(left.len().min(MOST_NAMED));
    let more = if more.is_empty() { "" } else { ", ..." };
    (!named.is_empty()).then(|| {
        let named = named.join(", ");
        format!("not attached, since you have not typed their names: {named}{more}. Type @ and a name to attach a file")
    })
}

/// Returns the file that a path after `@` names, with the path. Punctuation at the end of the path is ignored if
/// needed.
fn file_of_mention<'p>(workspace: &Workspace, path: &'p str) -> Option<(&'p str, PathBuf)> {
    let without = path.trim_end_matches(PUNCTUATION);
    [path, without].into_iter().find_map(|path| Some((path, workspace.resolve(path).ok()?)))
}

/// Returns the content of the file that a path after `@` names, with the path. Punctuation at the end of the path is
/// ignored if needed.
fn block_of_mention<'p>(workspace: &Workspace, path: &'p str) -> (&'p str, Block) {
    if let Some((path, file)) = file_of_mention(workspace, path) {
        return (path, block(path, &file).map(Some));
    }
    let without = path.trim_end_matches(PUNCTUATION);
    let looks_like_path = without.contains(['/', '.']);
    let problem = match workspace.resolve(without) {
        _ if !looks_like_path => return (without, Ok(None)),
        Err(ToolError::NotFound(_)) => "there is no such file in the workspace",
        _ => "it is outside of the workspace, or in a folder that the tools do not see",
    };
    (without, Err(problem.to_owned()))
}

/// Returns the content of an image or a PDF file. An absolute path may lead anywhere, since the person typed or dropped it; a
/// relative path is a path in the workspace.
fn block_of_media(workspace: &Workspace, path: &str) -> Block {
    let place = path.strip_prefix("file://").map_or_else(|| path.to_owned(), |path| path.replace("%20", " "));
    let file = match Path::new(&place).is_absolute() {
        true => Some(PathBuf::from(&place)),
        false => workspace.resolve(&place).ok(),
    };
    match file.filter(|file| file.is_file()) {
        Some(file) => block(path, &file).map(Some),
        // A name in a sentence, such as one of a file that is to be made.
        None => Ok(None),
    }
}

fn block(path: &str, file: &Path) -> Result<Content, String> {
    if is_media(path) {
        return read_media(file).map(Content::from);
    }
    let unreadable = |e: io::Error| format!("it cannot be read ({e})");
    let about = fs::metadata(file).map_err(unreadable)?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    if about.len() > MOST_TEXT {
        return Err(format!("it has {} bytes, and at most {MOST_TEXT} are attached", about.len()));
    }
    let bytes = fs::read(file).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not a text in UTF-8")?;
    match path.contains(['"', '\n']) {
        true => Err("its name has a quotation mark or a line end".to_owned()),
        false => Ok(AttachedFile::new(path, &text).content()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn mention(path: &str) -> FileName {
        FileName::Mention(path.to_owned())
    }

    fn media(path: &str) -> FileName {
        FileName::Media(path.to_owned())
    }

    #[test]
    fn names_of_files_stand_behind_a_sign_or_are_paths_of_images() {
        for (text, expected) in [
            ("see @src/main.rs, and a@b.c", vec![mention("src/main.rs,")]),
            ("@\"my notes.txt\" @x @x", vec![mention("my notes.txt"), mention("x")]),
            ("/tmp/one\\ shot.PNG", vec![media("/tmp/one shot.PNG")]),
            ("'/tmp/two shot.jpg' is it", vec![media("/tmp/two shot.jpg")]),
            ("it's a picture\n@a\\nb @", vec![mention("a\\nb")]),
            ("\"hello\" 'x", vec![]),
        ] {
            assert_eq!(names_in(text), expected, "{text:?}");
        }
    }

    #[test]
    fn own_words_are_what_was_typed_and_dropped_images() {
        let draft = |parts: &[(&str, bool)]| {
            let mut draft = Draft::default();
            for (text, is_pasted) in parts {
                let begin = draft.text.len();
                draft.text.push_str(text);
                draft.pasted.extend(is_pasted.then(|| begin..draft.text.len()));
            }
            own_words(&draft)
        };
        assert_eq!(draft(&[("see @a.txt and /tmp/b.png", false)]), "see @a.txt and /tmp/b.png");
        assert_eq!(
            draft(&[("/tmp/one\\ shot.png '/tmp/2.jpg' ", true), ("who?", false)]).matches("/tmp").count(),
            2
        );
        for pasted in
            ["@a.txt", "look at /tmp/b.png", "/tmp/a.png\n/tmp/b.png", "@a.txt ".repeat(500).as_str()]
        {
            assert_eq!(
                draft(&[("say ", false), (pasted, true), (" @b.txt", false)]),
                "say \n @b.txt",
                "{pasted}"
            );
        }
        assert_eq!(own_words(&Draft::message("/tmp/a b @c")), "\n", "an earlier message was not typed");
    }

    #[test]
    fn note_about_others_names_files_of_the_workspace_only() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.txt", "b.txt", "c.png", "d.txt", "e.txt"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let workspace = Workspace::new(dir.path()).unwrap();
        let note = |text: &str| {
            note_about_others(&workspace, &names_in("@d.txt"), &names_in(text)).unwrap_or_default()
        };
        assert_eq!(note("@none.txt @somebody @d.txt. /tmp/x.png"), "");
        assert!(note("see @a.txt.").contains("their names: a.txt. Type"), "{}", note("see @a.txt."));
        assert!(note("@a.txt @b.txt @d.txt c.png @e.txt").contains("a.txt, b.txt, c.png, ..."));
    }

    #[test]
    fn attach_has_texts_and_images_and_says_why_others_are_left_out() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
        write("notes.txt", b"milk\n");
        write("shot.png", PNG);
        write("fake.png", b"text");
        write("report.pdf", b"%PDF-1.7\n");
        write("bytes.bin", &[0xff, 0xfe, 0x00]);
        write("long.txt", &vec![b'x'; 100 * 1_024 + 1]);
        fs::create_dir(dir.path().join("src")).unwrap();
        let outside = other.path().join("secret.txt");
        fs::write(&outside, "secret").unwrap();
        let dropped = other.path().join("dropped.gif");
        fs::write(&dropped, b"GIF89a...").unwrap();
        let workspace = Workspace::new(dir.path()).unwrap();
        let attach = |text: &str| {
            let Attached { blocks, notes, .. } = attach(&workspace, &names_in(text));
            let shown = |(_, block): &(String, Content)| match block {
                Content::Media(media) => media.mime_type().to_owned(),
                block => block.as_text().unwrap().to_owned(),
            };
            (blocks.iter().map(shown).collect::<Vec<_>>(), notes.join("\n"))
        };
        let file = AttachedFile::new("notes.txt", "milk\n").content().as_text().unwrap().to_owned();
        assert_eq!(attach("read @notes.txt."), (vec![file], String::new()));
        let images = format!("shot.png @shot.png {} none.png", dropped.display());
        assert_eq!(attach(&images).0, ["image/png", "image/gif"]);
        assert_eq!(attach("sum up @report.pdf").0, ["application/pdf"]);
        for (text, why) in [
            (format!("@{}", outside.display()), "outside of the workspace"),
            ("@../x.txt".to_owned(), "outside of the workspace"),
            ("@src/none.rs".to_owned(), "@src/none.rs"),
            ("@src/".to_owned(), "it is no file"),
            ("@long.txt".to_owned(), "it has 102401 bytes, and at most 102400 are attached"),
            ("@bytes.bin".to_owned(), "it is not a text in UTF-8"),
            ("@fake.png".to_owned(), "it is neither PNG"),
        ] {
            let (blocks, notes) = attach(&text);
            assert!(blocks.is_empty() && notes.contains(why.trim_start_matches('@')), "{text}: {notes}");
        }
        assert_eq!(attach("ask @somebody"), (vec![], String::new()));
    }
}
