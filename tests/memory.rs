//! Memories of agents, in every store.

pub(crate) mod at_once;
pub(crate) mod cut_off;
pub(crate) mod facts;
pub(crate) mod kill;
pub(crate) mod layers;
pub(crate) mod lessons;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod recalled;
pub(crate) mod speakers;
