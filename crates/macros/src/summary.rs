//! Reads the names of arguments in a `summary = "Refund {cents} cents"`.

/// Returns the names in braces, in order; `{{` and `}}` are literal braces.
///
/// # Errors
/// A brace is not paired, or there is no name between two braces.
pub(crate) fn names(template: &str) -> Result<Vec<&str>, &'static str> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (brace, behind) = rest[at..].split_at(1);
        rest = match (behind.strip_prefix(brace), brace) {
            (Some(behind), _) => behind,
            (None, "}") => return Err("a `}` has no `{` before it; write `}}` for the character itself"),
            (None, _) => {
                let end = behind
                    .find('}')
                    .ok_or("a `{` has no `}` after it; write `{{` for the character itself")?;
                names.push(behind[..end].trim());
                &behind[end + 1..]
            }
        };
    }
    match names.contains(&"") {
        true => Err("there is no name between `{` and `}`; write the name of an argument, such as `{order}`"),
        false => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_template_are_those_in_braces() {
        assert_eq!(names("Refund {cents} cents of {order}"), Ok(vec!["cents", "order"]));
        assert_eq!(names("{{literal}} { a }"), Ok(vec!["a"]));
        assert_eq!(names("nothing"), Ok(vec![]));
        assert!(names("{").is_err() && names("}").is_err() && names("{}").is_err() && names("{{}").is_err());
    }
}
