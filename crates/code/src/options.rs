//! Limits of a program.

use std::time::Duration;

/// Limits of a program, one for each resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeOptions {
    /// Maximum processor time of a program whose call sets no `timeout_ms`; waiting for tools does not
    /// count. Systems without a clock for each thread count wall time instead. Default 5 s.
    pub time: Duration,
    /// The maximum `timeout_ms` that a call can set. Default 60 s.
    pub max_time: Duration,
    /// Maximum memory of the program's values, in bytes. Default 64 MiB. The interpreter itself needs
    /// memory in addition.
    pub memory: usize,
    /// Maximum depth of nested function calls in Python. JavaScript programs get a stack for about as many
    /// nested calls of small functions. Default 1,000. Each level reserves a piece of the thread's stack, so
    /// large numbers cost address space.
    pub recursion: usize,
    /// Maximum number of bytes that are kept of the printed output, and the same again for the value of the
    /// last expression. Default 64 KiB.
    pub output: usize,
    /// Maximum size of the program's code, in bytes. Default 256 KiB.
    pub code: usize,
    /// Maximum number of tool calls of a program. Default 100.
    pub calls: usize,
    /// Maximum size of one call's arguments, in bytes of JSON. Default 1 MB.
    pub arguments: usize,
    /// Time limit of the whole call if the program can call tools, with all waiting. If it is less than four times
    /// `max_time` plus 5 s, that sum is used. Default 300 s.
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
    /// Returns the stack size of a program's thread in bytes: room for the parser and for each nested call.
    /// The stack is reserved address space; only the used part takes memory.
    pub(crate) fn stack(&self) -> usize {
        self.recursion.saturating_mul(STACK_PER_CALL).saturating_add(STACK_TO_BEGIN)
    }
}

/// Number of bytes of stack for each nested call: more than one call takes in either interpreter, also in
/// unoptimised builds.
const STACK_PER_CALL: usize = 128 << 10;
const STACK_TO_BEGIN: usize = 32 << 20;
