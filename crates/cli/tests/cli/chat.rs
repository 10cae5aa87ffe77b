//! The conversation as a person has it: the real program in a pseudo terminal, whose screen is read.

mod basics;
mod composer;
mod consent;
mod interrupts;
mod kill;
mod plain;
mod random_kills;
mod window;
