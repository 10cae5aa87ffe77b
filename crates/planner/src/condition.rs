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

use archon_types::Json;

use crate::references::{Piece, Reference, Unresolved, pieces, resolve_text};

/// Suffix of a lookup key that asks whether a step failed.
pub(crate) const FAILED: &str = " failed";

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Expression);

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Value(Operand),
    Compare(Operand, Comparison, Operand),
    /// True if the step failed and the plan continues without it.
    Failed(Reference),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Json),
    /// Quoted text, which may contain references.
    Text(String),
    Reference(Reference),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Contains,
}

impl Condition {
    /// Parses a condition.
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

    /// Returns true if the condition holds. `lookup` returns the values of references; for a key `<step>
    /// failed`, it returns whether the step failed.
    ///
    /// # Errors
    /// The first reference without a value.
    pub fn holds(&self, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<bool, Unresolved> {
        evaluate(&self.0, lookup)
    }
}

fn evaluate(expression: &Expression, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<bool, Unresolved> {
    Ok(match expression {
        Expression::Value(operand) => is_true(&value(operand, lookup)?),
        Expression::Compare(left, comparison, right) => {
            compare(&value(left, lookup)?, *comparison, &value(right, lookup)?)
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

fn value(operand: &Operand, lookup: &dyn Fn(&str) -> Option<Json>) -> Result<Json, Unresolved> {
    match operand {
        Operand::Literal(value) => Ok(value.clone()),
        Operand::Text(text) => resolve_text(text, lookup),
        Operand::Reference(reference) => resolve_text(&reference.to_string(), lookup),
    }
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
    use std::cmp::Ordering::{Equal, Greater, Less};
    match comparison {
        Comparison::Equal => equal(left, right),
        Comparison::Unequal => !equal(left, right),
        Comparison::Contains => match left {
            Json::Array(items) => items.iter().any(|item| equal(item, right)),
            Json::Object(entries) => right.as_str().is_some_and(|key| entries.contains_key(key)),
            other => text(other).contains(&text(right)),
        },
        _ => {
            let order = match (number(left), number(right)) {
                (Some(left), Some(right)) => left.partial_cmp(&right),
                _ => Some(text(left).cmp(&text(right))),
            };
            matches!(
                (comparison, order),
                (Comparison::Less, Some(Less))
                    | (Comparison::LessOrEqual, Some(Less | Equal))
                    | (Comparison::More, Some(Greater))
                    | (Comparison::MoreOrEqual, Some(Greater | Equal))
            )
        }
    }
}

/// Compares two values: numbers by value, texts without surrounding white space, a text and a number by
/// their text.
fn equal(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::String(left), Json::String(right)) => left.trim() == right.trim(),
        (Json::String(_), Json::Number(_) | Json::Bool(_))
        | (Json::Number(_) | Json::Bool(_), Json::String(_)) => text(left).trim() == text(right).trim(),
        (Json::Number(_), Json::Number(_)) => number(left) == number(right),
        _ => left == right,
    }
}

fn number(value: &Json) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn collect(expression: &Expression, found: &mut Vec<Reference>) {
    let mut operand = |operand: &Operand| match operand {
        Operand::Reference(reference) => found.push(reference.clone()),
        Operand::Text(text) => found.extend(pieces(text).into_iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Text(_) => None,
        })),
        Operand::Literal(_) => {}
    };
    match expression {
        Expression::Value(value) => operand(value),
        Expression::Compare(left, _, right) => {
            operand(left);
            operand(right);
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
    Sign(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(word) => write!(f, "{word:?}"),
            Self::Quoted(text) => write!(f, "{text:?}"),
            Self::Reference(reference) => reference.fmt(f),
            Self::Sign(sign) => write!(f, "{sign:?}"),
        }
    }
}

const SIGNS: [&str; 8] = ["==", "!=", "<=", ">=", "<", ">", "(", ")"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if first == '\'' || first == '"' {
            let (inner, after) = quoted(&rest[1..], first).ok_or("a quote is not closed")?;
            tokens.push(Token::Quoted(inner));
            rest = after;
        } else if first == '{' {
            let end = rest.find('}').ok_or("a brace is not closed")?;
            match pieces(&rest[..=end]).as_slice() {
                [Piece::Reference(reference)] => tokens.push(Token::Reference(reference.clone())),
                _ => return Err(format!("{} is not a reference", &rest[..=end])),
            }
            rest = &rest[end + 1..];
        } else {
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            if length == 0 {
                return Err(format!("unexpected character {first:?}"));
            }
            tokens.push(Token::Word(rest[..length].to_owned()));
            rest = &rest[length..];
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

/// Returns the text up to the closing quote, and the rest. A doubled quote stands for a quote in the
/// text.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inner = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once(quote)?;
        inner.push_str(before);
        match after.strip_prefix(quote) {
            Some(more) => {
                inner.push(quote);
                rest = more;
            }
            None => return Some((inner, after)),
        }
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

    fn word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word));
        self.at += usize::from(is);
        is
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(is);
        is
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
        } else if self.sign("(") {
            let inner = self.any()?;
            if !self.sign(")") {
                return Err("a bracket is not closed".to_owned());
            }
            inner
        } else {
            let left = self.operand()?;
            if let Operand::Reference(step) = &left
                && step.path.is_empty()
                && self.word(FAILED.trim_start())
            {
                self.depth -= 1;
                return Ok(Expression::Failed(step.clone()));
            }
            match self.comparison() {
                Some(comparison) => Expression::Compare(left, comparison, self.operand()?),
                None => Expression::Value(left),
            }
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.peek()? {
            Token::Sign("==") => Comparison::Equal,
            Token::Sign("!=") => Comparison::Unequal,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::More,
            Token::Sign(">=") => Comparison::MoreOrEqual,
            Token::Word(word) if word.eq_ignore_ascii_case("contains") => Comparison::Contains,
            _ => return None,
        };
        self.at += 1;
        Some(comparison)
    }

    fn operand(&mut self) -> Result<Operand, String> {
        let operand = match self.peek() {
            Some(Token::Quoted(text)) => Operand::Text(text.clone()),
            Some(Token::Reference(reference)) => Operand::Reference(reference.clone()),
            Some(Token::Word(word)) => match serde_json::from_str(word) {
                Ok(value) => Operand::Literal(value),
                Err(_) => return Err(format!("{word} is not a value; put texts in quotes")),
            },
            Some(other) => return Err(format!("a value is missing before {other}")),
            None => return Err("a value is missing at the end".to_owned()),
        };
        self.at += 1;
        Ok(operand)
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
