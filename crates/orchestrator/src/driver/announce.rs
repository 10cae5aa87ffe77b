//! Publishes requests, results and status on the bus of a team, and records heartbeats.

use archon_run::Recorded;
use archon_types::{BusMessage, CallId, Json, MessageType, RecordBody, TeamRecord};

use super::{AtWork, Run, Working, team};
use crate::TeamMachine;

impl Working<'_> {
    pub(super) fn announce(&self, machine: &TeamMachine, record: &TeamRecord) {
        let run = &self.context.run;
        match record {
            TeamRecord::Delegated { call, member, chain, task } if self.parts.bus.is_some() => {
                let content = machine.request(*call, chain, task, self.context.clock.now());
                self.publish(self.name(), member.as_str(), MessageType::TaskRequest, content);
            }
            TeamRecord::DelegationFailed { reason, .. } => {
                tracing::warn!(%run, reason, "work cannot be delegated")
            }
            TeamRecord::DelegationRevoked { call, member, reason } => {
                tracing::warn!(%run, %member, reason, "work was taken back");
                let content = serde_json::json!({ "task_id": run.of_call(*call), "reason": reason });
                self.publish(self.name(), member.as_str(), MessageType::Notification, content);
            }
            TeamRecord::ConflictFound { key, .. } => {
                tracing::warn!(%run, key, "answers contradict each other")
            }
            TeamRecord::ConflictResolved { resolution: how, .. } => {
                tracing::info!(%run, how, "a contradiction was settled")
            }
            _ => {}
        }
    }

    pub(super) fn name(&self) -> &str {
        self.parts.options.agent_id.as_str()
    }

    /// Publishes the status of a delegation, with the member as the sender.
    pub(super) fn announce_status(&self, machine: &TeamMachine, call: CallId, status: &str) {
        let Some(hand) = machine.hand(call).filter(|_| self.parts.bus.is_some()) else { return };
        let task_id = self.context.run.of_call(call);
        let content =
            serde_json::json!({ "task_id": task_id, "status": status, "heard": hand.heard.to_string() });
        self.publish(hand.member.as_str(), self.name(), MessageType::StatusUpdate, content);
    }

    /// Sends a message on the bus, if the team has one.
    pub(super) fn publish(&self, from: &str, to: &str, message_type: MessageType, content: Json) {
        let content = content.as_object().cloned().unwrap_or_default();
        // The answer to a delegation has the id of the request.
        let pairs =
            matches!(message_type, MessageType::TaskRequest | MessageType::TaskResponse | MessageType::Error);
        let task = content.get("task_id").filter(|_| pairs).and_then(Json::as_str).map(str::to_owned);
        let mut message = BusMessage::new(from, to, message_type, content, self.context.clock.now());
        message.correlation_id = task;
        self.outbox.send(message.of_run(self.context.run.clone()));
    }

    /// Records the new heartbeats, and then the records of `rest`.
    pub(super) async fn note_beats(&mut self, run: &mut Run, rest: Vec<RecordBody>) -> Recorded {
        let heard = |(call, hand): (&CallId, &AtWork)| {
            let known = run.machine.open_hand(*call)?;
            let heard = hand.heartbeat.last_seen();
            (heard > known.heard).then_some(TeamRecord::Heartbeat { call: *call, last_seen: heard })
        };
        let mut beats: Vec<TeamRecord> = self.hands.iter().filter_map(heard).collect();
        beats.sort_by_key(TeamRecord::beat_of);
        let heard: Vec<CallId> = beats.iter().filter_map(TeamRecord::beat_of).collect();
        run.record(beats.into_iter().map(team).chain(rest).collect()).await?;
        for call in heard {
            self.announce_status(&run.machine, call, "executing");
        }
        Ok(())
    }
}
