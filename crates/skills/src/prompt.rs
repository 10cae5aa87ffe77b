//! The list of skills for the system prompt.

use crate::{Skill, SkillSet, limits, xml::escape};

impl SkillSet {
    /// Returns the block `<available_skills>` with the name, the description and the file of each skill that a model
    /// can activate; an empty text if there is none. Descriptions are cut to 1,024 characters.
    ///
    /// ```
    /// use archon_skills::SkillSet;
    ///
    /// assert_eq!(SkillSet::new().format_for_prompt(), "");
    /// ```
    pub fn format_for_prompt(&self) -> String {
        let skills: String = self.visible().map(entry).collect();
        match skills.is_empty() {
            true => skills,
            false => format!("<available_skills>\n{skills}</available_skills>"),
        }
    }
}

fn entry(skill: &Skill) -> String {
    let mut description: String = skill.description.chars().take(limits::DESCRIPTION).collect();
    if description.len() < skill.description.len() {
        description.pop();
        description.push('…');
    }
    format!(
        "<skill>\n<name>{}</name>\n<description>{}</description>\n<location>{}</location>\n</skill>\n",
        escape(&skill.name),
        escape(&description),
        escape(&skill.file().to_string_lossy()),
    )
}
