//! Serves the requests of working members through their [`TeamHandle`](crate::TeamHandle).

use archon_run::Recorded;
use archon_types::{CallId, CallsUnderWay, CommandId, MessageType, TeamRecord};
use tokio::sync::oneshot;

use super::{Run, Working, team};
use crate::{
    JobState, Purpose, TeamHandleError, TeamMachine,
    desk::{DeskRequest, What},
    response::{LONGEST_KEY, is_key},
};

/// Channel for the answer to a member's request.
type Reply = oneshot::Sender<Result<String, TeamHandleError>>;

/// A request to another member, for whose answer the asking run waits.
pub(super) struct Ask {
    pub(super) command: CommandId,
    pub(super) by: CallId,
    under_way: Option<CallsUnderWay>,
    /// Number of calls that were under way in the asking run when the team last checked whether to drop it.
    pub(super) seen: usize,
    pub(super) reply: Reply,
}

impl Ask {
    /// Returns the number of calls under way in the asking run; `usize::MAX` if that run must not
    /// be dropped.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.as_ref().map_or(usize::MAX, CallsUnderWay::count)
    }
}

impl Working<'_> {
    /// Handles one request of a working member.
    pub(super) async fn on_request(&mut self, run: &mut Run, request: DeskRequest) -> Recorded {
        let DeskRequest { call, what } = request;
        // The work was revoked: `reply` is dropped, which ends the member's wait with an error.
        let Some(hand) = run.machine.open_hand(call) else { return Ok(()) };
        let member = hand.member.clone();
        match what {
            What::Read { key, reply } => {
                let _ = reply.send(run.machine.board().get(&key).cloned());
            }
            What::Wait { key, newer_than, reply } => self.waits.push((call, key, newer_than, reply)),
            What::Write { key, reply, .. } if !is_key(&key) => {
                let reason = format!("a key is one line of at most {LONGEST_KEY} characters");
                let _ = reply.send(Err(TeamHandleError::Refused { reason }));
            }
            What::Write { key, value, expected, reply } => {
                if let Err(stale) = run.machine.board().check(&key, expected) {
                    let _ = reply.send(Err(stale.into()));
                    return Ok(());
                }
                let content = serde_json::json!({ "key": key, "value": value });
                let (writer, expected_version) = (call, expected);
                let shared = TeamRecord::ValueShared { writer, key: key.clone(), value, expected_version };
                run.record(vec![team(shared)]).await?;
                self.publish(member.as_str(), archon_types::BROADCAST, MessageType::ContextUpdate, content);
                let _ = reply.send(Ok(run.machine.board().version(&key)));
            }
            What::Ask { to, task, under_way, reply } => {
                let command = match request_of(&run.machine, call, &to, &task) {
                    Some(command) => command,
                    None => {
                        let command = run.machine.next_command();
                        let requested =
                            TeamRecord::DelegationRequested { requester: call, task, assignee: to };
                        run.record(vec![team(requested)]).await?;
                        command
                    }
                };
                self.asks.push(Ask { command, by: call, under_way, seen: 0, reply });
            }
        }
        Ok(())
    }

    /// Answers the members whose request is done, or whose shared entry has a newer version.
    pub(super) fn answer_seats(&mut self, machine: &TeamMachine) {
        let answer = |command: &CommandId| {
            let job = machine.job(*command)?;
            match &job.state {
                JobState::Done => Some(Ok(job.response_text())),
                JobState::Failed { reason } => Some(Err(TeamHandleError::Refused { reason: reason.clone() })),
                _ => None,
            }
        };
        for ask in std::mem::take(&mut self.asks) {
            match answer(&ask.command) {
                Some(answer) => drop(ask.reply.send(answer)),
                None => self.asks.push(ask),
            }
        }
        for (call, key, newer_than, reply) in std::mem::take(&mut self.waits) {
            match machine.board().get(&key).filter(|item| item.version > newer_than) {
                Some(item) => drop(reply.send(item.clone())),
                None => self.waits.push((call, key, newer_than, reply)),
            }
        }
    }
}

/// Returns the earlier request of the same delegation with the same text, if there is one: after a crash, or
/// if the member asks twice.
fn request_of(machine: &TeamMachine, by: CallId, to: &str, task: &str) -> Option<CommandId> {
    let job = machine.jobs().iter().find(|job| {
        let is_to = job.role.as_deref() == Some(to) || job.to.as_ref().is_some_and(|id| id.as_str() == to);
        is_to && matches!(&job.purpose, Purpose::Request { by: asker, task: asked } if *asker == by && asked == task)
    });
    job.map(|job| job.command)
}
