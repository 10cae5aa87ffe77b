//! `/review`: a message that asks the agent for a review of the changes.

/// The message. It names no tool, because an agent may have others.
const REVIEW: &str = "\
Review the changes in this workspace since the last commit, new files included.

1. Read the whole difference first, then as much of the code around it as you need to judge it.
2. Look for faults in this order: wrong results, lost or damaged data, gaps in security, broken contracts with callers, \
missing tests, and only then clarity.
3. Check each fault before you report it: name the input or the state that shows it. Leave out what you cannot show, and \
matters of taste.
4. Report the faults in the order of their weight. Each has the file and the line, what goes wrong and when, and the \
smallest change that mends it.
5. End with one sentence: can this be merged as it is?

Change no file.";

/// Returns the message; `what` says what to look at above all.
pub(super) fn message(what: &str) -> String {
    match what.is_empty() {
        true => REVIEW.to_owned(),
        false => format!("{REVIEW}\n\nLook at this above all: {what}"),
    }
}
