//! Builds the task text of a delegation: the role, the work, and the context.

use archon_types::{CallId, SchemaProblem, json_in};

use super::{Job, JobState, Purpose, TeamMachine, conflicts::Conflict};
use crate::response::text_of;

impl TeamMachine {
    /// Returns the title of a job, in one line.
    pub fn title(&self, job: &Job) -> String {
        let key = |conflict: &u64| self.conflict(*conflict).map(|c| c.key.clone()).unwrap_or_default();
        match &job.purpose {
            Purpose::Subtask { subtask } => format!("{}: {}", subtask.id, subtask.description),
            Purpose::Request { task, .. } => task.clone(),
            Purpose::Bid { job } => {
                format!("an offer for {}", self.job(*job).map(|job| self.title(job)).unwrap_or_default())
            }
            Purpose::Explain { conflict } => format!("how it came to its answer about {}", key(conflict)),
            Purpose::Judge { conflict } => format!("who is right about {}", key(conflict)),
            Purpose::Verify { conflict } => format!("{} once more", key(conflict)),
            Purpose::Recompute { conflict, .. } => {
                format!("its work again, with {} as settled", key(conflict))
            }
            Purpose::Synthesize { round, .. } => format!("the answer, round {round}"),
            Purpose::Review { round } => format!("a review of the answer, round {round}"),
            Purpose::AskHuman { conflict } => format!("a person's word about {}", key(conflict)),
            Purpose::Escalate { failures } => format!("whether to go on after {failures} failures"),
        }
    }

    /// Returns the full task text of a delegation. Text of other members is put between tags, as data.
    pub fn brief(&self, call: CallId) -> String {
        let Some(job) = self.job(call.command) else { return String::new() };
        let mut brief = Brief::default();
        self.role_of(job, &mut brief);
        match &job.purpose {
            Purpose::Subtask { .. } => self.subtask(job, &mut brief),
            Purpose::Request { task, .. } => {
                brief.line(format!("The goal of the team: {}", self.task.goal));
                brief.line(format!("Another member asks: {task}"));
            }
            Purpose::Bid { job } => {
                brief.line(
                    "What would it take you to do the following? Do not do it. Answer with one JSON object: \
                    {\"result\": {\"quality\": 0 to 1, \"cost\": money, \"time\": seconds}}.",
                );
                if let Some(job) = self.job(*job) {
                    self.subtask(job, &mut brief);
                }
            }
            Purpose::Explain { conflict } => {
                brief.line("Others came to another answer than you. Say by which method and from which data you came to yours.");
                self.claims_of(*conflict, &mut brief);
            }
            Purpose::Judge { conflict } => {
                brief.line("Decide which of these claims holds. Answer with one JSON object: \
                    {\"result\": {\"winner\": \"the id of who is right\"}}, or {\"result\": {\"value\": what holds instead}}.");
                self.claims_of(*conflict, &mut brief);
                self.explanations(*conflict, &mut brief);
            }
            Purpose::Verify { conflict } => {
                brief.line(format!("The goal of the team: {}", self.task.goal));
                brief.line(
                    "Work out for yourself what the following names. Answer with one JSON object: \
                    {\"result\": {\"value\": what you found}}.",
                );
                self.subject(*conflict, &mut brief);
            }
            Purpose::Recompute { conflict, job: of } => {
                brief.line("Do your work again with what was settled.");
                let own = self.conflict(*conflict);
                self.settled_values(|settled| own == Some(settled), &mut brief);
                if let Some(job) = self.job(*of) {
                    self.subtask(job, &mut brief);
                }
            }
            Purpose::Synthesize { notes, misfits, .. } => {
                self.synthesis(notes.as_deref(), misfits, &mut brief);
            }
            Purpose::Review { .. } => {
                brief.line(format!("The goal of the team: {}", self.task.goal));
                brief.line(
                    "Is this answer right and complete? Answer with one JSON object: \
                    {\"result\": {\"approved\": true or false, \"notes\": \"what is to be changed\"}}.",
                );
                brief.data("answer", "draft", &self.draft());
            }
            Purpose::AskHuman { .. } | Purpose::Escalate { .. } => {}
        }
        brief.0
    }

    fn settled_values(&self, is_meant: impl Fn(&Conflict) -> bool, brief: &mut Brief) {
        for (conflict, value, how) in self.settlements().filter(|(conflict, ..)| is_meant(conflict)) {
            brief.data("settled", &conflict.key, &format!("{} ({how})", text_of(value)));
        }
    }

    fn role_of(&self, job: &Job, brief: &mut Brief) {
        let Some(role) = job.role.as_deref().and_then(|name| self.role(name)) else { return };
        for line in [&role.prompt].into_iter().chain(&role.hints).chain(&role.instructions) {
            brief.line(line);
        }
    }

    fn subtask(&self, job: &Job, brief: &mut Brief) {
        let Some(subtask) = job.subtask() else { return };
        brief.line(format!("The goal of the team: {}", self.task.goal));
        brief.line(format!("Your task: {}", subtask.description));
        if let Some(expected) = &subtask.expected_output {
            brief.line(format!("Expected: {expected}"));
        }
        self.background_of_goal(brief);
        for id in subtask.dependencies() {
            if let Some(response) = self.job_of(id).and_then(|job| job.response.as_ref()) {
                brief.data("result", id.as_str(), &response.text());
            }
        }
        for (key, value) in &self.task.context {
            brief.data("known", key, &text_of(value));
        }
        // A member that takes over the work reads what was shared before.
        if job.failures() > 0 {
            brief.line("Somebody began this before and did not finish it. What the team shares:");
            for (key, item) in self.board.items() {
                brief.data("shared", key, &text_of(&item.value));
            }
        }
    }

    fn background_of_goal(&self, brief: &mut Brief) {
        if !self.background.is_empty() {
            brief.data("background", "goal", &self.background);
        }
    }

    fn claims_of(&self, of: u64, brief: &mut Brief) {
        self.subject(of, brief);
        for claim in self.conflict(of).into_iter().flat_map(|conflict| &conflict.claims) {
            brief.data("claim", claim.by.as_str(), &text_of(&claim.value));
        }
    }

    /// Appends the key of a contradiction. Members chose the key, so the key is put between tags, as data.
    fn subject(&self, conflict: u64, brief: &mut Brief) {
        if let Some(conflict) = self.conflict(conflict) {
            brief.data("subject", "conflict", &conflict.key);
        }
    }

    fn explanations(&self, of: u64, brief: &mut Brief) {
        for job in &self.jobs {
            if let (Purpose::Explain { conflict }, Some(response), Some(by)) =
                (&job.purpose, &job.response, &job.to)
                && *conflict == of
            {
                brief.data("method", by.as_str(), &response.text());
            }
        }
    }

    fn synthesis(&self, notes: Option<&str>, misfits: &[SchemaProblem], brief: &mut Brief) {
        brief.line(format!("The goal of the team: {}", self.task.goal));
        brief.line("Put the answer together from every contribution.");
        self.background_of_goal(brief);
        for (id, text) in self.contributors() {
            brief.data("contribution", id, &text);
        }
        for job in &self.jobs {
            if let (Some(subtask), JobState::Failed { reason }) = (job.subtask(), &job.state) {
                brief.data("missing", subtask.id.as_str(), reason);
            }
        }
        self.settled_values(|_| true, brief);
        if let Some(notes) = notes {
            brief.line("A reviewer wants the last answer changed:");
            brief.data("review", "notes", notes);
        }
        if !misfits.is_empty() {
            brief.line("Your last answer does not match the JSON schema that it must have:");
            let lines: Vec<String> = misfits.iter().map(|problem| format!("- {problem}")).collect();
            brief.data("misfit", "form", &lines.join("\n"));
            brief.line("Answer again: the whole JSON, and nothing else.");
        }
        if notes.is_some() || !misfits.is_empty() {
            brief.data("answer", "draft", &self.draft());
        }
    }

    /// Returns the id and the result text of each finished subtask, in the order of the plan.
    pub(super) fn contributors(&self) -> impl Iterator<Item = (&str, String)> {
        self.jobs
            .iter()
            .filter(|job| job.state == JobState::Done)
            .filter_map(|job| Some((job.subtask()?.id.as_str(), job.response_text())))
    }

    /// Returns the answer so far; only its JSON, if the answer must fit a schema.
    pub(super) fn draft(&self) -> String {
        let is_synthesis = |job: &&Job| matches!(job.purpose, Purpose::Synthesize { .. });
        let last = self.jobs.iter().rev().filter(is_synthesis).find_map(|job| job.response.as_ref());
        let draft = last.map_or_else(|| self.results(), |response| text_of(&response.result));
        match self.output {
            Some(_) => json_in(&draft).into_owned(),
            None => draft,
        }
    }

    /// Returns the answer of a team without a lead: all contributions; only the result of the only finished
    /// subtask if the answer must fit a schema.
    fn results(&self) -> String {
        let mut contributors = self.contributors();
        match (contributors.next(), contributors.next()) {
            (Some((_, only)), None) if self.output.is_some() => only,
            _ => self.contributions(),
        }
    }
}

#[derive(Default)]
struct Brief(String);

impl Brief {
    fn line(&mut self, line: impl AsRef<str>) {
        if !line.as_ref().is_empty() {
            self.0.push_str(line.as_ref());
            self.0.push('\n');
        }
    }

    /// Appends text of other members between tags. The text cannot close its tag.
    fn data(&mut self, kind: &str, of: &str, text: &str) {
        let text = text.replace("</", "<\u{200b}/");
        let of = of.replace(['"', '<', '>'], "'").replace(char::is_control, " ");
        self.0.push_str(&format!("<{kind} of=\"{of}\">\n{text}\n</{kind}>\n"));
    }
}
