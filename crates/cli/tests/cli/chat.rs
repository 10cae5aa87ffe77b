//! The conversation as a person has it: the real program in a pseudo terminal, whose screen is read.

mod background;
mod basics;
mod commands;
mod composer;
mod consent;
mod interrupts;
mod kill;
mod modes;
mod plain;
mod random_kills;
mod steering;
mod taking_back;
mod window;
