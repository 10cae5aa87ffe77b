//! Redacts the events of a model while the model answers.

use archon_types::{ModelEvent, RedactedStream, Redactor};

/// Passes on a model's events without secrets, including secrets that are split over several events.
pub(crate) struct RedactedEvents {
    redactor: Redactor,
    text: RedactedStream,
    thinking: RedactedStream,
    /// The arguments of calls that are not complete yet.
    calls: Vec<(u32, RedactedStream)>,
}

impl RedactedEvents {
    pub(crate) fn new(redactor: &Redactor) -> Self {
        let (text, thinking) = (redactor.stream(), redactor.stream());
        Self { redactor: redactor.clone(), text, thinking, calls: Vec::new() }
    }

    /// Takes the next event of the model and passes on events without secrets. Text that may be the start of
    /// a secret is held back until later events show the rest.
    pub(crate) fn push(&mut self, event: ModelEvent, mut on_event: impl FnMut(ModelEvent)) {
        let mut say = |event: Option<ModelEvent>| event.into_iter().for_each(&mut on_event);
        // Text that was held back is emitted before an event of another kind, to keep the order.
        if !matches!(event, ModelEvent::TextDelta(_)) {
            say(delta_of(self.text.end(), ModelEvent::TextDelta));
        }
        if !matches!(event, ModelEvent::ThinkingDelta(_)) {
            say(delta_of(self.thinking.end(), ModelEvent::ThinkingDelta));
        }
        match event {
            ModelEvent::TextDelta(text) => say(delta_of(self.text.push(text), ModelEvent::TextDelta)),
            ModelEvent::ThinkingDelta(text) => {
                say(delta_of(self.thinking.push(text), ModelEvent::ThinkingDelta))
            }
            ModelEvent::ToolCallStart { index, id, name } => {
                self.calls.push((index, self.redactor.stream()));
                let (id, name) = (self.redactor.clean(id), self.redactor.clean(name));
                say(Some(ModelEvent::ToolCallStart { index, id, name }));
            }
            ModelEvent::ToolCallDelta { index, arguments } => {
                let shown = match self.calls.iter_mut().rev().find(|(of, _)| *of == index) {
                    Some((_, open)) => open.push(arguments),
                    None => self.redactor.clean(arguments),
                };
                say(delta_of(shown, |arguments| ModelEvent::ToolCallDelta { index, arguments }));
            }
            ModelEvent::ToolCallEnd { index } => {
                self.end_calls(|of| of == index, &mut say);
                say(Some(ModelEvent::ToolCallEnd { index }));
            }
            ModelEvent::Done(_) => self.end_calls(|_| true, say),
            other => say(Some(other)),
        }
    }

    fn end_calls(&mut self, which: impl Fn(u32) -> bool, mut say: impl FnMut(Option<ModelEvent>)) {
        self.calls.retain_mut(|(index, open)| {
            let (index, ends) = (*index, which(*index));
            if ends {
                say(delta_of(open.end(), |arguments| ModelEvent::ToolCallDelta { index, arguments }));
            }
            !ends
        });
    }
}

fn delta_of(text: String, event: impl FnOnce(String) -> ModelEvent) -> Option<ModelEvent> {
    (!text.is_empty()).then(|| event(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(events: impl IntoIterator<Item = ModelEvent>) -> Vec<ModelEvent> {
        let redactor = Redactor::default();
        redactor.add(&"sk-live-0123456789".into());
        let mut redacted = RedactedEvents::new(&redactor);
        let mut shown = Vec::new();
        for event in events {
            redacted.push(event, |event| shown.push(event));
        }
        redacted.push(ModelEvent::Done(Box::default()), |event| shown.push(event));
        shown
    }

    fn text(text: &str) -> ModelEvent {
        ModelEvent::TextDelta(text.to_owned())
    }

    fn thinking(text: &str) -> ModelEvent {
        ModelEvent::ThinkingDelta(text.to_owned())
    }

    fn start(index: u32, id: &str) -> ModelEvent {
        ModelEvent::ToolCallStart { index, id: id.to_owned(), name: "f".to_owned() }
    }

    fn arguments(index: u32, text: &str) -> ModelEvent {
        ModelEvent::ToolCallDelta { index, arguments: text.to_owned() }
    }

    fn end(index: u32) -> ModelEvent {
        ModelEvent::ToolCallEnd { index }
    }

    // spec: CR-05
    #[test]
    fn push_hides_a_secret_that_is_split_over_events_in_text_thinking_and_arguments() {
        assert_eq!(
            redact([
                thinking("is it sk-live"),
                thinking("-0123456789?"),
                text("It is sk-l"),
                text("ive-01234567"),
                text("89."),
                start(0, "a"),
                start(1, "sk-live-0123456789"),
                arguments(0, "{\"key\":\"sk-live-"),
                arguments(1, "{\"hex\":\"736b2d6c697665"),
                arguments(0, "0123456789\"}"),
                end(0),
                arguments(1, "2d30313233343536373839\"}"),
            ]),
            [
                thinking("is it "),
                thinking("****?"),
                text("It is "),
                text("****."),
                start(0, "a"),
                start(1, "****"),
                arguments(0, "{\"key\":\""),
                arguments(1, "{\"hex\":\""),
                arguments(0, "****\"}"),
                end(0),
                arguments(1, "****\"}"),
            ]
        );
    }

    // spec: CR-05
    #[test]
    fn push_flushes_held_back_text_before_another_kind_of_delta() {
        let events = [
            text("All files"),
            thinking("hm, s"),
            start(0, "a"),
            arguments(0, "{\"a\":\"s"),
            end(0),
            text("this"),
        ];
        assert_eq!(
            redact(events),
            [
                text("All file"),
                text("s"),
                thinking("hm, "),
                thinking("s"),
                start(0, "a"),
                arguments(0, "{\"a\":\""),
                arguments(0, "s"),
                end(0),
                text("thi"),
                text("s"),
            ]
        );
    }
}
