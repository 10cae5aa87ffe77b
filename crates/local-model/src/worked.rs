//! Worked examples that show a small model the use of its tools.
//!
//! A small model learns more from an example than from a description. For the tools of the framework the
//! examples are written by hand; for any other tool they are derived from the example arguments of its spec,
//! or from its schema.

use archon_types::ToolSpec;
use serde_json::{Map, Value, json};

/// An example for the prompt: a task and its solution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Worked {
    pub(crate) task: String,
    /// The tool that is called, and its arguments; `None` if no tool is needed.
    pub(crate) call: Option<(String, Value)>,
    /// The result of the tool; `None` if it is not shown.
    pub(crate) result: Option<String>,
    /// The answer. It is not shown for a tool call without a result.
    pub(crate) answer: String,
}

impl Worked {
    fn without_tool(task: String, answer: &str) -> Self {
        Self { task, call: None, result: None, answer: answer.to_owned() }
    }
}

/// The maximum number of examples that are shown, for any number of tools.
const MOST: usize = 34;

/// An example in a table: the tool, the property, the task, the value, the result and the answer. In a table,
/// the most instructive example of each tool comes first.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const BY_HAND: &[Row] = &[
    ("calculator", "expression", "How much is 12% of 80?", "12% of 80", "9.6", "12% of 80 is 9.6."),
    ("calculator", "expression", "Calculate (7 - 2.5) * 6.", "(7 - 2.5) * 6", "27", "(7 - 2.5) * 6 is 27."),
    ("calculator", "expression", "What is 3 to the power of 4?", "3 ^ 4", "81", "3 to the power of 4 is 81."),
    ("calculator", "expression", "A box holds 24 eggs. How many eggs are in 3 boxes?", "24 * 3", "72",
        "There are 72 eggs in 3 boxes."),
    ("calculator", "expression", "What is 56 divided by 7?", "56 / 7", "8", "56 divided by 7 is 8."),
    ("read_file", "path", "What does report.txt say about the price?", "report.txt",
        "Report\nThe price is 12 dollars.\nIt was paid.", "The price is 12 dollars."),
    ("read_file", "path", "Which timeout is set in server.ini?", "server.ini",
        "[server]\nname = \"main\"\ntimeout = 25\n[log]\nfile = \"out.log\"", "The timeout is 25."),
    ("read_file", "path", "Look at cars.csv. How many cars were built in May?", "cars.csv",
        "month,cars\nApril,12\nMay,31\nJune,8", "31 cars were built in May."),
    ("read_file", "path", "What is the second word in words.md?", "words.md",
        "# Words\n- apple\n- bread\n- cheese", "The second word is bread."),
    ("read_file", "path", "Open letters/Anna.txt. Who wrote it?", "letters/Anna.txt",
        "Dear Anna,\nsee you soon.\nYours, Tom", "Tom wrote it."),
    ("list_files", "path", "Which files are in the images folder?", "images",
        "images/cat.png\nimages/dog.png", "The files are images/cat.png and images/dog.png."),
    ("list_files", "path", "List the files in the current folder.", ".",
        "main.py\nnames.txt\ntests/", "The files are main.py, names.txt and tests/."),
    ("list_files", "path", "What does the music directory contain?", "music",
        "music/one.mp3\nmusic/two.mp3\nmusic/three.mp3",
        "The music directory contains music/one.mp3, music/two.mp3 and music/three.mp3."),
    ("list_files", "path", "Show everything inside backup/old.", "backup/old",
        "backup/old/a.zip\nbackup/old/b.zip", "The files are backup/old/a.zip and backup/old/b.zip."),
    ("search", "pattern", "Where is the function load_user defined?", "load_user",
        "app/users.py:14: def load_user(id):", "load_user is defined in app/users.py."),
    ("search", "pattern", "Find the word invoice.", "invoice",
        "letters/may.txt:3: The invoice is late.", "The word invoice is in letters/may.txt."),
    ("search", "pattern", "Which file mentions SECRET_KEY?", "SECRET_KEY",
        "app/keys.py:2: SECRET_KEY = 5", "app/keys.py mentions SECRET_KEY."),
    ("search", "pattern", "Search all files for apple.", "apple",
        "shop/list.md:8: - apple", "The word apple is in shop/list.md."),
];

/// Small talk that needs no tool and no knowledge.
const TALK: &[(&str, &str)] = &[
    ("Hi!", "Hello! How can I help you?"),
    (
        "What are you?",
        "I am Archon's small local model. I calculate, read and search files, and answer questions.",
    ),
    ("Thank you so much.", "You are welcome!"),
    ("Make me laugh.", "Why did the bicycle fall over? It was two tired."),
    ("How do you feel?", "I am fine, thank you. How are you?"),
    ("See you tomorrow.", "Goodbye! See you tomorrow."),
    (
        "What are you able to do?",
        "I can calculate, list, read and search files, and answer simple questions.",
    ),
];

/// Examples that are shown right before a question that the model answers without a tool.
const BEFORE_ANSWER: &[(&str, &str)] = &[
    ("Which language do people speak in Brazil?", "People speak Portuguese in Brazil."),
    ("I feel sad.", "Oh dear! Can I help you?"),
    ("Who am I talking to?", "My name is Archon. I am a small language model on this computer."),
    ("Which month follows May?", "June follows May."),
    (
        "What are you able to do?",
        "I can calculate, list, read and search files, and answer simple questions.",
    ),
    ("Great, thanks a lot!", "You are welcome!"),
    ("Do you know a joke?", "Here is a joke: why did the computer see a doctor? It had a virus."),
    ("Hi!", "Hello! How can I help you?"),
];

/// Returns the table [`BEFORE_ANSWER`] as worked examples.
pub(crate) fn before_answer() -> Vec<Worked> {
    without_tool(BEFORE_ANSWER)
}

const WITHOUT_TOOL: &[(&str, &str)] = &[
    ("Who painted the Mona Lisa?", "Leonardo da Vinci painted the Mona Lisa."),
    ("Which animal barks?", "A dog barks."),
    ("What is the biggest ocean?", "The Pacific Ocean is the biggest ocean."),
    ("How many legs does a spider have?", "A spider has eight legs."),
    ("Which language do people speak in Brazil?", "People speak Portuguese in Brazil."),
];

/// Returns the examples for these tools, one of each tool in turn, so that no tool is always first or last.
pub(crate) fn worked(tools: &[ToolSpec]) -> Vec<Worked> {
    let mut columns: Vec<Vec<Worked>> = tools.iter().map(for_tool).collect();
    columns.insert(columns.len() / 2, without_tool(WITHOUT_TOOL));
    columns.insert(0, without_tool(TALK));
    if tools.is_empty() {
        columns.push(from_text());
    }
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let rows = (0..longest).flat_map(|row| columns.iter().filter_map(move |column| column.get(row)));
    rows.take(MOST.max(columns.len())).cloned().collect()
}

/// Returns examples for requests without tools: a question, followed by a text that contains the answer.
fn from_text() -> Vec<Worked> {
    let is_read = |row: &&Row| matches!(row.0, "read_file" | "search");
    let worked =
        |(_, _, task, _, result, answer): &Row| Worked::without_tool(format!("{task}\n{result}"), answer);
    BY_HAND.iter().filter(is_read).map(worked).collect()
}

fn without_tool(said: &[(&str, &str)]) -> Vec<Worked> {
    said.iter().map(|(task, answer)| Worked::without_tool((*task).to_owned(), answer)).collect()
}

fn for_tool(tool: &ToolSpec) -> Vec<Worked> {
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let by_hand: Vec<_> = BY_HAND
        .iter()
        .filter(|(name, property, ..)| {
            *name == tool.name && properties.is_some_and(|p| p.contains_key(*property))
        })
        .map(|(name, property, task, value, result, answer)| Worked {
            task: (*task).to_owned(),
            call: Some(((*name).to_owned(), json!({ *property: value }))),
            result: Some((*result).to_owned()),
            answer: (*answer).to_owned(),
        })
        .collect();
    if by_hand.is_empty() { example_of(tool).into_iter().collect() } else { by_hand }
}

/// Derives an example from the tool's own example arguments, or from its schema.
fn example_of(tool: &ToolSpec) -> Option<Worked> {
    let arguments = match tool.examples.first() {
        Some(arguments) => arguments.clone(),
        None => sample(&tool.parameters, 0),
    };
    let values: Vec<_> = arguments.as_object()?.values().map(plain).filter(|text| !text.is_empty()).collect();
    let verb = tool.name.rsplit('.').next().unwrap_or(&tool.name).replace(['_', '-'], " ");
    let task = [&[verb], values.as_slice()].concat().join(" ");
    Some(Worked { task, call: Some((tool.name.clone(), arguments)), result: None, answer: String::new() })
}

/// Returns the schema of a tool's arguments for a small model: only the arguments of the tool's first
/// example, and the required ones. A small model cannot choose among optional arguments.
///
/// So an optional argument that is missing in the first example cannot be given, and one that is in the
/// example is always given, and is never null. A tool without examples gets its required arguments only; a
/// tool with neither keeps its whole schema.
pub(crate) fn compact_schema(tool: &ToolSpec) -> Value {
    let schema = &tool.parameters;
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return schema.clone() };
    let shown = tool.examples.first().and_then(Value::as_object);
    let is_kept =
        |name: &String| shown.is_some_and(|shown| shown.contains_key(name)) || is_required(schema, name);
    let kept = properties.iter().filter(|(name, _)| is_kept(name));
    let kept: Map<_, _> = kept.map(|(name, p)| (name.clone(), not_null(p))).collect();
    if kept.is_empty() {
        return schema.clone();
    }
    let mut compact = Map::new();
    compact.insert("type".into(), "object".into());
    compact.insert("required".into(), kept.keys().map(|name| Value::from(name.as_str())).collect());
    compact.insert("properties".into(), Value::Object(kept));
    for definitions in ["$defs", "definitions"] {
        if let Some(value) = schema.get(definitions) {
            compact.insert(definitions.into(), value.clone());
        }
    }
    Value::Object(compact)
}

/// Removes null from the allowed values: an argument that is always given need not be null.
fn not_null(property: &Value) -> Value {
    let mut property = property.clone();
    for word in ["type", "anyOf", "oneOf", "enum"] {
        if let Some(Value::Array(choices)) = property.get_mut(word)
            && choices.len() > 1
        {
            choices.retain(|choice| {
                *choice != "null" && !choice.is_null() && choice.get("type").is_none_or(|t| t != "null")
            });
        }
    }
    property
}

/// Returns a value that fits the schema.
fn sample(schema: &Value, depth: usize) -> Value {
    let given = ["const", "default"].iter().find_map(|word| schema.get(*word));
    let listed = ["examples", "enum"].iter().find_map(|word| schema.get(*word)?.get(0));
    if let Some(value) = given.or(listed) {
        return value.clone();
    }
    if let Some(first) = ["anyOf", "oneOf"].iter().find_map(|word| schema.get(*word)?.get(0)) {
        return sample(first, depth + 1);
    }
    let kind = schema.get("type");
    match kind.and_then(Value::as_str).or_else(|| kind?.get(0)?.as_str()) {
        Some("string") => "example".into(),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(1.into()),
        Some("boolean") => true.into(),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ if depth > 4 => json!({}),
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            properties
                .filter(|(name, _)| is_required(schema, name))
                .map(|(name, property)| (name.clone(), sample(property, depth + 1)))
                .collect::<Map<_, _>>()
                .into()
        }
    }
}

fn is_required(schema: &Value, property: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|name| name == property))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: Value, examples: Vec<Value>) -> ToolSpec {
        let mut tool = ToolSpec::new(name, "Does something.", parameters);
        tool.examples = examples;
        tool
    }

    #[test]
    fn a_strange_tool_gets_an_example_of_its_own() {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        });
        let with = tool("weather.look_up", schema.clone(), vec![json!({"city": "Oslo", "days": 3})]);
        let without = tool("weather.look_up", schema, vec![]);
        let tasks = |tool: ToolSpec| worked(&[tool]).into_iter().find(|w| w.call.is_some()).map(|w| w.task);
        assert_eq!(tasks(with).as_deref(), Some("look up Oslo 3"));
        assert_eq!(tasks(without).as_deref(), Some("look up example 1"));
    }

    #[test]
    fn no_tool_comes_twice_in_a_row_while_others_wait() {
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let tools = [tool("read_file", path.clone(), vec![]), tool("list_files", path, vec![])];
        let names: Vec<_> = worked(&tools).into_iter().map(|w| w.call.map(|c| c.0)).take(5).collect();
        assert_eq!(names, [None, Some("read_file".into()), None, Some("list_files".into()), None]);
    }

    #[test]
    fn compact_schema_keeps_shown_and_required_properties() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": ["string", "null"]},
                "depth": {"type": "integer"},
                "all": {"type": "boolean"},
            },
            "required": ["depth"],
            "additionalProperties": false,
        });
        let compact = compact_schema(&tool("list", schema, vec![json!({"path": "."})]));
        assert_eq!(
            compact,
            json!({
                "type": "object",
                "required": ["path", "depth"],
                "properties": {"path": {"type": ["string"]}, "depth": {"type": "integer"}},
            })
        );
    }
}
