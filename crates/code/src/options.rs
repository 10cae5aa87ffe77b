//! What a program may use up.

use std::time::Duration;

/// What a program may use up. Everything has a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeOptions {
    /// Processor time of a program that names none of its own; waiting for tools is free. Systems without a clock for
    /// each thread count the time that passes instead. Default 5 s.
    pub time: Duration,
    /// No program asks for more. Default 60 s.
    pub max_time: Duration,
    /// What its values take, in bytes. Default 64 MiB. The interpreter itself takes a few more.
    pub memory: usize,
    /// Calls inside of calls: of functions in Python, and about as many small ones in JavaScript. Default 1,000. Each is a
    /// piece of a thread's stack that is set aside, so large numbers cost.
    pub recursion: usize,
    /// Bytes of what it writes that are kept, and of its value. Default 64 KiB.
    pub output: usize,
    /// Bytes of its code. Default 256 KiB.
    pub code: usize,
    /// Calls of tools. Default 100.
    pub calls: usize,
    /// Bytes of one call's arguments, as JSON. Default 1 MB.
    pub arguments: usize,
    /// Time limit of the whole call where there are tools to wait for. Default 300 s.
    pub with_tools: Duration,
}

impl Default for CodeOptions {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            max_time: Duration::from_secs(60),
            memory: 64 << 20,
            recursion: 1_000,
            output: 64 << 10,
            code: 256 << 10,
            calls: 100,
            arguments: 1_000_000,
            with_tools: Duration::from_secs(300),
        }
    }
}

impl CodeOptions {
    /// The stack that a program's thread gets: some for the parser, and room for each call inside of a call. It is
    /// set aside, and used only as far as the program goes.
    pub(crate) fn stack(&self) -> usize {
        self.recursion.saturating_mul(STACK_PER_CALL).saturating_add(STACK_TO_BEGIN)
    }
}

/// More than a call takes in either interpreter, also where neither is optimised.
const STACK_PER_CALL: usize = 128 << 10;
const STACK_TO_BEGIN: usize = 32 << 20;
