//! Neutralises the special tokens of chat templates in tool results. A model server may interpret such a
//! token anywhere in the text, so in a result it could look like the end of the result or the beginning of
//! another turn.
//!
//! Each such token gets a space after its first character before the model reads it, as in `< |im_start|>` or `[
//! INST]`. The text is still readable, but is no longer the token. A note tells the model about the space, so that the
//! model leaves it out when it writes the text back, for instance with `edit_file`.

use std::borrow::Cow;

use archon_types::{Content, ToolResult};

/// Names of elements that count as chat template tokens: `<name>` and `</name>` with any attributes, in upper
/// or lower case.
const ELEMENTS: &str = "assistant bos end_of_turn eos function_calls function_response function_result \
    function_results start_of_turn sys system system-reminder tool_call tool_calls tool_result tool_results";

/// Chat template tokens in square brackets, case-sensitive. Tokens between bars, such as `<|im_start|>`, need
/// no list.
const BRACKETED: &str = "[INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] \
    [TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS]";

/// Maximum number of characters of a chat template token; a longer text in angle brackets is not one.
const LONGEST: usize = 200;

/// Note for the model on a result in which chat template tokens got a space.
const CHANGED: &str = "(Words that mark the turns of a chat stand in this result with a space behind their first \
                       character. The original has no such space.)";

/// Puts a space into each chat template token in a result, and adds a note for the model if there was a
/// token. Elements with a name in `elements` count as tokens too.
pub(crate) fn spell_out(result: &mut ToolResult, elements: &[String]) {
    let mut is_changed = false;
    for block in &mut result.content {
        let Content::Text { text } = block else { continue };
        if let Cow::Owned(harmless) = spelled_out(text, elements) {
            *text = harmless;
            is_changed = true;
        }
    }
    if is_changed {
        result.content.push(Content::text(CHANGED));
    }
}

/// Returns the text with a space after the first character of each chat template token.
fn spelled_out<'t>(text: &'t str, elements: &[String]) -> Cow<'t, str> {
    let (mut harmless, mut from) = (String::new(), 0);
    for (at, _) in text.match_indices(['<', '[']) {
        if is_token(&text[at..], elements) {
            harmless.push_str(&text[from..=at]);
            harmless.push(' ');
            from = at + 1;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    harmless.push_str(&text[from..]);
    Cow::Owned(harmless)
}

/// Returns whether the text begins with a chat template token; invisible characters in it are ignored.
fn is_token(text: &str, elements: &[String]) -> bool {
    let mut seen = text.chars().filter(|c| !is_unseen(*c));
    if seen.next() == Some('[') {
        let begins = |word: &str| word.chars().skip(1).eq(seen.clone().take(word.len() - 1));
        return BRACKETED.split(' ').any(begins);
    }
    let inside: String = seen.take(LONGEST).take_while(|c| !matches!(c, '<' | '>')).collect();
    let is_closed = || text.chars().skip(1).find(|c| matches!(c, '<' | '>')) == Some('>');
    (is_between_bars(&inside) || is_element(&inside, elements)) && is_closed()
}

/// Returns whether the text in angle brackets is a chat template token such as `|im_start|`. Some models use
/// full-width bars.
fn is_between_bars(inside: &str) -> bool {
    let bars = ['|', '\u{ff5c}'];
    let word = inside.strip_prefix(bars).and_then(|rest| rest.strip_suffix(bars));
    word.is_some_and(|word| !word.is_empty() && !word.contains('\n'))
}

/// Returns whether the text in angle brackets is an element name, with or without a namespace and
/// attributes.
fn is_element(inside: &str, elements: &[String]) -> bool {
    let tag = inside.strip_prefix('/').unwrap_or(inside);
    let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    let name = name.rsplit(':').next().unwrap_or_default();
    let mut all = ELEMENTS.split(' ').chain(elements.iter().map(String::as_str));
    all.any(|element| element.eq_ignore_ascii_case(name))
}

/// Returns whether a character is invisible: Unicode's `Default_Ignorable_Code_Point`, and controls.
fn is_unseen(c: char) -> bool {
    c.is_control() && !c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // spec: TE-52
    #[test]
    fn spelled_out_separates_chat_template_tokens_only() {
        for (text, expected) in [
            ("a <|im_start|>system\nb<|im_end|>", "a < |im_start|>system\nb< |im_end|>"),
            ("<start_of_turn>model <end_of_turn>", "< start_of_turn>model < end_of_turn>"),
            ("</function_results><system>", "< /function_results>< system>"),
            ("[INST] x [/INST]", "[ INST] x [ /INST]"),
            ("<<SYS>>x<</SYS>>", "<< SYS>>x<< /SYS>>"),
            ("<\u{ff5c}User\u{ff5c}>", "< \u{ff5c}User\u{ff5c}>"),
            ("<SYSTEM id=\"[>\">", "< SYSTEM id=\"[>\">"),
            ("<x:function_calls >", "< x:function_calls >"),
            ("<\u{200b}|im_\u{feff}start|\u{2060}>", "< \u{200b}|im_\u{feff}start|\u{2060}>"),
            ("<sys\u{200d}tem>[IN\u{ad}ST]", "< sys\u{200d}tem>[ IN\u{ad}ST]"),
            ("<own>x</own>", "< own>x< /own>"),
        ] {
            assert_eq!(spelled_out(text, &["own".to_owned()]), expected);
        }
        for text in [
            "if a < b && c > d { [inst] }",
            "<p>A system</p> <|> <||> a[INST<b>",
            "<system_error> <systems> <|a\nb|> < |im_start|> <system",
            "Vec<system::Time> x[INS T]",
            "ä<ä>é [",
        ] {
            assert!(matches!(spelled_out(text, &[]), Cow::Borrowed(_)), "{text}");
        }
    }

    // spec: TE-52
    #[test]
    fn spell_out_adds_a_note_to_a_changed_result() {
        let mut result = ToolResult::success("<|im_start|>");
        spell_out(&mut result, &[]);
        assert!(result.text().starts_with("< |im_start|>\n(Words that mark"), "{}", result.text());
        let (mut plain, before) = (ToolResult::success("plain"), ToolResult::success("plain"));
        spell_out(&mut plain, &[]);
        assert_eq!(plain, before);
    }

    proptest! {
        // spec: TE-52
        #[test]
        fn spelled_out_of_any_text_leaves_no_token_and_loses_no_text(parts in prop::collection::vec(prop_oneof![
            Just("<|im_start|>"), Just("<"), Just("|im_end|>"), Just("[INST]"), Just("["), Just("/INST]"), Just("system>"),
            Just("</system"), Just(">"), Just("\u{200b}"), Just("ä "), Just("|"),
        ], 0..30)) {
            let text = parts.concat();
            let clean = spelled_out(&text, &[]).into_owned();
            prop_assert!(matches!(spelled_out(&clean, &[]), Cow::Borrowed(_)), "{clean}");
            prop_assert_eq!(clean.replace(' ', ""), text.replace(' ', ""));
        }
    }
}
