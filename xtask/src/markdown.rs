//! Reads the parts of Markdown pages that the checks need: fenced blocks, comments, headings and links.

use std::collections::HashMap;

/// A part of a page that is more than text.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    Fence(Fence),
    /// A comment on lines of its own: its first line, counted from 1, and its text.
    Comment(usize, String),
}

/// A fenced block.
#[derive(Debug, PartialEq)]
pub(crate) struct Fence {
    /// The line of the opening fence, counted from 1.
    pub(crate) line: usize,
    /// The words after the opening fence, as in `rust,no_run`.
    pub(crate) info: String,
    pub(crate) lines: Vec<String>,
    /// The text of the comment on the line before, if there is one.
    pub(crate) comment: Option<String>,
    /// False if the page ends inside the block.
    pub(crate) is_closed: bool,
}

impl Fence {
    pub(crate) fn language(&self) -> &str {
        self.info.split([',', ' ']).next().unwrap_or_default()
    }

    /// Returns whether `rust,ignore` or another list has the word.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.info.split([',', ' ']).any(|there| there == word)
    }
}

/// A link of a page, with its place.
#[derive(Debug, PartialEq)]
pub(crate) struct Link<'a> {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The byte of the page at which the address starts.
    pub(crate) start: usize,
    /// The address before `#`; empty for a place of the same page.
    pub(crate) path: &'a str,
    /// The address after `#`.
    pub(crate) anchor: Option<&'a str>,
}

/// Returns the fenced blocks and the comments of a page, in order.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let trimmed = line.trim();
        let ticks = trimmed.bytes().take_while(|byte| *byte == b'`').count();
        if ticks >= 3 {
            let indent = line.len() - line.trim_start().len();
            let comment = comment_before(&blocks, number);
            let mut fence = Fence {
                line: number + 1,
                info: trimmed[ticks..].trim().to_owned(),
                lines: Vec::new(),
                comment,
                is_closed: false,
            };
            for (_, line) in lines.by_ref() {
                let end = line.trim();
                if end.len() >= ticks && end.bytes().all(|byte| byte == b'`') {
                    fence.is_closed = true;
                    break;
                }
                let spaces = line.bytes().take(indent).take_while(|byte| *byte == b' ').count();
                fence.lines.push(line[spaces..].to_owned());
            }
            blocks.push(Block::Fence(fence));
        } else if let Some(first) = trimmed.strip_prefix("<!--") {
            let mut comment = first.to_owned();
            while !comment.contains("-->") {
                let Some((_, line)) = lines.next() else { break };
                comment.push('\n');
                comment.push_str(line);
            }
            let comment = comment.split("-->").next().unwrap_or_default().trim();
            blocks.push(Block::Comment(number + 1, comment.to_owned()));
        }
    }
    blocks
}

/// Returns the text of a comment that ends on the line before this one.
fn comment_before(blocks: &[Block], number: usize) -> Option<String> {
    match blocks.last()? {
        Block::Comment(line, text) if line + text.lines().count().max(1) - 1 == number => Some(text.clone()),
        _ => None,
    }
}

pub(crate) fn fences(text: &str) -> Vec<Fence> {
    let fence = |block| match block {
        Block::Fence(fence) => Some(fence),
        Block::Comment(..) => None,
    };
    blocks(text).into_iter().filter_map(fence).collect()
}

/// Returns the lines outside of fenced blocks, with their numbers from 1.
pub(crate) fn prose(text: &str) -> Vec<(usize, &str)> {
    let fences = fences(text);
    let inside = |number: &usize| {
        fences.iter().any(|fence| (fence.line..=fence.line + fence.lines.len() + 1).contains(number))
    };
    text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(number, _)| !inside(number)).collect()
}

/// Returns the links of a page that lead to files or places of the repository.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (line, words) in prose(text) {
        for target in words.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to) {
            let (path, anchor) = match target.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor)),
                None => (target, None),
            };
            if !target.is_empty() && !path.contains([':', ' ']) {
                let start = path.as_ptr() as usize - text.as_ptr() as usize;
                links.push(Link { line, start, path, anchor });
            }
        }
    }
    links
}

/// Returns the anchors of a page's headings, as GitHub and mdBook name them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut anchors = Vec::new();
    for (_, line) in prose(text) {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if level == 0 || !line[level..].starts_with(' ') {
            continue;
        }
        let anchor = slug(&line[level..]);
        let times = seen.entry(anchor.clone()).or_default();
        anchors.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    anchors
}

/// Returns the anchor of one heading.
fn slug(heading: &str) -> String {
    // Of a link, only its text counts.
    let mut parts = heading.trim().split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| text.push_str(part.split_once(')').map_or(part, |(_, rest)| rest)));
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fences_and_comments_come_in_order_with_their_lines() {
        let text = "a\n<!-- one -->\n```rust,ignore\nlet a;\n```\n<!-- two\nthree\n-->\n\n- b\n  ````md\n  ```\n  ````\n";
        let found = blocks(text);
        let [Block::Comment(2, one), Block::Fence(rust), Block::Comment(6, two), Block::Fence(nested)] =
            &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!((one.as_str(), two.as_str()), ("one", "two\nthree"));
        assert_eq!(
            (rust.line, rust.language(), rust.has("ignore"), rust.has("no_run")),
            (3, "rust", true, false)
        );
        assert_eq!((rust.comment.as_deref(), &rust.lines[..]), (Some("one"), &["let a;".to_owned()][..]));
        assert_eq!((nested.comment.as_deref(), &nested.lines[..]), (None, &["```".to_owned()][..]));
    }

    #[test]
    fn fences_block_without_an_end_is_not_closed() {
        let found = fences("```sh\nls\n");
        assert!(!found[0].is_closed, "{found:?}");
    }

    #[test]
    fn links_in_code_and_to_other_sites_are_left_out() {
        let text = "[a](b.md#c) [d](https://x.y/z) [e](#f)\n```\n[g](no.md)\n```\n[h](i.md)";
        let link = |line, path, anchor| Link { line, start: text.find(path).unwrap(), path, anchor };
        assert_eq!(
            links(text),
            [link(1, "b.md", Some("c")), Link { start: 35, ..link(1, "", Some("f")) }, link(5, "i.md", None)]
        );
    }

    #[test]
    fn anchors_of_headings_are_as_readers_find_them() {
        let text = "# The `archon run` command\n## A, and B\n```\n# no\n```\n## [Text](a.md) of snake_case\n## A and B\n#5\n";
        assert_eq!(anchors(text), ["the-archon-run-command", "a-and-b", "text-of-snake_case", "a-and-b-1"]);
    }
}
