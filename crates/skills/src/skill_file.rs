//! `SKILL.md`: YAML between two lines `---`, and Markdown after them.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// The maximum number of bytes of a skill file that are read for its frontmatter.
pub(crate) const HEAD_BYTES: u64 = 64 * 1024;
/// The maximum size of a file of a skill that is read, `SKILL.md` or another, in bytes.
pub(crate) const FILE_BYTES: u64 = 1024 * 1024;
/// The name of a skill file.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// The two parts of a skill file. `yaml` begins directly after the first `---`, so its line 1 is line 1 of the file.
#[derive(Debug, PartialEq)]
pub(crate) struct Parts<'t> {
    pub(crate) yaml: &'t str,
    pub(crate) body: &'t str,
}

/// Splits the text of a skill file, whose line ends must be `\n`. The body has no white space around it.
///
/// Returns the line and the problem if there is no frontmatter, or if its end is missing.
pub(crate) fn split(text: &str) -> Result<Parts<'_>, (usize, &'static str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err((1, "the file must begin with a line `---` and YAML"));
    }
    let yaml = &text["---".len()..];
    let mut at = 0;
    for line in yaml.split_inclusive('\n') {
        if at > 0 && line.trim_end() == "---" {
            return Ok(Parts { yaml: &yaml[..at], body: yaml[at + line.len()..].trim() });
        }
        at += line.len();
    }
    Err((1, "the second line `---`, after the YAML, is missing"))
}

/// Returns a text with `\n` as its only line end.
pub(crate) fn with_plain_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Reads the beginning of a regular file, up to [`HEAD_BYTES`], as text.
pub(crate) fn read_head(file: &Path) -> io::Result<String> {
    let (bytes, is_whole) = read(file, HEAD_BYTES)?;
    head_of(bytes, is_whole)
}

/// Returns the beginning of a file's content as text, up to [`HEAD_BYTES`].
pub(crate) fn head(content: &[u8]) -> io::Result<String> {
    let most = usize::try_from(HEAD_BYTES).unwrap_or(usize::MAX);
    head_of(content[..content.len().min(most)].to_vec(), content.len() <= most)
}

fn head_of(mut bytes: Vec<u8>, is_whole: bool) -> io::Result<String> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && !is_whole
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    text_of(bytes)
}

/// Reads a regular file of at most [`FILE_BYTES`].
pub(crate) fn read_bytes(file: &Path) -> io::Result<Vec<u8>> {
    match read(file, FILE_BYTES)? {
        (bytes, true) => Ok(bytes),
        _ => Err(too_long()),
    }
}

/// Returns the content, or an error if it has more than [`FILE_BYTES`] bytes.
pub(crate) fn checked(content: &[u8]) -> io::Result<Vec<u8>> {
    match content.len() as u64 <= FILE_BYTES {
        true => Ok(content.to_vec()),
        false => Err(too_long()),
    }
}

fn too_long() -> io::Error {
    io::Error::other(format!("it has more than {FILE_BYTES} bytes"))
}

/// Returns bytes as text with `\n` as line end.
pub(crate) fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))?;
    Ok(with_plain_line_ends(&text))
}

/// Reads at most `most` bytes, and returns true if that is the whole file. A pipe or a device is refused, because
/// reading it could wait for ever.
pub(crate) fn read(file: &Path, most: u64) -> io::Result<(Vec<u8>, bool)> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() as u64 <= most;
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok((bytes, is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_at_lines_of_three_hyphens_only() {
        let text = "---\nname: a\ndescription: b --- c\n---\n\n# A\n---\nend\n";
        let parts = split(text).unwrap();
        assert_eq!(parts, Parts { yaml: "\nname: a\ndescription: b --- c\n", body: "# A\n---\nend" });
    }

    #[test]
    fn split_without_a_beginning_or_an_end_is_a_problem() {
        assert!(split("# A\n").is_err());
        assert!(split("---\nname: a\n").is_err());
        assert!(split("").is_err());
        assert_eq!(split("---\n---").unwrap(), Parts { yaml: "\n", body: "" });
    }
}
