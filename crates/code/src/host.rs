//! The interface between a program and the outside: its output, and its calls of tools.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use archon_types::Json;
use tokio::sync::{mpsc, oneshot};

use crate::{
    functions::{Failure, Function},
    meter::Meter,
    outcome::Outcome,
    output::Output,
};

/// A message from the program's thread to the task that waits for the program.
#[derive(Debug)]
pub(crate) enum HostMessage {
    /// The program called a function.
    Call {
        function: usize,
        arguments: Json,
        answer: oneshot::Sender<Result<Json, Failure>>,
    },
    Ended(Outcome),
}

/// The program thread's access to everything outside of the program: limits, functions and output.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) meter: Rc<Meter>,
    pub(crate) functions: Arc<[Function]>,
    messages: mpsc::UnboundedSender<HostMessage>,
    output: RefCell<Output>,
    calls: Cell<usize>,
    max_calls: usize,
    /// Maximum size of one call's arguments, in bytes of JSON.
    max_arguments: usize,
}

/// An error of [`Host::call`].
#[derive(Debug)]
pub(crate) enum Refused {
    /// An error that the program can catch.
    Failed(Failure),
    /// The program was stopped.
    Stopped,
}

impl Host {
    pub(crate) fn new(
        meter: Rc<Meter>,
        functions: Arc<[Function]>,
        messages: mpsc::UnboundedSender<HostMessage>,
        options: &crate::CodeOptions,
    ) -> Self {
        Self {
            meter,
            functions,
            messages,
            output: RefCell::new(Output::new(options.output)),
            calls: Cell::new(0),
            max_calls: options.calls,
            max_arguments: options.arguments,
        }
    }

    pub(crate) fn write(&self, text: &str) {
        self.output.borrow_mut().write(text);
    }

    /// Calls a function and blocks the program's thread until the result is there.
    pub(crate) fn call(&self, function: usize, arguments: Json) -> Result<Json, Refused> {
        self.meter.check_limits().map_err(|_| Refused::Stopped)?;
        if self.calls.get() >= self.max_calls {
            return Err(Refused::Failed(Failure::new(
                "resource_error",
                format!("a program may make {} calls at most; use fewer calls", self.max_calls),
            )));
        }
        self.calls.set(self.calls.get() + 1);
        let (answer, answered) = oneshot::channel();
        // The receiver is gone once the tool call is over.
        self.messages
            .send(HostMessage::Call { function, arguments, answer })
            .map_err(|_| Refused::Stopped)?;
        answered.blocking_recv().map_err(|_| Refused::Stopped)?.map_err(Refused::Failed)
    }

    /// Fails with an error text for the program if the arguments of a call are too large as JSON.
    pub(crate) fn check_size(&self, function: &str, arguments: &str) -> Result<(), String> {
        let (bytes, most) = (arguments.len(), self.max_arguments);
        match bytes > most {
            true => {
                Err(format!("{function}() was given {bytes} bytes of arguments, and may be given {most}"))
            }
            false => Ok(()),
        }
    }

    pub(crate) fn call_count(&self) -> usize {
        self.calls.get()
    }

    pub(crate) fn take_output(&self) -> (String, usize) {
        self.output.replace(Output::new(0)).into_text()
    }
}
