//! Conditions of subtasks: comparisons of results, joined by `and`, `or` and `not`. Conditions have no
//! calls and no loops.
//!
//! ```text
//! {issue} == 'billing' and not ({score} < 0.5 or {tags} contains "spam")
//! ```
//!
//! `{step} failed` is true if a step failed and the plan continues without it.
//!
//! A quote inside a text with the same quotes is doubled: `'it''s'`.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use archon_types::Json;

use crate::{
    references::{Reference, Unresolved, only_reference, references, resolve},
    texts::text_of,
};

/// Suffix of a lookup key that asks whether a step failed.
pub(crate) const FAILED: &str = " failed";

/// A parsed condition of a subtask: comparisons of results, joined by `and`, `or` and `not`, for example
/// `{issue} == 'billing' and not ({score} < 0.5)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Expression);

/// An expression in a condition. A value in it is JSON, whose texts may contain references.
#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Value(Json),
    Compare(Json, Comparison, Json),
    /// True if the step failed and the plan continues without it.
    Failed(Reference),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Contains,
    /// True if the comparison of the left value with the right value gives one of these orders.
    Order(&'static [Ordering]),
}

/// The signs of comparisons. A longer sign comes before the signs with which it starts.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::Order(&[Less, Equal])),
    (">=", Comparison::Order(&[Greater, Equal])),
    ("<", Comparison::Order(&[Less])),
    (">", Comparison::Order(&[Greater])),
];

impl Condition {
    /// Parses a condition, for example `{issue} == 'billing' or {fetch} failed`. `{name}` stands for a value. The
    /// comparisons are `==`, `!=`, `<`, `<=`, `>`, `>=` and `contains`.
    ///
    /// # Errors
    /// A description of the problem, in one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
        let expression = parser.any()?;
        match parser.peek() {
            None => Ok(Self(expression)),
            Some(token) => Err(format!("unexpected {token}")),
        }
    }

    /// Returns the references in the condition.
    pub fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        collect(&self.0, &mut found);
        found
    }

    /// Returns true if the condition holds. `lookup` returns the value of a name; for the name `<step> failed`, it
    /// returns true if the step failed and the plan continues without the step.
    ///
    /// # Errors
    /// The first reference without a value.
    pub fn holds(&self, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<bool, Unresolved> {
        evaluate(&self.0, lookup)
    }
}

fn evaluate(expression: &Expression, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<bool, Unresolved> {
    Ok(match expression {
        Expression::Value(value) => is_true(&resolve(value, lookup)?),
        Expression::Compare(left, comparison, right) => {
            compare(&resolve(left, lookup)?, *comparison, &resolve(right, lookup)?)
        }
        Expression::Failed(step) => match lookup(&format!("{}{FAILED}", step.head)) {
            Some(failed) => is_true(&failed),
            None => return Err(Unresolved::Unknown { reference: step.to_string() }),
        },
        Expression::Not(inner) => !evaluate(inner, lookup)?,
        Expression::And(left, right) => evaluate(left, lookup)? && evaluate(right, lookup)?,
        Expression::Or(left, right) => evaluate(left, lookup)? || evaluate(right, lookup)?,
    })
}

fn is_true(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(is) => *is,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.trim().is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(entries) => !entries.is_empty(),
    }
}

fn compare(left: &Json, comparison: Comparison, right: &Json) -> bool {
    match comparison {
        Comparison::Equal => equal(left, right),
        Comparison::Unequal => !equal(left, right),
        Comparison::Contains => match left {
            Json::Array(items) => items.iter().any(|item| equal(item, right)),
            Json::Object(entries) => right.as_str().is_some_and(|key| entries.contains_key(key)),
            other => text_of(other).contains(&text_of(right)),
        },
        Comparison::Order(orders) => {
            let order = match (number(left), number(right)) {
                (Some(left), Some(right)) => left.partial_cmp(&right),
                _ => Some(text_of(left).cmp(&text_of(right))),
            };
            order.is_some_and(|order| orders.contains(&order))
        }
    }
}

/// Compares two values: numbers by value, texts without surrounding white space, a text and a number (or a
/// boolean) by their text.
fn equal(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::String(_), Json::String(_) | Json::Number(_) | Json::Bool(_))
        | (Json::Number(_) | Json::Bool(_), Json::String(_)) => text_of(left).trim() == text_of(right).trim(),
        (Json::Number(_), Json::Number(_)) => number(left) == number(right),
        _ => left == right,
    }
}

fn number(value: &Json) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn collect(expression: &Expression, found: &mut Vec<Reference>) {
    match expression {
        Expression::Value(value) => found.extend(references(value)),
        Expression::Compare(left, _, right) => {
            found.extend(references(left).into_iter().chain(references(right)));
        }
        Expression::Failed(step) => found.push(step.clone()),
        Expression::Not(inner) => collect(inner, found),
        Expression::And(left, right) | Expression::Or(left, right) => {
            collect(left, found);
            collect(right, found);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Reference(Reference),
    Comparison(&'static str, Comparison),
    Bracket(char),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(text) | Self::Quoted(text) => write!(f, "{text:?}"),
            Self::Reference(reference) => reference.fmt(f),
            Self::Comparison(sign, _) => write!(f, "{sign:?}"),
            Self::Bracket(bracket) => write!(f, "\"{bracket}\""),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '(' | ')' => (Token::Bracket(first), 1),
            '\'' | '"' => {
                let (inner, after) = quoted(&rest[1..], first).ok_or("a quote is not closed")?;
                (Token::Quoted(inner), rest.len() - after.len())
            }
            '{' => {
                let length = rest.find('}').ok_or("a brace is not closed")? + 1;
                let reference = only_reference(&rest[..length])
                    .ok_or_else(|| format!("{} is not a reference", &rest[..length]))?;
                (Token::Reference(reference), length)
            }
            _ => sign_or_word(rest).ok_or_else(|| format!("unexpected character {first:?}"))?,
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Returns the sign of a comparison or the word with which the text starts, and its length in bytes.
fn sign_or_word(text: &str) -> Option<(Token, usize)> {
    if let Some((sign, comparison)) = COMPARISONS.into_iter().find(|(sign, _)| text.starts_with(sign)) {
        return Some((Token::Comparison(sign, comparison), sign.len()));
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
    let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
    (length > 0).then(|| (Token::Word(text[..length].to_owned()), length))
}

/// Returns the text up to the closing quote, and the rest. A doubled quote stands for a quote in the
/// text.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inner = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once(quote)?;
        inner.push_str(before);
        let Some(more) = after.strip_prefix(quote) else { return Some((inner, after)) };
        inner.push(quote);
        rest = more;
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
}

/// Maximum number of levels of nesting.
const DEEPEST: u32 = 50;

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// Skips the next token if `is` returns true for it.
    fn skip_if(&mut self, is: impl Fn(&Token) -> bool) -> bool {
        let skipped = self.peek().is_some_and(is);
        self.at += usize::from(skipped);
        skipped
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip_if(|token| matches!(token, Token::Word(w) if w.eq_ignore_ascii_case(word)))
    }

    fn any(&mut self) -> Result<Expression, String> {
        let mut left = self.all()?;
        while self.word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.all()?));
        }
        Ok(left)
    }

    fn all(&mut self) -> Result<Expression, String> {
        let mut left = self.one()?;
        while self.word("and") {
            left = Expression::And(Box::new(left), Box::new(self.one()?));
        }
        Ok(left)
    }

    fn one(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("the condition is nested more than {DEEPEST} levels deep"));
        }
        let expression = if self.word("not") {
            Expression::Not(Box::new(self.one()?))
        } else if self.skip_if(|token| *token == Token::Bracket('(')) {
            let inner = self.any()?;
            if !self.skip_if(|token| *token == Token::Bracket(')')) {
                return Err("a bracket is not closed".to_owned());
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let step = match self.peek() {
            Some(Token::Reference(step)) if step.path.is_empty() => Some(step.clone()),
            _ => None,
        };
        let left = self.value()?;
        if let Some(step) = step
            && self.word(FAILED.trim_start())
        {
            return Ok(Expression::Failed(step));
        }
        let comparison = match self.peek() {
            Some(Token::Comparison(_, comparison)) => *comparison,
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("contains") => Comparison::Contains,
            _ => return Ok(Expression::Value(left)),
        };
        self.at += 1;
        Ok(Expression::Compare(left, comparison, self.value()?))
    }

    fn value(&mut self) -> Result<Json, String> {
        let value = match self.peek() {
            Some(Token::Quoted(text)) => Json::String(text.clone()),
            Some(Token::Reference(reference)) => Json::String(reference.to_string()),
            Some(Token::Word(word)) => serde_json::from_str(word)
                .map_err(|_| format!("{word} is not a value; put texts in quotes"))?,
            Some(other) => return Err(format!("a value is missing before {other}")),
            None => return Err("a value is missing at the end".to_owned()),
        };
        self.at += 1;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known(name: &str) -> Option<Json> {
        json!({"kind": "billing\n", "n": 3, "score": "0.4", "tags": ["a", "spam"], "none": null, "o": {"k": 1}})
            .get(name)
            .cloned()
    }

    fn holds(text: &str) -> bool {
        Condition::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).holds(&known).unwrap()
    }

    // spec: EX-07
    #[test]
    fn condition_holds_or_not_for_given_values() {
        for text in [
            "{kind} == 'billing'",
            "'{kind}' == 'billing'",
            "{kind} != \"sales\"",
            "{n} >= 3 and {n} < 3.5",
            "{score} < 0.5",
            "{tags} contains 'spam'",
            "{kind} contains 'bill'",
            "{o} contains 'k'",
            "not {none}",
            "not ({n} > 5 or {kind} == 'x') and true",
            "{none} == null",
            "{n} == '3'",
            "false or {tags[1]} == 'spam'",
            "'it''s' == \"it's\"",
            "'' == \"\" and \"a\"\"b\" contains '\"'",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in ["{kind} == 'Billing'", "{none}", "{n} > 3", "{score} > 0.5 or false", "not true"] {
            assert!(!holds(text), "{text}");
        }
    }

    // spec: EX-07
    #[test]
    fn condition_parse_error_names_the_problem() {
        for (text, problem) in [
            ("", "a value is missing at the end"),
            ("{kind} ==", "a value is missing at the end"),
            ("{kind} == billing", "billing is not a value; put texts in quotes"),
            ("{kind} == 'billing", "a quote is not closed"),
            ("{kind == 'x'", "a brace is not closed"),
            ("{a b} == 1", "{a b} is not a reference"),
            ("(true", "a bracket is not closed"),
            ("true true", "unexpected \"true\""),
            ("import('os')", "import is not a value; put texts in quotes"),
            ("1 ; 2", "unexpected character ';'"),
        ] {
            assert_eq!(Condition::parse(text).unwrap_err(), problem, "{text}");
        }
        assert!(Condition::parse(&"(".repeat(100_000)).unwrap_err().contains("levels deep"));
        assert!(Condition::parse(&"not ".repeat(100_000)).unwrap_err().contains("levels deep"));
        assert!(Condition::parse("{o.k} failed").unwrap_err().contains("unexpected"), "a part cannot fail");
        assert!(Condition::parse("{gone} == 1").unwrap().holds(&known).is_err());
    }
}
