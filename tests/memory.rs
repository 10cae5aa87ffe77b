//! Memories of agents. What holds in every store is tested in the program `other_programs`.

pub(crate) mod collections;
pub(crate) mod lessons;
pub(crate) mod recalled;
pub(crate) mod speakers;
