//! Reads a team file, and adds the line and an advice to an error.

use std::{collections::BTreeSet, ops::Range, path::Path};

use archon::{
    orchestrator::sample_roles,
    types::{
        ConflictStrategy, Heartbeat, Member, SubTask, SubTaskRules, TeamPattern, TeamRole, TeamSettings,
    },
};
use serde::Deserialize;
use toml::Spanned;

use crate::{config::line_at, failure::Failure, toolset};

/// The content of a team file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    pattern: Option<Spanned<String>>,
    size: Option<u32>,
    conflicts: Option<ConflictStrategy>,
    reviewer: Option<Spanned<String>>,
    #[serde(default)]
    lead: Lead,
    #[serde(default)]
    role: Vec<WrittenRole>,
    #[serde(default)]
    member: Vec<WrittenMember>,
    #[serde(default)]
    step: Vec<WrittenStep>,
    #[serde(default)]
    limits: Limits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lead {
    id: Option<String>,
    model: Option<Spanned<String>>,
    #[serde(default)]
    tools: Vec<Spanned<String>>,
    instructions: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRole {
    name: Spanned<String>,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    tools: Vec<Spanned<String>>,
    #[serde(default)]
    peers: Vec<String>,
    #[serde(default)]
    hints: Vec<String>,
    #[serde(default)]
    instructions: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMember {
    id: Spanned<String>,
    roles: Vec<Spanned<String>>,
    #[serde(default)]
    tools: Vec<Spanned<String>>,
    model: Option<Spanned<String>>,
    instructions: Option<String>,
    max_tasks: Option<u32>,
    authority: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    id: Spanned<String>,
    task: String,
    role: Option<Spanned<String>>,
    #[serde(default)]
    after: Vec<Spanned<String>>,
}

/// Limits of a team; missing limits have the library's defaults.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    max_concurrent: Option<u32>,
    max_chain: Option<u32>,
    max_tries: Option<u32>,
    max_replans: Option<u32>,
    max_delegations: Option<u32>,
    max_revisions: Option<u32>,
    error_budget: Option<u32>,
    redundancy: Option<u32>,
    task_seconds: Option<u64>,
    silent_seconds: Option<u64>,
    max_tokens: Option<u64>,
    max_seconds: Option<u64>,
}

/// A valid team.
#[derive(Debug)]
pub(super) struct TeamFile {
    pub(super) settings: TeamSettings,
    pub(super) roles: Vec<TeamRole>,
    pub(super) lead: TeamAgent,
    pub(super) members: Vec<(Member, TeamAgent)>,
    /// The plan; empty if the lead makes one.
    pub(super) steps: Vec<SubTask>,
    pub(super) max_tokens: Option<u64>,
    pub(super) max_seconds: Option<u64>,
}

/// An agent of the team.
#[derive(Debug)]
pub(super) struct TeamAgent {
    pub(super) id: String,
    pub(super) model: Option<String>,
    pub(super) tools: Vec<String>,
    pub(super) instructions: Option<String>,
}

/// Reads a file. `tools` are the names of all tools.
pub(super) fn read(path: &Path, tools: &[String]) -> Result<TeamFile, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::unreadable(path, &e, "give the path of a team file; docs/teams.md describes its format")
    })?;
    parse(&path.display().to_string(), &text, tools)
}

fn parse(name: &str, text: &str, tools: &[String]) -> Result<TeamFile, Failure> {
    let place = Place { name, text };
    let advice = "docs/teams.md describes the settings, with an example";
    let written: Written =
        toml::from_str(text).map_err(|e| place.wrong(&e.span().unwrap_or_default(), e.message(), advice))?;
    let roles = roles_of(&written);
    place.check_tools(&written, tools)?;
    place.check_members(&written, &roles)?;
    place.check_roles(&written)?;
    place.check_steps(&written)?;
    let settings = place.settings(&written)?;
    let steps = written.step.iter().map(step).collect();
    let (max_tokens, max_seconds) = (written.limits.max_tokens, written.limits.max_seconds);
    let members = written.member.into_iter().map(team_member).collect();
    let lead = TeamAgent {
        id: written.lead.id.unwrap_or_else(|| LEAD.to_owned()),
        model: written.lead.model.map(Spanned::into_inner),
        tools: plain(&written.lead.tools),
        instructions: written.lead.instructions,
    };
    Ok(TeamFile { settings, roles, lead, members, steps, max_tokens, max_seconds })
}

/// The id of the lead, if the file gives none.
const LEAD: &str = "lead";

struct Place<'a> {
    name: &'a str,
    text: &'a str,
}

impl Place<'_> {
    fn wrong(&self, at: &Range<usize>, what: &str, advice: impl AsRef<str>) -> Failure {
        let line = line_at(self.text, at.start);
        let what = what.trim_end().replace('\n', " ");
        Failure::usage(format!("{}:{line}: {what}", self.name), advice.as_ref())
    }

    fn check_tools(&self, written: &Written, tools: &[String]) -> Result<(), Failure> {
        let of_members = written.member.iter().flat_map(|member| &member.tools);
        let of_roles = written.role.iter().flat_map(|role| &role.tools);
        for tool in of_members.chain(of_roles).chain(&written.lead.tools) {
            let name: &str = tool.get_ref();
            if !tools.iter().any(|known| known == name) {
                let e = toolset::unknown(name, tools.iter().map(String::as_str));
                return Err(self.wrong(&tool.span(), e.what(), e.advice_line()));
            }
        }
        Ok(())
    }

    fn check_members(&self, written: &Written, roles: &[TeamRole]) -> Result<(), Failure> {
        let mut ids = BTreeSet::from([written.lead.id.as_deref().unwrap_or(LEAD)]);
        for member in &written.member {
            let id = member.id.get_ref();
            if id.trim().is_empty() {
                return Err(self.wrong(&member.id.span(), "a member has no id", "give it one: id = \"ada\""));
            }
            if !ids.insert(id) {
                let what = format!("two agents have the id {id:?}");
                let advice = format!("give one of the two {id} another id");
                return Err(self.wrong(&member.id.span(), &what, advice));
            }
            if member.roles.is_empty() {
                let advice = format!("set its roles, its main one first: roles = [\"{}\"]", roles[0].name);
                return Err(self.wrong(&member.id.span(), &format!("{id} has no role"), advice));
            }
            for role in &member.roles {
                let name: &str = role.get_ref();
                if !roles.iter().any(|role| role.name == name) {
                    let known: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
                    let advice =
                        format!("add [[role]] name = {name:?}, or take one of: {}", known.join(", "));
                    return Err(self.wrong(&role.span(), &format!("there is no role {name:?}"), advice));
                }
            }
        }
        if written.member.is_empty() {
            let advice = "add [[member]] with an id and its roles";
            return Err(self.wrong(&(0..0), "the team has no members", advice));
        }
        Ok(())
    }

    /// Checks that each role has a member with the tools that it needs.
    fn check_roles(&self, written: &Written) -> Result<(), Failure> {
        let of_steps = written.step.iter().filter_map(|step| step.role.as_ref());
        let defined = written.role.iter().map(|role| &role.name);
        for role in defined.chain(of_steps).chain(&written.reviewer) {
            let name = role.get_ref();
            if !written.member.iter().any(|member| has(&member.roles, name)) {
                let advice = format!("add a [[member]] with roles = [{name:?}], or leave the role out");
                return Err(self.wrong(&role.span(), &format!("no agent has the role {name:?}"), advice));
            }
        }
        let mut names = BTreeSet::new();
        for role in &written.role {
            let name = role.name.get_ref();
            if !names.insert(name) {
                let what = format!("two roles have the name {name:?}");
                return Err(self.wrong(&role.name.span(), &what, "keep one of the two"));
            }
            let inside = || written.member.iter().filter(|member| has(&member.roles, name));
            if let Some(tool) =
                role.tools.iter().find(|tool| !inside().any(|m| has(&m.tools, tool.get_ref())))
            {
                let tool_name = tool.get_ref();
                let what = format!(
                    "the role {name:?} needs the tool {tool_name:?}, but no agent with the role has it"
                );
                let advice = format!(
                    "add tools = [{tool_name:?}] to a [[member]] with the role, or leave the tool out"
                );
                return Err(self.wrong(&tool.span(), &what, advice));
            }
        }
        Ok(())
    }

    fn check_steps(&self, written: &Written) -> Result<(), Failure> {
        let mut ids = BTreeSet::new();
        for step in &written.step {
            let id = step.id.get_ref();
            if !ids.insert(id) {
                let what = format!("two steps have the id {id:?}");
                return Err(self.wrong(&step.id.span(), &what, "give one of the two another id"));
            }
        }
        for (step, after) in written.step.iter().flat_map(|step| step.after.iter().map(move |a| (step, a))) {
            let (id, after_id) = (step.id.get_ref(), after.get_ref());
            if !ids.contains(after_id) || after_id == id {
                let what = format!("the step {id:?} comes after {after_id:?}, which is not another step");
                let known: Vec<_> = ids.iter().map(|id| id.as_str()).collect();
                return Err(self.wrong(&after.span(), &what, format!("the steps are: {}", known.join(", "))));
            }
        }
        Ok(())
    }

    fn settings(&self, written: &Written) -> Result<TeamSettings, Failure> {
        let mut settings = TeamSettings::default();
        let limits = &written.limits;
        let size = written.size.unwrap_or(3);
        settings.pattern = match written.pattern.as_ref().map(|pattern| (pattern.get_ref().as_str(), pattern))
        {
            None | Some(("hierarchical", _)) => TeamPattern::Hierarchical,
            Some(("committee", _)) => TeamPattern::Committee { size },
            Some(("market", _)) => TeamPattern::Market,
            Some((other, pattern)) => {
                let what = format!("there is no pattern {other:?}");
                let advice = "the patterns are: hierarchical, committee, market";
                return Err(self.wrong(&pattern.span(), &what, advice));
            }
        };
        if let Some(strategy) = &written.conflicts {
            settings.conflicts.strategy = strategy.clone();
        }
        settings.reviewer = written.reviewer.as_ref().map(|role| role.get_ref().clone());
        if let Some(seconds) = limits.silent_seconds {
            settings.heartbeat = Heartbeat::Events;
            (settings.heartbeat_ms, settings.missed_heartbeats) = (seconds.saturating_mul(1_000), 1);
        }
        settings.error_budget = limits.error_budget.or(settings.error_budget);
        if let Some(seconds) = limits.task_seconds {
            settings.task_timeout_ms = seconds.saturating_mul(1_000);
        }
        for (to, from) in [
            (&mut settings.max_concurrent, limits.max_concurrent),
            (&mut settings.max_delegation_depth, limits.max_chain),
            (&mut settings.max_attempts, limits.max_tries),
            (&mut settings.max_replans, limits.max_replans),
            (&mut settings.max_delegations, limits.max_delegations),
            (&mut settings.max_revisions, limits.max_revisions),
            (&mut settings.redundancy, limits.redundancy),
        ] {
            *to = from.unwrap_or(*to);
        }
        Ok(settings)
    }
}

/// Returns the file's roles, after the sample roles that the file does not define itself.
fn roles_of(written: &Written) -> Vec<TeamRole> {
    let is_written = |name: &str| written.role.iter().any(|role| role.name.get_ref() == name);
    let mut roles: Vec<TeamRole> =
        sample_roles().into_iter().filter(|role| !is_written(&role.name)).collect();
    roles.extend(written.role.iter().map(|from| {
        let mut role =
            TeamRole::new(from.name.get_ref().clone(), from.prompt.clone()).with_tools(plain(&from.tools));
        (role.peers, role.hints) = (from.peers.clone(), from.hints.clone());
        role.instructions.clone_from(&from.instructions);
        role
    }));
    roles
}

fn team_member(from: WrittenMember) -> (Member, TeamAgent) {
    let (id, tools) = (from.id.into_inner(), plain(&from.tools));
    let mut roles = from.roles.into_iter().map(Spanned::into_inner);
    let mut member = Member::new(id.clone(), roles.next().unwrap_or_default()).with_tools(tools.clone());
    member.roles.extend(roles);
    member.max_tasks = from.max_tasks.unwrap_or(member.max_tasks);
    member.authority = from.authority.unwrap_or(member.authority);
    let model = from.model.map(Spanned::into_inner);
    (member, TeamAgent { id, model, tools, instructions: from.instructions })
}

fn step(from: &WrittenStep) -> SubTask {
    let mut rules = SubTaskRules::default();
    rules.role = from.role.as_ref().map(|role| role.get_ref().clone());
    SubTask::new(from.id.get_ref().clone(), from.task.clone()).after(plain(&from.after)).with_rules(rules)
}

fn has(names: &[Spanned<String>], name: &str) -> bool {
    names.iter().any(|other| other.get_ref() == name)
}

fn plain(names: &[Spanned<String>]) -> Vec<String> {
    names.iter().map(|name| name.get_ref().clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    const TEAM: &str = include_str!("../../../examples/team.toml");

    fn parsed(text: &str) -> Result<TeamFile, Failure> {
        parse("team.toml", text, &["calculator", "search"].map(str::to_owned))
    }

    // spec: MA-09
    #[test]
    fn the_example_is_a_team_that_can_work() {
        let team = parsed(TEAM).unwrap();
        assert_eq!(team.members.len(), 2);
        assert_eq!(team.members[0].0.tools, ["search"]);
        assert_eq!(team.settings.pattern, TeamPattern::Hierarchical);
        assert_eq!(team.steps.len(), 2);
    }

    #[test]
    fn team_file_problems_name_the_line_and_a_remedy() {
        let ada = "[[member]]\nid = \"ada\"\nroles = [\"writer\"]\n";
        for (text, what, advice) in [
            ("", "team.toml:1: the team has no members", "add [[member]]"),
            (&format!("{ada}{ada}"), "team.toml:5: two agents have the id \"ada\"", "another id"),
            (&ada.replace("ada", "lead"), "team.toml:2: two agents have the id \"lead\"", "another id"),
            (&ada.replace("writer", "poet"), "team.toml:3: there is no role \"poet\"", "add [[role]]"),
            (
                &format!("{ada}tools = [\"serch\"]"),
                "team.toml:4: there is no tool \"serch\"",
                "did you mean search?",
            ),
            (
                &format!("{ada}[[role]]\nname = \"poet\""),
                "team.toml:5: no agent has the role \"poet\"",
                "add a [[member]]",
            ),
            (
                &format!("{ada}[[role]]\nname = \"writer\"\ntools = [\"search\"]"),
                "team.toml:6: the role \"writer\" needs the tool \"search\"",
                "add tools = [\"search\"]",
            ),
            (
                &format!("reviewer = \"quality_analyst\"\n{ada}"),
                "team.toml:1: no agent has the role",
                "add a [[member]]",
            ),
            (
                &format!("pattern = \"circle\"\n{ada}"),
                "team.toml:1: there is no pattern \"circle\"",
                "market",
            ),
            (
                &format!("{ada}[[step]]\nid = \"a\"\ntask = \"b\"\nafter = [\"c\"]"),
                "team.toml:7: the step",
                "the steps are: a",
            ),
            (&format!("{ada}colour = 1"), "team.toml:4: unknown field `colour`", "docs/teams.md"),
            ("[[member]\n", "team.toml:1: ", "docs/teams.md"),
        ] {
            let failure = parsed(text).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(failure.what().starts_with(what), "{failure:?}");
            assert!(failure.advice()[0].contains(advice), "{failure:?}");
        }
    }
}
