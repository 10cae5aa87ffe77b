//! Shortens a single tool result: when it enters the window, and when the window becomes full.

use archon_types::{
    Content, ContextConfig, ContextLevel, Message, PDF_PAGE_TOKENS, ResultTokens, TokenEstimate,
};

use crate::text_mode;

/// The size limit of a tool result that enters the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultLimit {
    /// The limit in a large window: a share of the window, in characters.
    Share { max_chars: u64 },
    /// The limit in a small window: a number of tokens that depends on the level of window usage.
    Level { max_tokens: u64, level: ContextLevel },
}

impl ResultLimit {
    pub(crate) fn of(config: &ContextConfig, level: ContextLevel) -> Self {
        let share = (config.max_context_tokens as f64 * config.max_tool_result_share) as u64;
        if config.max_context_tokens >= LARGE_WINDOW {
            let max_chars = (share.saturating_mul(4)).min(config.max_tool_result_chars);
            Self::Share { max_chars: max_chars.max(FEWEST_CHARS) }
        } else {
            let by_level = tokens_at(&config.tool_result_max_tokens, level);
            Self::Level { max_tokens: by_level.min(share).max(FEWEST_TOKENS), level }
        }
    }

    /// Returns the limit in tokens, as notices state it.
    pub(crate) fn tokens(self) -> u64 {
        match self {
            Self::Share { max_chars } => max_chars / 4,
            Self::Level { max_tokens, .. } => max_tokens,
        }
    }

    /// Returns the shortened text; `None` if `text` is small enough.
    pub(crate) fn cut(self, text: &str) -> Option<String> {
        match self {
            Self::Share { max_chars } => cut_at_line(text, max_chars),
            Self::Level { max_tokens, level } => {
                if tokens_of(text) <= max_tokens {
                    return None;
                }
                let notice = notice(level);
                // One more, for the line break and for rounding.
                let rest = max_tokens.saturating_sub(tokens_of(notice) + 1);
                Some(format!("{}\n{notice}", cut_to_tokens(text, rest)))
            }
        }
    }
}

/// Cuts the text to `max_chars` characters, at the last line break if that is in the second half.
fn cut_at_line(text: &str, max_chars: u64) -> Option<String> {
    let end = char_end(text, max_chars)?;
    let cut = &text[..end];
    let cut = match cut.rfind('\n') {
        Some(at) if at > cut.len() / 2 => &cut[..at],
        _ => cut,
    };
    Some(format!("{cut}\n[...truncated]"))
}

/// Cuts the text to `max_tokens` and ends it with `...`. At least ten characters remain.
pub(crate) fn cut_to_tokens(text: &str, max_tokens: u64) -> String {
    if tokens_of(text) <= max_tokens {
        return text.to_owned();
    }
    let mut chars = (max_tokens as f64 * TokenEstimate::CHARS_PER_TOKEN) as u64;
    loop {
        chars = chars.max(10);
        let cut = char_end(text, chars).map_or(text, |end| &text[..end]);
        let shorter = format!("{cut}...");
        if chars == 10 || tokens_of(&shorter) <= max_tokens {
            return shorter;
        }
        chars -= 1;
    }
}

/// Keeps the first and the last lines, `lines` in total, with a line between them that states the number
/// of removed lines. Also cuts text whose lines are very long.
pub(crate) fn to_lines(text: &str, lines: u32) -> String {
    let lines = lines.max(1) as usize;
    let all: Vec<&str> = text.lines().collect();
    let head = lines.div_ceil(2);
    let short = match all.len().checked_sub(lines) {
        Some(left_out @ 1..) => format!(
            "{}\n[... {left_out} lines left out ...]{}",
            all[..head].join("\n"),
            all[head + left_out..].iter().map(|line| format!("\n{line}")).collect::<String>()
        ),
        _ => text.to_owned(),
    };
    cut_at_line(&short, (lines * CHARS_PER_LINE) as u64).unwrap_or(short)
}

/// Returns the message with texts of at most `lines` lines and without media.
pub(crate) fn message_to_lines(message: &Message, lines: u32) -> Message {
    with_content(message, |block| match block {
        Content::Text { text } => Content::text(to_lines(text, lines)),
        other => other.as_media().map_or_else(|| other.clone(), |media| media.note("left out").into()),
    })
}

/// Returns true if [`message_to_lines`] would change the message.
pub(crate) fn is_longer_than(message: &Message, lines: u32) -> bool {
    let chars = lines.max(1) as usize * CHARS_PER_LINE;
    message.content().iter().any(|block| match block {
        Content::Text { text } => {
            text.len() > chars && text.chars().nth(chars).is_some()
                // One more, for the line that states the number of removed lines.
                || text.lines().nth(lines.max(1) as usize + 1).is_some()
        }
        other => other.as_media().is_some(),
    })
}

/// Returns the message shortened to `limit`; `None` if the message is small enough. A PDF file with more tokens than
/// the limit is left out.
pub(crate) fn clip(message: &Message, limit: ResultLimit) -> Option<Message> {
    let is_long = |block: &Content| {
        let pages = block.as_media().and_then(|media| media.media?.pages());
        pages.is_some_and(|pages| u64::from(pages) * PDF_PAGE_TOKENS > limit.tokens())
    };
    let text = message.text();
    let short = limit.cut(&text).map(|short| text_mode::closed(&text, short));
    if short.is_none() && !message.content().iter().any(is_long) {
        return None;
    }
    let mut first = short.as_deref();
    let mut clipped = with_content(message, |block| match (block, block.as_media()) {
        (Content::Text { .. }, _) if short.is_some() => Content::text(first.take().unwrap_or_default()),
        (_, Some(media)) if is_long(block) => media.note("too long for a result, left out").into(),
        (other, _) => other.clone(),
    });
    content_of(&mut clipped).retain(|block| block.as_text() != Some(""));
    Some(clipped)
}

/// Returns the message with a text about each medium, by which a model can name the medium in a call. `None` for a
/// message without media.
pub(crate) fn with_names(message: &Message) -> Option<Message> {
    let names = message.content().iter().filter_map(|block| block.as_media()?.media);
    let names: Vec<Content> = names.map(|media| Content::text(format!("[{}]", media.label()))).collect();
    if names.is_empty() {
        return None;
    }
    let mut named = message.clone();
    match &mut named {
        Message::User(user) => names.into_iter().for_each(|name| user.add_written(name)),
        other => content_of(other).extend(names),
    }
    Some(named)
}

fn with_content(message: &Message, change: impl FnMut(&Content) -> Content) -> Message {
    let mut changed = message.clone();
    *content_of(&mut changed) = message.content().iter().map(change).collect();
    changed
}

fn content_of(message: &mut Message) -> &mut Vec<Content> {
    match message {
        Message::User(m) => &mut m.content,
        Message::Assistant(m) => &mut m.content,
        Message::ToolResult(m) => &mut m.content,
    }
}

/// Returns the byte index after the first `max` characters; `None` if the text is not longer.
pub(crate) fn char_end(text: &str, max: u64) -> Option<usize> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    // A text has at most as many characters as bytes.
    if text.len() <= max {
        return None;
    }
    text.char_indices().nth(max).map(|(end, _)| end)
}

fn tokens_of(text: &str) -> u64 {
    archon_types::TokenCounter::count(&TokenEstimate, text)
}

fn tokens_at(limits: &ResultTokens, level: ContextLevel) -> u64 {
    match level {
        ContextLevel::Normal => limits.normal,
        ContextLevel::Moderate => limits.moderate,
        ContextLevel::Aggressive => limits.aggressive,
        ContextLevel::Critical => limits.critical,
    }
}

fn notice(level: ContextLevel) -> &'static str {
    match level {
        ContextLevel::Critical => "[Result truncated due to critical context usage]",
        ContextLevel::Aggressive => "[Result truncated due to high context usage]",
        _ => "[Result truncated due to context limits]",
    }
}

/// Minimum size in tokens of a window in which the limit of a result is a share of the window.
const LARGE_WINDOW: u64 = 64_000;
const FEWEST_CHARS: u64 = 2_000;
const FEWEST_TOKENS: u64 = 200;
/// Maximum average number of characters per line.
const CHARS_PER_LINE: usize = 200;

#[cfg(test)]
mod tests {
    use archon_types::{Media, Timestamp, ToolCall, ToolResult, UserMessage};
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn share(window: u64) -> ResultLimit {
        ResultLimit::of(&ContextConfig::new(window), ContextLevel::Normal)
    }

    // spec: TE-24, C-16
    #[test]
    fn result_limit_in_a_large_window_is_a_share_of_it() {
        assert_eq!(share(100_000), ResultLimit::Share { max_chars: 120_000 });
        assert_eq!(share(1_000_000), ResultLimit::Share { max_chars: 400_000 });
        let mut config = ContextConfig::new(64_000);
        config.max_tool_result_share = 0.0;
        let limit = ResultLimit::of(&config, ContextLevel::Critical);
        assert_eq!(limit, ResultLimit::Share { max_chars: 2_000 });
        assert_eq!(limit.cut(&"é".repeat(2_000)), None);
        assert_eq!(limit.cut(&"é".repeat(2_001)).unwrap(), format!("{}\n[...truncated]", "é".repeat(2_000)));
        // Cuts at the last line break, unless that would remove more than half.
        let late = format!("{}\n{}", "a".repeat(1_500), "b".repeat(1_000));
        assert_eq!(limit.cut(&late).unwrap(), format!("{}\n[...truncated]", "a".repeat(1_500)));
        let early = format!("{}\n{}", "a".repeat(500), "b".repeat(2_000));
        assert_eq!(limit.cut(&early).unwrap(), format!("{}\n[...truncated]", &early[..2_000]));
    }

    // spec: TE-23
    #[test]
    fn result_limit_in_a_small_window_shrinks_with_its_usage() {
        let config = ContextConfig::new(16_384);
        let text = "x".repeat(10_000);
        let table = [
            (ContextLevel::Normal, 1_000, "[Result truncated due to context limits]"),
            (ContextLevel::Moderate, 750, "[Result truncated due to context limits]"),
            (ContextLevel::Aggressive, 500, "[Result truncated due to high context usage]"),
            (ContextLevel::Critical, 200, "[Result truncated due to critical context usage]"),
        ];
        for (level, max_tokens, notice) in table {
            let limit = ResultLimit::of(&config, level);
            assert_eq!(limit.tokens(), max_tokens);
            let cut = limit.cut(&text).unwrap();
            assert!(cut.ends_with(&format!("x...\n{notice}")), "{level:?}: {cut}");
            assert!((max_tokens - 3..=max_tokens).contains(&tokens_of(&cut)), "{}", tokens_of(&cut));
            let fits = "x".repeat(max_tokens as usize * 38 / 10);
            assert_eq!(limit.cut(&fits), None);
        }
        let tiny = ContextConfig::new(500);
        assert_eq!(ResultLimit::of(&tiny, ContextLevel::Critical).tokens(), 200);
    }

    // spec: TE-25
    #[test]
    fn a_text_is_cut_to_tokens_and_never_to_nothing() {
        let table = [
            ("short", 10, "short"),
            ("abcdefghijklmnopqrstuvwxyz", 5, "abcdefghijklmnopqrs..."),
            ("abcdefghijklmnopqrstuvwxyz", 0, "abcdefghij..."),
            ("ééééééééééééééééé", 1, "éééééééééé..."),
        ];
        for (text, tokens, expected) in table {
            assert_eq!(cut_to_tokens(text, tokens), expected);
        }
    }

    // spec: EX-16
    #[test]
    fn a_long_pdf_file_in_a_result_is_left_out_and_a_picture_stays() {
        let pdf = |pages: usize| {
            let text = format!("%PDF-1.7 {}", "<</Type/Page>>".repeat(pages));
            Content::from(Media::new(text.as_bytes(), Some("a.pdf")).unwrap())
        };
        let picture = Content::from(Media::new(b"\x89PNG\r\n\x1a\n", None).unwrap());
        let limit = ResultLimit::Share { max_chars: 40_000 };
        let result = |blocks: &[Content]| {
            let mut result = ToolResult::default();
            result.content = blocks.to_vec();
            Message::tool_result(&ToolCall::new("c", "t", json!({})), &result, Timestamp::default())
        };
        assert_eq!(clip(&result(&[pdf(5), picture.clone()]), limit), None, "10,000 tokens");
        let clipped = clip(&result(&[Content::text("x"), pdf(6), picture.clone()]), limit).unwrap();
        let reference = pdf(6).as_media().unwrap().media.unwrap().label();
        let note = Content::text(format!("[{reference}: too long for a result, left out]"));
        assert_eq!(clipped.content(), [Content::text("x"), note, picture]);
    }

    // spec: EX-16
    #[test]
    fn names_of_media_stand_after_the_words_and_before_attached_files() {
        let picture = Media::new(b"\x89PNG\r\n\x1a\n", Some("a.png")).unwrap();
        let mut user = UserMessage::new(vec![Content::text("See @a.png")], Timestamp::default());
        user.attach("a.png", picture.clone().into());
        let Some(Message::User(named)) = with_names(&Message::User(user)) else { panic!("no names") };
        let name = Content::text(format!("[{}]", picture.label()));
        assert_eq!(named.written_content(), [Content::text("See @a.png"), name]);
        assert_eq!(named.attached_content().collect::<Vec<_>>(), [("a.png", &picture.into())]);
        assert_eq!(with_names(&Message::user("no media", Timestamp::default())), None);
    }

    // spec: C-02
    #[test]
    fn a_result_keeps_its_first_and_last_lines() {
        let text = (1..=9).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        expect![[r#"
            1
            2
            3
            [... 4 lines left out ...]
            8
            9"#]]
        .assert_eq(&to_lines(&text, 5));
        assert_eq!(to_lines(&text, 9), text);
        assert_eq!(to_lines(&text, 0), "1\n[... 8 lines left out ...]");
        let wide = to_lines(&"w".repeat(1_000), 2);
        assert_eq!(wide, format!("{}\n[...truncated]", "w".repeat(400)));
        let call = ToolCall::new("c", "t", json!({}));
        let mut result = ToolResult::success(text);
        result.content.push(Content::Image { data: "AAAA".into(), mime_type: "image/png".into() });
        let message = Message::tool_result(&call, &result, Timestamp::default());
        assert!(is_longer_than(&message, 50));
        let short = message_to_lines(&message, 3);
        assert_eq!(short.text(), "1\n2\n[... 6 lines left out ...]\n9\n[image/png: left out]");
        assert!(!is_longer_than(&short, 50));
    }
}
