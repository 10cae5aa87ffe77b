//! The form of a model's reply: the grammar that constrains the reply, and the reader that splits it.
//!
//! Every reply is a call, `NAME {arguments}`. An answer has this form too: it calls a tool that always exists
//! and is never run. So the model decides between an answer and each tool at one position, where the
//! probabilities of all choices can be compared.

use std::sync::Arc;

use serde_json::Value;

use crate::grammar::{Grammar, GrammarBuilder};
use crate::schema::{SchemaLimits, SchemaNodes};

/// The form of a reply: the texts around the name and the arguments of a tool call or of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `Tool: NAME {…}`: for a model that continues a transcript.
    Transcript,
    /// `Answer: {…}`: for a transcript that ends with a tool result, if the reply must be an answer. This
    /// form has its own label: with the label `Tool:`, the model would answer every question like a result,
    /// without a tool.
    Answer,
    /// `{"tool": "NAME", "arguments": {…}}`: for a model with a chat template.
    Json,
}

impl Form {
    /// Returns the text with which every reply in this form begins.
    pub(crate) fn lead(self) -> &'static str {
        match self {
            Self::Transcript => "Tool:",
            Self::Answer => "Answer:",
            Self::Json => "{\"tool\": \"",
        }
    }

    /// Returns the text between [`lead`](Self::lead) and the name.
    pub(crate) fn before_name(self) -> &'static str {
        match self {
            Self::Transcript => " ",
            Self::Answer | Self::Json => "",
        }
    }

    /// Returns the text between the name and the arguments.
    pub(crate) fn between(self) -> &'static str {
        match self {
            Self::Transcript | Self::Answer => " ",
            Self::Json => "\", \"arguments\": ",
        }
    }

    /// Returns the text after the arguments.
    pub(crate) fn close(self) -> &'static str {
        match self {
            Self::Transcript | Self::Answer => "",
            Self::Json => "}",
        }
    }

    /// Returns the text before the arguments.
    fn head(self, name: &str) -> String {
        let name = if self == Self::Answer { "" } else { name };
        [self.lead(), self.before_name(), name, self.between()].concat()
    }

    /// Returns a complete reply.
    pub(crate) fn write(self, name: &str, arguments: &str) -> String {
        [&self.head(name), arguments, self.close()].concat()
    }
}

/// One of the tools, or the answer, that a model may choose.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The name of the tool or of the answer.
    pub(crate) name: String,
    /// The JSON Schema of the arguments.
    pub(crate) schema: Value,
}

/// Returns the grammar of a reply that is one of these choices.
pub(crate) fn reply_grammar(form: Form, choices: &[Choice], limits: SchemaLimits) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let choices: Vec<_> = choices
        .iter()
        .map(|choice| {
            let head = builder.text(&form.head(&choice.name));
            let arguments = SchemaNodes::new(&mut builder, &choice.schema, limits).value(&choice.schema);
            let close = builder.text(form.close());
            builder.seq(&[head, arguments, close])
        })
        .collect();
    let root = builder.any(&choices);
    builder.finish(root)
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The beginning of a tool call.
    Call {
        /// The name of the tool.
        name: String,
    },
    /// A part of the arguments' text.
    Arguments(String),
    /// The arguments are complete.
    CallEnd,
    /// A part of the answer's text.
    Text(String),
}

/// The form of the answer within a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerShape {
    /// `{"text": "…"}`; only the text is passed on.
    Text,
    /// A JSON document, which is passed on unchanged.
    Document,
}

/// Splits a reply into parts while it is written.
#[derive(Debug)]
pub(crate) struct ReplyReader {
    form: Form,
    answer: Arc<str>,
    answer_form: AnswerShape,
    part: Part,
    /// The bytes of the current part that were not passed on yet.
    held: Vec<u8>,
    depth: Depth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Open,
    Name,
    Arguments,
    Document,
    /// Before the text of an answer.
    Lead,
    Text,
    Rest,
}

/// The bytes before the answer's text.
const TEXT_LEAD: &[u8] = b"{\"text\": \"";

impl ReplyReader {
    /// Creates a reader of replies in this form; `answer` is the name of the answer.
    pub(crate) fn new(form: Form, answer: &str, answer_form: AnswerShape) -> Self {
        Self {
            form,
            answer: answer.into(),
            answer_form,
            part: Part::Open,
            held: Vec::new(),
            depth: Depth::default(),
        }
    }

    /// Returns the parts that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for &byte in bytes {
            self.take(byte, &mut pieces);
        }
        self.flush(&mut pieces);
        pieces
    }

    fn take(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        self.held.push(byte);
        match self.part {
            Part::Open if self.held.len() == self.form.lead().len() + self.form.before_name().len() => {
                self.enter(Part::Name)
            }
            Part::Name if self.held.ends_with(self.form.between().as_bytes()) => {
                let end = self.held.len() - self.form.between().len();
                let name = String::from_utf8_lossy(&self.held[..end]).into_owned();
                if self.form != Form::Answer && *name != *self.answer {
                    pieces.push(Piece::Call { name });
                    self.enter(Part::Arguments);
                } else if self.answer_form == AnswerShape::Document {
                    self.enter(Part::Document);
                } else {
                    self.enter(Part::Lead);
                }
            }
            Part::Arguments | Part::Document if self.depth.closes(byte) => {
                let call = self.part == Part::Arguments;
                self.flush(pieces);
                self.enter(Part::Rest);
                if call {
                    pieces.push(Piece::CallEnd);
                }
            }
            Part::Lead if self.held == TEXT_LEAD => self.enter(Part::Text),
            Part::Text if byte == b'"' && !self.depth.escaped => {
                self.held.pop();
                self.flush(pieces);
                self.enter(Part::Rest);
            }
            Part::Text => self.depth.escaped = byte == b'\\' && !self.depth.escaped,
            _ => {}
        }
    }

    fn enter(&mut self, part: Part) {
        self.part = part;
        self.held.clear();
        self.depth = Depth::default();
    }

    /// Passes on the complete characters of the current part.
    fn flush(&mut self, pieces: &mut Vec<Piece>) {
        match self.part {
            Part::Arguments | Part::Document => {
                let text = take_text(&mut self.held, whole_characters);
                if !text.is_empty() {
                    let call = self.part == Part::Arguments;
                    pieces.push(if call { Piece::Arguments(text) } else { Piece::Text(text) });
                }
            }
            Part::Text => {
                let text = unescape(&take_text(&mut self.held, whole_escapes));
                if !text.is_empty() {
                    pieces.push(Piece::Text(text));
                }
            }
            Part::Rest => self.held.clear(),
            _ => {}
        }
    }
}

/// Tracks brackets and strings to find the end of a JSON document.
#[derive(Debug, Default)]
struct Depth {
    open: usize,
    string: bool,
    escaped: bool,
}

impl Depth {
    /// Returns true if the document ends with this byte. A document that is not an object or array never
    /// ends.
    fn closes(&mut self, byte: u8) -> bool {
        if self.string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.string = true,
            b'{' | b'[' => self.open += 1,
            b'}' | b']' => {
                self.open = self.open.saturating_sub(1);
                return self.open == 0;
            }
            _ => {}
        }
        false
    }
}

/// Removes the first bytes of `held`, as many as `complete` returns, and returns them as text.
fn take_text(held: &mut Vec<u8>, complete: impl Fn(&[u8]) -> usize) -> String {
    let rest = held.split_off(complete(held));
    String::from_utf8_lossy(&std::mem::replace(held, rest)).into_owned()
}

/// Returns the number of bytes up to the last complete character.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Returns the number of bytes up to the last complete character and the last complete escape.
fn whole_escapes(bytes: &[u8]) -> usize {
    let end = whole_characters(bytes);
    let mut at = 0;
    while at < end {
        let length = match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        if at + length > end {
            return at;
        }
        at += length;
    }
    end
}

/// Returns the text for the inside of a JSON string.
fn unescape(inside: &str) -> String {
    serde_json::from_str(&format!("\"{inside}\"")).unwrap_or_else(|_| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::matcher::Matcher;

    fn read(form: Form, answer_form: AnswerShape, reply: &str, step: usize) -> Vec<Piece> {
        let mut reader = ReplyReader::new(form, "answer", answer_form);
        let mut pieces: Vec<Piece> = Vec::new();
        for bytes in reply.as_bytes().chunks(step) {
            for piece in reader.push(bytes) {
                match (pieces.last_mut(), piece) {
                    (Some(Piece::Text(have)), Piece::Text(more)) => have.push_str(&more),
                    (Some(Piece::Arguments(have)), Piece::Arguments(more)) => have.push_str(&more),
                    (_, piece) => pieces.push(piece),
                }
            }
        }
        pieces
    }

    #[test]
    fn reply_reader_call_is_equal_for_any_chunks() {
        let arguments = r#"{"path": "a}\"ü", "n": [1, {"x": 2}]}"#;
        for form in [Form::Transcript, Form::Json] {
            let reply = form.write("read_file", arguments);
            for step in 1..reply.len() {
                assert_eq!(
                    read(form, AnswerShape::Text, &reply, step),
                    [
                        Piece::Call { name: "read_file".into() },
                        Piece::Arguments(arguments.into()),
                        Piece::CallEnd
                    ]
                );
            }
        }
    }

    #[test]
    fn the_text_of_an_answer_is_unescaped_on_the_way() {
        let reply = Form::Json.write("answer", r#"{"text": "a \"b\"\n\u0007ü\\"}"#);
        for step in 1..reply.len() {
            assert_eq!(
                read(Form::Json, AnswerShape::Text, &reply, step),
                [Piece::Text("a \"b\"\n\u{7}ü\\".into())]
            );
        }
    }

    #[test]
    fn reply_reader_passes_a_json_document_unchanged() {
        let reply = Form::Transcript.write("answer", r#"{"text": ["}"]}"#);
        assert_eq!(
            read(Form::Transcript, AnswerShape::Document, &reply, 3),
            [Piece::Text(r#"{"text": ["}"]}"#.into())]
        );
    }

    #[test]
    fn the_grammar_takes_calls_of_declared_tools_only() {
        let choices = [
            Choice {
                name: "add".into(),
                schema: json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
            },
            Choice {
                name: "answer".into(),
                schema: json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
            },
        ];
        let grammar = Arc::new(reply_grammar(Form::Json, &choices, SchemaLimits::default()));
        let takes = |text: &str| {
            let mut matcher = Matcher::new(grammar.clone());
            matcher.advance(text.as_bytes()) && matcher.must_end()
        };
        assert!(takes(r#"{"tool": "add", "arguments": {"a": 7}}"#));
        assert!(takes(r#"{"tool": "answer", "arguments": {"text": "x"}}"#));
        assert!(!takes(r#"{"tool": "remove", "arguments": {}}"#));
        assert!(!takes(r#"{"tool": "add", "arguments": {"a": "7"}}"#));
    }
}
