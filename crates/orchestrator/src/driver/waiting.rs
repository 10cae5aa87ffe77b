//! Members that wait for other members: drops their runs during the wait.

use std::collections::BTreeMap;

use archon_run::Recorded;
use archon_types::{BoxFuture, CallId, CommandId, RecordBody, TeamRecord};

use super::{Run, Working, team};
use crate::TeamMachine;

/// A member's run that waits for other members or for shared entries.
#[derive(Default)]
struct Blocked {
    /// The run's requests to other members.
    requests: Vec<CommandId>,
    /// Number of shared entries for which the run waits.
    entries: usize,
    /// Number of the run's calls that are under way.
    under_way: usize,
}

impl Blocked {
    /// Returns true if dropping the run interrupts no work: all calls under way wait for the team.
    fn may_stop(&self) -> bool {
        self.under_way <= self.requests.len() + self.entries
    }
}

impl Working<'_> {
    /// Drops the runs that cannot continue before a person answers, so that the team can be suspended.
    pub(super) fn stop_waiting(&mut self, machine: &TeamMachine) {
        self.asks.iter_mut().for_each(|ask| ask.seen = ask.under_way());
        let blocked = self.blocked();
        let may_all_stop = blocked.values().all(Blocked::may_stop) && machine.waits_for_people(blocked.len());
        for (call, one) in blocked {
            let is_for_requests = one.entries == 0;
            let is_held = is_for_requests && one.requests.iter().all(|it| machine.waits_for_person(*it));
            let is_meant = may_all_stop || (one.may_stop() && is_held);
            if let Some(hand) = self.hands.get_mut(&call).filter(|_| is_meant) {
                hand.abort.abort();
                hand.waits_for = if is_for_requests { one.requests } else { Vec::new() };
            }
        }
    }

    /// Returns the working members that wait for others of the team.
    fn blocked(&self) -> BTreeMap<CallId, Blocked> {
        let mut blocked = BTreeMap::<_, Blocked>::new();
        // A closed reply belongs to a member that no longer waits.
        for ask in self.asks.iter().filter(|ask| !ask.reply.is_closed()) {
            let one = blocked.entry(ask.by).or_default();
            one.requests.push(ask.command);
            one.under_way = one.under_way.max(ask.under_way());
        }
        for (call, ..) in self.waits.iter().filter(|(.., reply)| !reply.is_closed()) {
            blocked.entry(*call).or_default().entries += 1;
        }
        blocked
    }

    /// Records that a member's run was dropped while it waits. The requests of the run continue.
    pub(super) async fn note_waiting(&mut self, run: &mut Run, call: CallId) -> Recorded {
        let requests = self.hands.get(&call).map(|hand| hand.waits_for.clone()).unwrap_or_default();
        self.forget(call);
        if run.machine.open_hand(call).is_none() {
            return Ok(());
        }
        let settled = self.settled_so_far(&run.machine, call).await;
        let waits = team(TeamRecord::MemberWaiting { call, requests });
        run.record(settled.into_iter().chain([waits]).collect()).await?;
        self.announce_status(&run.machine, call, "waiting");
        Ok(())
    }

    /// Returns the record of the spending of a suspended or dropped run, which may never be resumed.
    pub(super) fn settled_so_far(
        &self,
        machine: &TeamMachine,
        call: CallId,
    ) -> BoxFuture<'static, Option<RecordBody>> {
        let agent = machine.hand(call).and_then(|hand| self.parts.agents.get(&hand.member)).cloned();
        let child = self.context.run.of_call(call);
        let journal = self.context.journal(&self.parts.journal).clone();
        Box::pin(async move {
            let spent = agent?.spending_of(&child, &*journal).await?;
            Some(RecordBody::LeaseSettled { call, child_run: child, spent })
        })
    }

    /// Drops all state of a member's run that has ended or was dropped.
    pub(super) fn forget(&mut self, call: CallId) {
        self.hands.remove(&call);
        self.drop_requests(call);
        self.parts.desk.clear(&self.context.run.of_call(call));
    }

    pub(super) fn drop_requests(&mut self, of: CallId) {
        self.asks.retain(|ask| ask.by != of);
        self.waits.retain(|(by, ..)| *by != of);
    }
}
