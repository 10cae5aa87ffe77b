//! Limits of a program.

use std::time::Duration;

/// Limits of a program; every resource has one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeOptions {
    /// Processor time of a program whose call sets no `timeout_ms`; waiting for tools does not count. Systems
    /// without a clock for each thread count wall time instead. Default 5 s.
    pub time: Duration,
    /// The longest time that a call can ask for. Default 60 s.
    pub max_time: Duration,
    /// Memory for the program's values, in bytes. Default 64 MiB. The interpreter itself needs a few more.
    pub memory: usize,
    /// Depth of nested calls: of functions in Python, and about as many small ones in JavaScript. Default
    /// 1,000. Each level reserves a piece of the thread's stack, so large numbers cost address space.
    pub recursion: usize,
    /// Bytes of printed output that are kept, and of the value. Default 64 KiB.
    pub output: usize,
    /// Bytes of the program's code. Default 256 KiB.
    pub code: usize,
    /// Number of tool calls. Default 100.
    pub calls: usize,
    /// Bytes of one call's arguments, as JSON. Default 1 MB.
    pub arguments: usize,
    /// Time limit of the whole call if the program can call tools. Default 300 s.
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
    /// Returns the stack size of a program's thread: room for the parser and for each nested call. It is
    /// reserved address space; only what the program uses takes memory.
    pub(crate) fn stack(&self) -> usize {
        self.recursion.saturating_mul(STACK_PER_CALL).saturating_add(STACK_TO_BEGIN)
    }
}

/// More than one call takes in either interpreter, also in unoptimised builds.
const STACK_PER_CALL: usize = 128 << 10;
const STACK_TO_BEGIN: usize = 32 << 20;
