//! Parses and evaluates arithmetic in one pass, in the notations that people and models use.
//!
//! ```text
//! sum     = product (('+' | '-') product)*          200 - 10%  takes 10 % of the 200 off
//! product = signed (('*' | '/' | '%' | 'of') signed)*
//! signed  = ('-' | '+') signed | power
//! power   = percent ('^' signed)?                    right to left; -2^2 is -4
//! percent = primary '%'*                             unless an operand follows: 17 % 5 is 2
//! primary = number | constant | function '(' sum (',' sum)* ')' | '(' sum ')'
//! ```

use archon_types::ToolError;

use super::rational::Number;

/// Maximum length of an expression in bytes; [`DEEPEST`] is the maximum number of nested levels.
const LONGEST: usize = 2_000;
const DEEPEST: usize = 64;

/// Evaluates an arithmetic expression.
///
/// Supports `+ - * / ^ %`, brackets, percentages (`15% of 200`, `200 + 15%`), thousands separators
/// (`1,250.50`), `sqrt abs min max round floor ceil exp ln log`, `pi` and `e`. `×`, `÷`, `**`, `x` and a
/// closing `=` are understood.
///
/// # Errors
/// [`ToolError::InvalidArgs`] with the position if the expression cannot be parsed; [`ToolError::Failed`]
/// for a division by zero, or a result that is too large or not real.
///
/// ```
/// use archon_tools::builtin::evaluate;
///
/// for (expression, value) in [("0.1 + 0.2", "0.3"), ("15% of 200", "30"), ("2^10", "1024"), ("1/3", "0.333333333333")] {
///     assert_eq!(evaluate(expression).unwrap().to_string(), value);
/// }
/// assert!(evaluate("1 / 0").is_err());
/// ```
pub fn evaluate(expression: &str) -> Result<Number, ToolError> {
    if expression.len() > LONGEST {
        return Err(ToolError::InvalidArgs(format!(
            "The expression has {} characters; {LONGEST} are allowed. Calculate it in parts.",
            expression.len()
        )));
    }
    let text = expression.trim().trim_end_matches(['=', '?', ' ']);
    let mut reader = Reader { text, at: 0, depth: 0, in_call: false };
    let value = reader.sum()?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.unexpected("an operator")),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Byte offset in `text` of the part that is not read yet.
    at: usize,
    depth: usize,
    /// True within a function's brackets, where a comma separates arguments, not thousands.
    in_call: bool,
}

/// A value, and whether it was written as a percentage: `200 + 10%` adds 10 % of 200.
type Operand = (Number, bool);

impl Reader<'_> {
    fn sum(&mut self) -> Result<Number, ToolError> {
        let (mut total, mut is_percentage) = self.product()?;
        loop {
            let subtract = match self.peek() {
                Some('+') => false,
                Some('-' | '−' | '–') => true,
                _ => return Ok(total),
            };
            self.skip();
            let (mut value, value_is_percentage) = self.product()?;
            if value_is_percentage && !is_percentage {
                value = total.times(value)?;
            }
            total = if subtract { total.minus(value)? } else { total.plus(value)? };
            is_percentage &= value_is_percentage;
        }
    }

    fn product(&mut self) -> Result<Operand, ToolError> {
        let (mut total, mut is_percentage) = self.signed()?;
        loop {
            let combine = match self.peek() {
                Some('*' | '×' | '·') => Number::times,
                Some('/' | '÷') => Number::divided_by,
                Some('%') => Number::modulo,
                Some(_) => match self.word() {
                    Some("of" | "x" | "X" | "times") => Number::times,
                    Some("mod") => Number::modulo,
                    _ => return Ok((total, is_percentage)),
                },
                None => return Ok((total, is_percentage)),
            };
            self.skip_operator();
            total = combine(total, self.signed()?.0)?;
            is_percentage = false;
        }
    }

    fn signed(&mut self) -> Result<Operand, ToolError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ToolError::InvalidArgs(format!(
                "The expression is nested deeper than {DEEPEST} levels"
            )));
        }
        let operand = match self.peek() {
            Some('-' | '−' | '–') => {
                self.skip();
                self.signed().map(|(value, is_percentage)| (value.negated(), is_percentage))
            }
            Some('+') => {
                self.skip();
                self.signed()
            }
            _ => self.power(),
        };
        self.depth -= 1;
        operand
    }

    fn power(&mut self) -> Result<Operand, ToolError> {
        let (base, is_percentage) = self.percent()?;
        if self.peek() != Some('^') && !self.rest().starts_with("**") {
            return Ok((base, is_percentage));
        }
        self.skip_operator();
        Ok((base.power(self.signed()?.0)?, false))
    }

    fn percent(&mut self) -> Result<Operand, ToolError> {
        let mut value = self.primary()?;
        let mut is_percentage = false;
        while self.peek() == Some('%') && !self.operand_follows_percent() {
            self.skip();
            value = value.divided_by(Number::whole(100))?;
            is_percentage = true;
        }
        Ok((value, is_percentage))
    }

    fn primary(&mut self) -> Result<Number, ToolError> {
        match self.peek() {
            Some('(') => {
                let outer = std::mem::replace(&mut self.in_call, false);
                self.skip();
                let value = self.sum()?;
                self.close_bracket()?;
                self.in_call = outer;
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == 'π' => self.named(),
            _ => Err(self.unexpected("a number")),
        }
    }

    fn number(&mut self) -> Result<Number, ToolError> {
        let rest = self.rest();
        let length = number_length(rest, !self.in_call);
        let digits: String = rest[..length].chars().filter(|c| !matches!(c, ',' | '_')).collect();
        let number = Number::parse(&digits).ok_or_else(|| self.unexpected("a number"))?;
        self.at += length;
        Ok(number)
    }

    fn named(&mut self) -> Result<Number, ToolError> {
        let Some(name) = self.word().map(str::to_lowercase) else { return Err(self.unexpected("a number")) };
        if let Some(constant) = constant(&name) {
            self.skip_operator();
            return Ok(constant);
        }
        if !is_function(&name) {
            return Err(self.unexpected("a number"));
        }
        self.skip_operator();
        if self.peek() != Some('(') {
            return Err(self.unexpected("'('"));
        }
        let outer = std::mem::replace(&mut self.in_call, true);
        let mut arguments = Vec::new();
        while arguments.is_empty() || self.peek() == Some(',') {
            self.skip();
            arguments.push(self.sum()?);
        }
        self.close_bracket()?;
        self.in_call = outer;
        apply(&name, &arguments)
    }

    fn close_bracket(&mut self) -> Result<(), ToolError> {
        match self.peek() {
            Some(')') => {
                self.skip();
                Ok(())
            }
            _ => Err(self.unexpected("')'")),
        }
    }

    /// Skips spaces and returns the next character without consuming it.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    /// Returns the next word without consuming it.
    fn word(&mut self) -> Option<&str> {
        self.peek();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|word| !word.is_empty())
    }

    fn skip(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    /// Skips the next operator: a word such as `of`, `**`, or one character.
    fn skip_operator(&mut self) {
        match self.word().map(str::len) {
            Some(length) => self.at += length,
            None if self.rest().starts_with("**") => self.at += 2,
            None => self.skip(),
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Returns whether the next `%` is between two operands, so that it means the remainder.
    fn operand_follows_percent(&self) -> bool {
        let after = self.rest()[1..].trim_start();
        let word = &after[..after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len())];
        match after.chars().next() {
            Some(c) if c.is_ascii_digit() || matches!(c, '.' | '(') => true,
            Some(_) => constant(&word.to_lowercase()).is_some() || is_function(&word.to_lowercase()),
            None => false,
        }
    }

    fn unexpected(&mut self, wanted: &str) -> ToolError {
        let found = match self.peek() {
            Some(_) => format!("found '{}'", crate::arguments::clip(self.rest(), 20)),
            None => "it ends".to_owned(),
        };
        let read = &self.text[..self.at];
        let place =
            if read.is_empty() { "at its start".to_owned() } else { format!("after '{}'", read.trim_end()) };
        ToolError::InvalidArgs(format!(
            "The expression cannot be read {place}: expected {wanted}, {found}. Use numbers, + - * / ^ % ( ) and \
             sqrt, abs, min, max, round."
        ))
    }
}

/// Returns the length in bytes of the number at the start of `text`: digits, a point, an exponent, and
/// separators before exactly three digits.
fn number_length(text: &str, thousands: bool) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = 0;
    let mut point = false;
    while let Some(byte) = bytes.get(at) {
        let separates = match byte {
            b'0'..=b'9' => true,
            b'.' => !std::mem::replace(&mut point, true),
            b',' => thousands && !point && at > 0 && (1..=3).all(|n| digit(at + n)) && !digit(at + 4),
            b'_' => at > 0 && digit(at - 1) && digit(at + 1),
            _ => false,
        };
        if !separates {
            break;
        }
        at += 1;
    }
    let signed = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
    if matches!(bytes.get(at), Some(b'e' | b'E')) && digit(at + 1 + signed) {
        at += 1 + signed;
        while digit(at) {
            at += 1;
        }
    }
    at
}

fn constant(name: &str) -> Option<Number> {
    match name {
        "pi" | "π" => Number::parse("3.14159265358979323846264338327950288"),
        "e" => Number::parse("2.71828182845904523536028747135266250"),
        _ => None,
    }
}

fn is_function(name: &str) -> bool {
    matches!(name, "sqrt" | "abs" | "min" | "max" | "round" | "floor" | "ceil" | "exp" | "ln" | "log")
}

fn apply(name: &str, arguments: &[Number]) -> Result<Number, ToolError> {
    let by_size = |a: &&Number, b: &&Number| a.to_f64().total_cmp(&b.to_f64());
    match (name, arguments) {
        ("sqrt", [n]) => n.map(f64::sqrt),
        ("abs", [n]) => Ok(n.magnitude()),
        ("round", [n]) => n.rounded(0),
        ("round", [n, digits]) => n.rounded(digits.to_f64().clamp(0.0, 30.0) as u32),
        ("floor", [n]) => n.floor(),
        ("ceil", [n]) => Ok(n.negated().floor()?.negated()),
        ("exp", [n]) => n.map(f64::exp),
        ("ln", [n]) => n.map(f64::ln),
        ("log", [n]) => n.map(f64::log10),
        ("log", [n, base]) => n.map(|n| n.log(base.to_f64())),
        ("min", many) => Ok(*many.iter().min_by(by_size).unwrap_or(&Number::whole(0))),
        ("max", many) => Ok(*many.iter().max_by(by_size).unwrap_or(&Number::whole(0))),
        _ => Err(ToolError::InvalidArgs(format!(
            "'{name}' does not take {} arguments. Give it one; 'round' and 'log' may have two, 'min' and 'max' any \
             number.",
            arguments.len()
        ))),
    }
}
