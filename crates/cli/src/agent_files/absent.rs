//! The replacement without the feature `skills`: no agent is in a file.

use crate::{
    app::App,
    config::{AgentFile, AgentSettings},
    failure::Failure,
    project_parts::ProjectPart,
    servers::Tools,
};

pub(crate) fn add(_: &mut App) {}

pub(crate) fn replace(_: &mut App) {}

pub(crate) fn waiting(_: &App) -> Vec<ProjectPart> {
    Vec::new()
}

pub(crate) fn findings(_: &App) -> Vec<String> {
    Vec::new()
}

pub(crate) fn list_untrusted(_: &App) -> bool {
    false
}

pub(crate) fn check_agreed(_: &App, _: &str) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn place_of_model(name: &str, _: &AgentSettings) -> String {
    format!("[agents.{name}]")
}

pub(crate) fn check_model(_: &App, _: &AgentSettings) -> Result<(), Failure> {
    Ok(())
}

pub(crate) fn system_prompt(_: &App, file: &AgentFile) -> Result<String, Failure> {
    match *file {}
}

pub(crate) fn path(file: &AgentFile) -> String {
    match *file {}
}

pub(crate) fn has_tool(file: &AgentFile, _: &str) -> bool {
    match *file {}
}

pub(crate) fn unknown_tools(file: &AgentFile, _: &Tools) -> Option<String> {
    match *file {}
}
