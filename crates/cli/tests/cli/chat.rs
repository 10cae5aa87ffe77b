//! The conversation as a person has it: the real program in a pseudo terminal, whose screen is read.

mod background;
mod basics;
mod captures;
mod commands;
mod composer;
mod consent;
mod figures;
mod full;
mod interrupts;
mod jobs;
mod kill;
mod lost_model;
mod modes;
mod notices;
mod plain;
mod poor_terminals;
mod random_kills;
mod resize;
mod rows;
#[cfg(feature = "skills")]
mod skills;
mod steering;
mod taking_back;
#[cfg(feature = "setup")]
mod themes;
mod tmux;
mod watching;
mod window;
