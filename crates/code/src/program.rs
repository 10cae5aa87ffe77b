//! Runs one program on a thread of its own. A future makes the tool calls of the program; dropping the future
//! stops the program.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use archon_types::{Context, ToolContext, ToolError};
use futures_util::future::{Either, select};
use tokio::sync::mpsc;

use crate::{
    CodeOptions, Language,
    functions::Functions,
    host::{Host, HostMessage},
    meter::{Meter, Stop},
    outcome::{Failed, Outcome, Value},
};

/// A program to run.
pub(crate) struct Program {
    pub(crate) language: Language,
    pub(crate) code: String,
    pub(crate) time: Duration,
    pub(crate) options: CodeOptions,
}

impl Program {
    /// Runs the program to its end. Dropping the future stops the program: at its next step, or at once if it
    /// waits for a tool.
    pub(crate) async fn run(
        self,
        functions: Option<&Functions>,
        context: &ToolContext,
        below: &Context,
    ) -> Result<Outcome, ToolError> {
        let (sender, mut messages) = mpsc::unbounded_channel();
        let stop = Stop::default();
        let _stops = StopOnDrop(stop.clone());
        self.start(functions, sender, stop)?;
        let talk = async {
            while let Some(message) = messages.recv().await {
                match message {
                    HostMessage::Ended(outcome) => return Ok(outcome),
                    HostMessage::Call { function, arguments, answer } => {
                        let Some(functions) = functions else { continue };
                        // The receiver is gone if the program was stopped meanwhile.
                        _ = answer.send(functions.call(function, arguments, below).await);
                    }
                }
            }
            Err(ToolError::Failed("the program ended without a result or an error".to_owned()))
        };
        match select(pin!(context.cancel.cancelled()), pin!(talk)).await {
            Either::Left(_) => Err(ToolError::Cancelled),
            Either::Right((outcome, _)) => outcome,
        }
    }

    fn start(
        self,
        functions: Option<&Functions>,
        sender: mpsc::UnboundedSender<HostMessage>,
        stop: Stop,
    ) -> Result<(), ToolError> {
        let stack = self.options.stack();
        let functions = functions.map_or_else(|| Arc::from([]), |functions| functions.list.clone());
        let work = move || {
            let meter = Rc::new(Meter::new(stop, self.time, self.options.memory));
            let host = Rc::new(Host::new(meter.clone(), functions, sender.clone(), &self.options));
            let end = catch_unwind(AssertUnwindSafe(|| self.interpret(&host)));
            let end = end.unwrap_or_else(|panic| Err(Failed::Broken(words(&*panic))));
            let outcome = Outcome {
                // If the meter stopped the program, that is its outcome, whatever error the interpreter gave.
                end: meter.stopped().map_or(end, |stopped| Err(Failed::Stopped(stopped))),
                output: host.take_output(),
                calls: host.call_count(),
                processor_time: meter.processor_time(),
            };
            // The receiver is gone if the call was dropped.
            _ = sender.send(HostMessage::Ended(outcome));
        };
        let thread = std::thread::Builder::new().name("archon-code".to_owned());
        thread
            .stack_size(stack)
            .spawn(work)
            .map(drop)
            .map_err(|e| ToolError::Resource(format!("the thread of the program cannot be started: {e}")))
    }

    fn interpret(&self, host: &Rc<Host>) -> Result<Option<Value>, Failed> {
        match self.language {
            #[cfg(feature = "python")]
            Language::Python => crate::python::run(&self.code, &self.options, host),
            #[cfg(feature = "javascript")]
            Language::JavaScript => crate::javascript::run(&self.code, &self.options, host),
        }
    }
}

/// Stops the program when this value is dropped, because then its call is over.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.send();
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
