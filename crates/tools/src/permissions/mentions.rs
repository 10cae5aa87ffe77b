//! Checks whether a command line may touch files that a deny or ask rule protects. It searches the words of
//! the line for paths, and matches too often rather than too rarely.

use std::path::{Path, PathBuf};

use super::{
    Rule, resolved,
    shell::{
        self, Line, Part, Walk,
        harmless::Effect,
        known_word::{KnownWord, Place, literal, meet},
    },
};

/// Maximum number of folders in which the commands of a line may run. If `cd` makes more possible, the
/// folders count as unknown.
const MOST_FOLDERS: usize = 16;

/// Shell commands that change the current folder.
const MOVERS: &[&str] = &["cd", "pushd", "popd"];

/// Returns whether a rule about `read_file` or `write_file` matches a file that a command line may use.
pub(super) fn mentions(rule: &Rule, line: &str, root: &Path) -> bool {
    let (reads, writes) = (rule.names("read_file"), rule.names("write_file"));
    let Some(of) = rule.of.as_deref().filter(|_| reads || writes) else { return false };
    let look = |folders| Look { rule, root, folders, meant: pattern_in(root, of) };
    let Some(read) = shell::analyse(line) else {
        let words = shell::pieces(line);
        let look = look(folders_of_words(&words, root));
        return words.iter().any(|word| look.finds(word, Depth::Below));
    };
    let look = look(folders(&read, root));
    read.reads.iter().any(|file| reads && look.finds(file, Depth::Itself))
        || read.writes.iter().any(|file| writes && look.finds(file, Depth::Itself))
        || match read.parts.iter().all(|part| part.harmless().is_some()) {
            true => read.parts.iter().any(|part| look.finds_in(part, reads)),
            // A command that runs others may take a path from any text of the line.
            false => read.all_words().iter().any(|word| look.finds_behind_option(word, Depth::Below)),
        }
}

/// The reach of a command: only the given path, or also everything below this path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Itself,
    Below,
}

/// A rule, and the folders in which the commands of a command line may run. The folders are `None` if they
/// are not known.
struct Look<'a> {
    rule: &'a Rule,
    root: &'a Path,
    folders: Option<Vec<PathBuf>>,
    /// The rule's pattern as an absolute form: [`Place`] describes forms.
    meant: Vec<Place>,
}

impl Look<'_> {
    fn finds_in(&self, part: &Part, reads: bool) -> bool {
        let Some(row) = part.harmless() else { return true };
        match row.effect {
            Effect::Says => return false,
            Effect::Reads | Effect::ReadsProject if !reads => return false,
            _ => {}
        }
        let walk = part.walks(row);
        let depth = if walk.is_some() { Depth::Below } else { Depth::Itself };
        let words = &part.words[1..];
        // Scripts of awk and jq can open files by themselves.
        let in_script = |word: &KnownWord| {
            let known = word.known().unwrap_or_default();
            shell::pieces(&known).iter().any(|piece| self.finds(piece, Depth::Itself))
        };
        words.iter().any(|word| self.finds_behind_option(word, depth))
            || row.effect == Effect::Reads && words.iter().any(in_script)
            || walk == Some(Walk::Current) && self.finds(&KnownWord::guessed("."), Depth::Below)
            || row.effect == Effect::Writes && self.finds_made(words)
    }

    /// Returns whether a file that the command creates may match: it has the name of one operand, in the
    /// folder of another, as in `cp a/.env .`.
    fn finds_made(&self, words: &[KnownWord]) -> bool {
        let known: Vec<PathBuf> = words.iter().filter_map(KnownWord::known).map(PathBuf::from).collect();
        let names = || known.iter().filter_map(|path| path.file_name());
        known.iter().any(|folder| {
            names().any(|name| {
                self.finds(&KnownWord::literal(&folder.join(name).to_string_lossy()), Depth::Itself)
            })
        })
    }

    /// Returns whether the rule matches the word, or the part of the word after an option or a revision, as
    /// in `--file=a` or `HEAD:a`.
    fn finds_behind_option(&self, word: &KnownWord, depth: Depth) -> bool {
        if self.finds(word, depth) {
            return true;
        }
        let Some(known) = word.known() else {
            let divides = |place: &Place| matches!(place, Place::Is('=' | ':' | '@'));
            let mut values = word.form().split(divides).skip(1);
            return values.any(|value| self.finds_form(value, depth));
        };
        let stuck = known.strip_prefix('-').and_then(|option| option.get(1..));
        let mut values = known.split(['=', ':', '@']).skip(1).chain(stuck).filter(|value| !value.is_empty());
        values.any(|value| self.finds(&KnownWord::literal(value), depth))
    }

    fn finds(&self, word: &KnownWord, depth: Depth) -> bool {
        let (Some(known), Some(folders)) = (word.known(), &self.folders) else {
            return self.finds_form(word.form(), depth);
        };
        !known.is_empty() && folders.iter().any(|folder| self.finds_path(&folder.join(&known), depth))
    }

    fn finds_path(&self, path: &Path, depth: Depth) -> bool {
        let is_meant = |path: &Path| {
            self.rule.holds(self.root, path)
                || depth == Depth::Below && meet(&below(literal(&path.to_string_lossy())), &self.meant)
        };
        is_meant(&super::plain(Path::new(""), path))
            || resolved(self.root, path).is_some_and(|path| is_meant(&path))
    }

    /// Returns whether the rule may match a word that is known only by its form.
    fn finds_form(&self, form: &[Place], depth: Depth) -> bool {
        let form = plain(form);
        let anywhere = vec![Path::new("")];
        let folders =
            self.folders.as_ref().map_or(anywhere, |all| all.iter().map(PathBuf::as_path).collect());
        let mut rule = vec![self.meant.clone(), below(self.meant.clone())];
        // `secrets/**` includes the folder itself.
        if let [folder @ .., Place::Is('/'), Place::Text] = &self.meant[..] {
            rule.push(folder.to_vec());
        }
        folders.iter().any(|folder| {
            let whole = match form.first() {
                None => return false,
                Some(Place::Is('/') | Place::Text) => form.clone(),
                Some(_) if self.folders.is_none() => [&[Place::Text, Place::Is('/')], &form[..]].concat(),
                Some(_) => [literal(&folder.to_string_lossy()), vec![Place::Is('/')], form.clone()].concat(),
            };
            let deep = (depth == Depth::Below).then(|| below(whole.clone()));
            rule.iter().any(|rule| meet(&whole, rule) || deep.as_ref().is_some_and(|deep| meet(deep, rule)))
        })
    }
}

/// Returns the folders in which the commands of a line may run, or `None` if they cannot be known.
fn folders(line: &Line, root: &Path) -> Option<Vec<PathBuf>> {
    let mut folders = vec![root.to_owned()];
    for part in &line.parts {
        let program = part.words[0].known()?;
        if program != "cd" {
            let moves = |word: &KnownWord| MOVERS.iter().any(|mover| word.is(mover));
            if part.harmless().is_none() && part.words.iter().any(moves) {
                return None;
            }
            continue;
        }
        let mut operands = part.words[1..].iter().filter(|word| !word.beginning().starts_with('-'));
        let into = operands.next()?.known()?;
        follow(&mut folders, &into)?;
    }
    Some(folders)
}

fn folders_of_words(words: &[KnownWord], root: &Path) -> Option<Vec<PathBuf>> {
    let mut folders = vec![root.to_owned()];
    for pair in words.windows(2) {
        match pair {
            [mover, into] if mover.is("cd") => follow(&mut folders, &into.known()?)?,
            [mover, ..] if MOVERS.iter().any(|name| mover.is(name)) => return None,
            _ => {}
        }
    }
    Some(folders)
}

fn follow(folders: &mut Vec<PathBuf>, into: &str) -> Option<()> {
    let more: Vec<PathBuf> = folders.iter().map(|folder| folder.join(into)).collect();
    folders.extend(more);
    folders.sort();
    folders.dedup();
    (folders.len() <= MOST_FOLDERS && into != "-").then_some(())
}

/// Returns a rule's pattern as an absolute form. A form cannot express `[` and `{`: from there on it is any
/// text.
fn pattern_in(root: &Path, of: &str) -> Vec<Place> {
    let of = of.strip_prefix("./").unwrap_or(of);
    let mut form = match of.starts_with('/') {
        true => Vec::new(),
        false => literal(&format!("{}/", root.display())),
    };
    let mut rest = of.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => form.extend(rest.next().map(Place::Is)),
            '*' if rest.next_if_eq(&'*').is_some() => {
                form.push(Place::Text);
                // `**/` also matches no folder at all.
                rest.next_if_eq(&'/');
            }
            '*' => form.push(Place::Name),
            '?' => form.push(Place::One),
            '[' | '{' => {
                form.push(Place::Text);
                break;
            }
            c => form.push(Place::Is(c)),
        }
    }
    form
}

/// Returns the form that matches every path below the folder `form`.
fn below(mut form: Vec<Place>) -> Vec<Place> {
    if form.last() != Some(&Place::Is('/')) {
        form.push(Place::Is('/'));
    }
    form.push(Place::Text);
    form
}

/// Removes `./` at the beginning of a form; a form with `..` becomes any text.
fn plain(form: &[Place]) -> Vec<Place> {
    let mut rest = form;
    while let [Place::Is('.'), Place::Is('/'), behind @ ..] = rest {
        rest = behind;
    }
    let parts = rest.split(|place| *place == Place::Is('/'));
    let is_dots = |part: &[Place]| !part.is_empty() && part.iter().all(|place| *place == Place::Is('.'));
    let is_strange = rest.windows(2).any(|two| two == [Place::Is('/'), Place::Is('/')]);
    match is_strange || parts.into_iter().any(is_dots) && rest != [Place::Is('.')] {
        true => vec![Place::Text],
        false => rest.to_vec(),
    }
}
