//! Reads the functions and the questions.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result};
use archon_types::{Json, ToolSpec};

/// The files whose functions are tools. Functions of other files belong to simulated programs.
const FUNCTIONS: [&str; 8] = [
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
];
/// The files whose questions need one function.
const QUESTIONS: [&str; 4] = ["simple_python", "multiple", "live_simple", "live_multiple"];

pub(crate) struct Questions {
    /// The tools, ordered by name; of several functions with one name the first.
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) by_file: Vec<(&'static str, Vec<Question>)>,
}

pub(crate) struct Question {
    pub(crate) text: String,
    /// The function that it needs.
    pub(crate) function: String,
}

impl Questions {
    pub(crate) fn len(&self) -> usize {
        self.by_file.iter().map(|(_, questions)| questions.len()).sum()
    }
}

/// Reads the folder `bfcl_eval/data` of the package `bfcl-eval`.
pub(crate) fn read(folder: &Path) -> Result<Questions> {
    let mut tools = BTreeMap::new();
    for file in FUNCTIONS {
        for entry in lines(&folder.join(format!("BFCL_v4_{file}.json")))? {
            for function in list(&entry, "function") {
                let tool = ToolSpec::new(
                    text(function, "name"),
                    text(function, "description"),
                    function["parameters"].clone(),
                );
                tools.entry(tool.name.clone()).or_insert(tool);
            }
        }
    }
    let mut by_file = Vec::new();
    for file in QUESTIONS {
        by_file.push((file, questions(folder, file)?));
    }
    Ok(Questions { tools: tools.into_values().collect(), by_file })
}

fn questions(folder: &Path, file: &str) -> Result<Vec<Question>> {
    let name = format!("BFCL_v4_{file}.json");
    let answers = lines(&folder.join("possible_answer").join(&name))?;
    let answers: BTreeMap<_, _> =
        answers.iter().map(|answer| (text(answer, "id"), &answer["ground_truth"])).collect();
    let question = |entry: &Json| {
        let id = text(entry, "id");
        let calls = answers.get(id).with_context(|| format!("{id} has no answer"))?;
        let call = calls[0].as_object().and_then(|call| call.keys().next());
        let function = call.with_context(|| format!("the answer of {id} names no function"))?.clone();
        let turns = list(entry, "question").filter_map(Json::as_array).flatten();
        let said =
            turns.filter(|message| text(message, "role") == "user").map(|message| text(message, "content"));
        Ok(Question { text: said.collect::<Vec<_>>().join(" "), function })
    };
    lines(&folder.join(name))?.iter().map(question).collect()
}

fn lines(file: &Path) -> Result<Vec<Json>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let line =
        |line: &str| serde_json::from_str(line).with_context(|| format!("{} is not JSON", file.display()));
    text.lines().filter(|text| !text.trim().is_empty()).map(line).collect()
}

fn list<'j>(entry: &'j Json, key: &str) -> impl Iterator<Item = &'j Json> {
    entry[key].as_array().into_iter().flatten()
}

fn text<'j>(entry: &'j Json, key: &str) -> &'j str {
    entry[key].as_str().unwrap_or_default()
}
