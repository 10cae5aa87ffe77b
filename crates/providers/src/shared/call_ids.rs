//! Converts tool-call ids for services: they accept `[A-Za-z0-9_-]{1,64}`, and a conversation may contain
//! ids of another service, which may be anything.

use std::borrow::Cow;

use archon_types::ContentHash;

const LONGEST: usize = 64;

/// Returns an id that services accept. An id that they refuse is replaced; equal ids stay equal, and
/// different ids stay different.
pub(crate) fn to_wire(id: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.len() <= LONGEST && id.chars().all(allowed) {
        return Cow::Borrowed(id);
    }
    let clean: String = id.chars().take(LONGEST - 17).map(|c| if allowed(c) { c } else { '_' }).collect();
    Cow::Owned(format!("{clean}_{:016x}", ContentHash::of(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: T-33
    #[test]
    fn call_ids_are_valid_on_the_wire_and_unique() {
        let long = "x".repeat(65);
        let longer = "x".repeat(66);
        let ids = ["call_1", "a-b_c", "a.b:c", "a b", "a/b", "", "ü", &long, &longer, "a_b"];
        let wire: Vec<_> = ids.iter().map(|id| to_wire(id).into_owned()).collect();
        for (place, id) in wire.iter().enumerate() {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            assert!((1..=64).contains(&id.len()) && id.chars().all(allowed), "{id}");
            assert!(!wire[..place].contains(id), "{id} twice");
        }
        assert_eq!(wire[..2], ["call_1", "a-b_c"]);
        assert_eq!(to_wire("a b"), to_wire("a b"));
    }
}
