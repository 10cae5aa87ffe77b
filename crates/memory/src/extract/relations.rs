//! The relations of extracted facts. The set is closed, so that two wordings of a relation are one relation, and the
//! facts of both end each other.

use crate::{
    Fact,
    fact::{Objects, normal},
};

use Objects::{Many, One};

/// Each relation: its name, the number of objects that it has at a time, and other wordings.
const RELATIONS: &[(&str, Objects, &[&str])] = &[
    ("is called", One, &["has name", "has the name", "is named", "name is"]),
    (
        "lives in",
        One,
        &["resides in", "moved to", "relocated to", "has home in", "has moved to", "is based in", "lives at"],
    ),
    ("comes from", One, &["is from", "grew up in", "was born in"]),
    ("works for", One, &["works at", "is employed by", "is employed at", "joined", "has employer"]),
    ("works as", One, &["has job", "has profession", "has occupation", "has role"]),
    ("studies", One, &["is studying", "majors in"]),
    ("studies at", One, &["attends", "is enrolled at"]),
    ("was born on", One, &["has birthday", "has birthday on", "has date of birth"]),
    ("has email", One, &["email is", "has email address"]),
    ("has phone", One, &["has phone number", "phone is"]),
    ("has partner", One, &["is married to", "has spouse", "has wife", "has husband", "is engaged to"]),
    ("has child", Many, &["has daughter", "has son", "is parent of"]),
    ("has relative", Many, &["has brother", "has sister", "has mother", "has father"]),
    ("has friend", Many, &["is friends with", "knows"]),
    ("has pet", Many, &["has dog", "has cat"]),
    ("likes", Many, &["loves", "enjoys", "is fond of", "has hobby"]),
    ("dislikes", Many, &["hates", "does not like", "avoids"]),
    ("prefers", Many, &["has preference", "favors"]),
    ("is allergic to", Many, &["has allergy", "cannot eat", "is intolerant to"]),
    ("uses", Many, &["works with", "drives"]),
    ("owns", Many, &["possesses", "bought"]),
    ("speaks", Many, &["speaks language"]),
    ("plans", Many, &["plans to", "intends to", "wants to"]),
    ("is", Many, &["has diet", "has condition"]),
];

/// Returns the names of the relations.
pub(super) fn names() -> Vec<&'static str> {
    RELATIONS.iter().map(|(name, ..)| *name).collect()
}

/// Returns a fact with the relation of the set that its wording means; `None` if the set has no such relation.
pub(super) fn in_set(mut fact: Fact) -> Option<Fact> {
    let wording = normal(&fact.relation);
    let means = |(name, _, others): &&(&str, Objects, &[&str])| {
        *name == wording || others.contains(&wording.as_str())
    };
    let (name, objects, _) = RELATIONS.iter().find(means)?;
    fact.relation = (*name).to_owned();
    fact.objects = *objects;
    Some(fact)
}
