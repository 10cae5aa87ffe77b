//! Variables in the texts of settings: `${VAR}`, and `${VAR:-TEXT}` with a default.

#![cfg_attr(
    not(any(feature = "openapi", all(unix, feature = "mcp"))),
    allow(dead_code, reason = "without servers and APIs only the syntax is checked")
)]

/// A part of a text: plain text or a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    Variable { name: &'t str, default: Option<&'t str> },
}

/// Returns the text with the values of its variables. `value` returns the value of a variable; an empty
/// value counts as none.
///
/// # Errors
/// The name of the first variable without a value and without a default, or the problem with the text.
pub(crate) fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, Missing> {
    let mut whole = String::new();
    for piece in pieces(text).map_err(Missing::Problem)? {
        match piece {
            Piece::Text(text) => whole.push_str(text),
            Piece::Variable { name, default } => {
                let value = value(name).filter(|value| !value.is_empty());
                let value = value.or_else(|| default.map(str::to_owned));
                whole.push_str(&value.ok_or_else(|| Missing::Variable(name.to_owned()))?);
            }
        }
    }
    Ok(whole)
}

/// The reason why [`expand`] cannot replace the variables in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The variable with this name is not set.
    Variable(String),
    /// The syntax of the text is wrong.
    Problem(String),
}

pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).unwrap_or_default().into_iter().filter_map(|piece| match piece {
        Piece::Variable { name, .. } => Some(name),
        Piece::Text(_) => None,
    })
}

pub(crate) fn problem(text: &str) -> Option<String> {
    pieces(text).err()
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, behind) = after.split_once('}').ok_or("`${` has no `}`")?;
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_name(name) {
            return Err(format!("`${{{inner}}}` does not have the form `${{VAR}}` or `${{VAR:-TEXT}}`"));
        }
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Variable { name, default });
        rest = behind;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expand_fills_in_variables_and_names_the_one_that_is_missing() {
        let value = |name: &str| match name {
            "HOME" => Some("/home/a".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${HOME}".to_owned()),
            _ => None,
        };
        let missing = |name: &str| Err(Missing::Variable(name.to_owned()));
        for (text, expected) in [
            ("${HOME}/notes and ${HOME}", Ok("/home/a/notes and /home/a".to_owned())),
            ("${NONE:-x}${EMPTY:-}$HOME $", Ok("x$HOME $".to_owned())),
            // A value is not read again.
            ("${TRICK}", Ok("${HOME}".to_owned())),
            ("a ${NONE} ${OTHER}", missing("NONE")),
            ("${EMPTY}", missing("EMPTY")),
        ] {
            assert_eq!(expand(text, value), expected, "{text}");
        }
    }

    #[test]
    fn problem_of_a_text_is_a_variable_that_cannot_be_read() {
        for (text, expected) in [
            ("$a {b} ${A_1}", None),
            ("${A", Some("`${` has no `}`")),
            ("${}", Some("`${}` does not have the form `${VAR}` or `${VAR:-TEXT}`")),
            ("${a-b}", Some("`${a-b}` does not have the form `${VAR}` or `${VAR:-TEXT}`")),
            ("${1A}", Some("`${1A}` does not have the form `${VAR}` or `${VAR:-TEXT}`")),
        ] {
            assert_eq!(problem(text).as_deref(), expected, "{text}");
        }
        assert_eq!(names("${A}-${B:-c}").collect::<Vec<_>>(), ["A", "B"]);
    }
}
