//! Questions to people: asked, answered, kept, expired.

pub(crate) mod asked_at_once;
pub(crate) mod below;
pub(crate) mod bound;
pub(crate) mod kept;
pub(crate) mod one_request;
pub(crate) mod sweeping;
