//! The program as a person and a script meet it: a real process, a real server on this machine, exit
//! codes, and what stands on which stream.

mod exits;
mod runs;
mod setup;
