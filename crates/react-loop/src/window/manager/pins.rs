//! Pinned results: the window keeps them as they are, with the calls that they answer. All of them together have at
//! most a share of the window, because a window full of pinned results has no room for work.

use archon_types::{Json, Message, Trust, metadata};

use super::ContextManager;
use crate::{
    CallState,
    window::entries::{Entry, is_result},
};

/// The maximum share of the window for all pinned results together, with their calls.
const PINNED_SHARE: f64 = 0.25;

impl ContextManager {
    /// Returns the names of the pinned tool results, which a compaction keeps unchanged, oldest first.
    pub fn pinned(&self) -> impl Iterator<Item = &str> {
        self.state.entries.iter().filter_map(|entry| entry.pinned.as_deref())
    }

    /// Returns the names of the results that are not pinned, or no longer pinned, because there is no room. The next
    /// request clears this list.
    pub(crate) fn unpinned(&self) -> &[String] {
        &self.state.unpinned
    }

    /// Returns the trust level of a call's result.
    pub(super) fn trust_of(&self, call: &CallState) -> Trust {
        let marked = self.mark_of(call, metadata::TRUST);
        marked.and_then(|trust| Trust::of_name(trust.as_str()?)).unwrap_or_default()
    }

    /// Returns the name under which the message with a call's result is to be pinned, and the tokens of the message.
    /// `None` if the message is not to be pinned or is too large.
    pub(super) fn pin_of(&mut self, call: &CallState, message: &Message) -> Option<(String, u64)> {
        let name = self.mark_of(call, metadata::PINNED)?.as_str()?.to_owned();
        let tokens = self.count(message);
        if tokens <= self.room() {
            return Some((name, tokens));
        }
        self.state.unpinned.push(name);
        None
    }

    /// Returns an entry of the metadata of a call's result. `None` if the call failed, or if its tool may not set
    /// such entries.
    fn mark_of<'c>(&self, call: &'c CallState, key: &str) -> Option<&'c Json> {
        let (result, _) = call.result().filter(|(result, _)| !result.is_error())?;
        result.metadata.get(key).filter(|_| self.state.instructing.contains(&call.call.name))
    }

    /// Pins the results that have a name, and the answers of the model with their calls. Of two results with the
    /// same name, only the later one stays pinned. If all of them together are too large, the oldest ones lose their
    /// pins.
    pub(super) fn update_pins(&mut self) {
        let room = self.room();
        let entries = &mut self.state.entries;
        let named: Vec<usize> = (0..entries.len()).filter(|at| entries[*at].pinned.is_some()).collect();
        let is_prompt =
            |at: &usize| matches!(&*entries[*at].message, Message::User(_)) && !named.contains(at);
        self.state.pins.retain(is_prompt);
        let (mut used, mut is_full, mut kept) = (0_u64, false, Vec::new());
        for at in named.into_iter().rev() {
            let call = call_of(entries, at);
            let newest = kept.iter().all(|later: &usize| entries[*later].pinned != entries[at].pinned);
            let is_counted = call.is_some_and(|call| kept.contains(&call));
            let of_call = call.filter(|_| !is_counted).map_or(0, |call| entries[call].tokens);
            let with_it = used.saturating_add(entries[at].tokens).saturating_add(of_call);
            is_full |= newest && with_it > room;
            if newest && !is_full {
                used = with_it;
                kept.push(at);
                kept.extend(call.filter(|_| !is_counted));
            } else if let Some(name) = entries[at].pinned.take().filter(|_| newest) {
                self.state.unpinned.push(name);
            }
        }
        self.state.pins.extend(kept);
        self.state.pins.sort_unstable();
    }

    /// Returns the maximum number of estimated tokens of all pinned results.
    fn room(&self) -> u64 {
        let window = self.state.config.as_ref().map(|config| config.max_context_tokens as f64);
        window.map_or(u64::MAX, |tokens| self.state.tracker.uncorrected((tokens * PINNED_SHARE) as u64))
    }
}

/// Returns the index of the model's answer with the call whose result is the entry at `result`.
fn call_of(entries: &[Entry], result: usize) -> Option<usize> {
    let at = entries[..result].iter().rposition(|entry| !is_result(&entry.message))?;
    matches!(&*entries[at].message, Message::Assistant(_)).then_some(at)
}
