//! The conversation as a person has it: the real program in a pseudo terminal, whose screen is read.

mod basics;
mod captures;
mod commands;
mod composer;
mod consent;
mod figures;
mod interrupts;
mod jobs;
mod kill;
mod plain;
mod random_kills;
mod resize;
mod rows;
mod tmux;
mod window;
