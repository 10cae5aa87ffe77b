//! `cargo xtask layers`: checks the dependencies between our crates against an explicit table. A new edge is
//! a change of the architecture, so it must be added here; an edge that no longer exists must be removed. Inside a
//! crate no files may import each other in a circle. The drawing of docs/architecture.md has the same layers.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::circles;
use crate::command_line::CommandLine;
use crate::metadata::{Dependency, Metadata};
use crate::repository;

/// Layer of each crate. An edge points to a lower layer, never sideways or up.
const LAYERS: &[(&str, u8)] = &[
    ("archon-agents-types", 1),
    ("archon-macros", 1),
    ("archon-vectors", 1),
    ("archon-memory-rank", 2),
    ("archon-run", 2),
    ("archon-process", 2),
    ("archon-http-access", 2),
    ("archon-views", 2),
    ("archon-testkit", 2),
    ("archon-store", 3),
    ("archon-redis", 3),
    ("archon-mcp", 3),
    ("archon-openapi", 3),
    ("archon-notify", 3),
    ("archon-oauth", 3),
    ("archon-local-model", 3),
    ("archon-local-embedder", 3),
    ("archon-providers", 4),
    ("archon-tools", 4),
    ("archon-react-loop", 4),
    ("archon-planner", 4),
    ("archon-memory", 4),
    ("archon-bus", 4),
    ("archon-assistant", 4),
    ("archon-orchestrator", 4),
    ("archon-code", 4),
    ("archon-tool-search", 4),
    ("archon-hooks", 4),
    ("archon-skills", 4),
    ("archon-triggers", 4),
    ("archon-snapshots", 4),
    ("archon-server", 5),
    ("archon-openai-serve", 5),
    ("archon-answers", 5),
    ("archon-event-sources", 5),
    ("archon-mcp-serve", 5),
    ("archon-terminal", 5),
    ("archon-agents", 6),
    ("archon-agents-cli", 7),
];

/// Crates of this layer and above combine the others, and may depend on all of them.
const FACADE: u8 = 6;

/// The crate that every crate may use; it does not count.
const TYPES: &str = "archon-agents-types";

/// The most of our crates, besides the types, that a crate below the facade may depend on.
const MOST_BELOW: usize = 2;

/// The page with the drawing of the layers.
const DRAWING: &str = "docs/architecture.md";

/// The floors of the drawing, lowest first: the first is layer 1.
const FLOORS: [&str; 7] = ["base", "shared", "adapters", "pillars", "faces", "facade", "apps"];

/// The most crates on a floor.
const MOST_ROOMS: usize = 20;

/// Returns the crates of the product, lowest layer first.
pub(crate) fn product() -> impl Iterator<Item = &'static str> {
    LAYERS.iter().map(|(name, _)| *name)
}

/// Packages of the workspace outside the product: cross-crate tests and measurements, which may use anything,
/// and this program, which may use none of our crates.
const OUTSIDE: &[&str] = &["archon-tests", "archon-evals", "xtask"];

/// The allowed edges. Dev edges reach the testkit only; tests that need two pillars are in `tests/`.
const EDGES: &[Edge] = &[
    edge("archon-run", Kind::Normal, "archon-agents-types"),
    edge("archon-process", Kind::Normal, "archon-agents-types"),
    edge("archon-http-access", Kind::Normal, "archon-agents-types"),
    edge("archon-views", Kind::Normal, "archon-agents-types"),
    edge("archon-memory-rank", Kind::Normal, "archon-agents-types"),
    edge("archon-testkit", Kind::Normal, "archon-agents-types"),
    edge("archon-providers", Kind::Normal, "archon-agents-types"),
    edge("archon-providers", Kind::Dev, "archon-testkit"),
    edge("archon-tools", Kind::Normal, "archon-agents-types"),
    edge("archon-tools", Kind::Normal, "archon-macros"),
    edge("archon-tools", Kind::Normal, "archon-process"),
    edge("archon-tools", Kind::Dev, "archon-testkit"),
    edge("archon-react-loop", Kind::Normal, "archon-agents-types"),
    edge("archon-react-loop", Kind::Normal, "archon-run"),
    edge("archon-react-loop", Kind::Normal, "archon-views"),
    edge("archon-react-loop", Kind::Dev, "archon-testkit"),
    edge("archon-planner", Kind::Normal, "archon-agents-types"),
    edge("archon-planner", Kind::Normal, "archon-run"),
    edge("archon-planner", Kind::Dev, "archon-testkit"),
    edge("archon-memory", Kind::Normal, "archon-agents-types"),
    edge("archon-memory", Kind::Normal, "archon-memory-rank"),
    edge("archon-memory", Kind::Normal, "archon-vectors"),
    edge("archon-memory", Kind::Dev, "archon-testkit"),
    edge("archon-bus", Kind::Normal, "archon-agents-types"),
    edge("archon-bus", Kind::Dev, "archon-testkit"),
    edge("archon-assistant", Kind::Normal, "archon-agents-types"),
    edge("archon-assistant", Kind::Normal, "archon-run"),
    edge("archon-assistant", Kind::Dev, "archon-testkit"),
    edge("archon-orchestrator", Kind::Normal, "archon-agents-types"),
    edge("archon-orchestrator", Kind::Normal, "archon-run"),
    edge("archon-orchestrator", Kind::Dev, "archon-testkit"),
    edge("archon-code", Kind::Normal, "archon-agents-types"),
    edge("archon-code", Kind::Dev, "archon-testkit"),
    edge("archon-mcp", Kind::Normal, "archon-agents-types"),
    edge("archon-mcp", Kind::Normal, "archon-process"),
    edge("archon-mcp", Kind::Dev, "archon-testkit"),
    edge("archon-mcp-serve", Kind::Normal, "archon-agents-types"),
    edge("archon-mcp-serve", Kind::Optional, "archon-http-access"),
    edge("archon-mcp-serve", Kind::Dev, "archon-testkit"),
    edge("archon-openapi", Kind::Normal, "archon-agents-types"),
    edge("archon-openapi", Kind::Dev, "archon-testkit"),
    edge("archon-server", Kind::Normal, "archon-agents-types"),
    edge("archon-server", Kind::Normal, "archon-http-access"),
    edge("archon-server", Kind::Normal, "archon-views"),
    edge("archon-server", Kind::Dev, "archon-testkit"),
    edge("archon-openai-serve", Kind::Normal, "archon-agents-types"),
    edge("archon-tool-search", Kind::Normal, "archon-agents-types"),
    edge("archon-tool-search", Kind::Dev, "archon-testkit"),
    edge("archon-hooks", Kind::Normal, "archon-agents-types"),
    edge("archon-hooks", Kind::Normal, "archon-process"),
    edge("archon-hooks", Kind::Dev, "archon-testkit"),
    edge("archon-triggers", Kind::Normal, "archon-agents-types"),
    edge("archon-triggers", Kind::Dev, "archon-testkit"),
    edge("archon-oauth", Kind::Normal, "archon-agents-types"),
    edge("archon-oauth", Kind::Dev, "archon-testkit"),
    edge("archon-notify", Kind::Normal, "archon-agents-types"),
    edge("archon-notify", Kind::Dev, "archon-testkit"),
    edge("archon-event-sources", Kind::Normal, "archon-agents-types"),
    edge("archon-event-sources", Kind::Normal, "archon-triggers"),
    edge("archon-event-sources", Kind::Dev, "archon-testkit"),
    edge("archon-answers", Kind::Normal, "archon-agents-types"),
    edge("archon-answers", Kind::Optional, "archon-http-access"),
    edge("archon-answers", Kind::Dev, "archon-testkit"),
    edge("archon-store", Kind::Normal, "archon-agents-types"),
    edge("archon-store", Kind::Optional, "archon-views"),
    edge("archon-store", Kind::Optional, "archon-vectors"),
    edge("archon-store", Kind::Dev, "archon-testkit"),
    edge("archon-redis", Kind::Normal, "archon-agents-types"),
    edge("archon-redis", Kind::Dev, "archon-testkit"),
    edge("archon-terminal", Kind::Normal, "archon-agents-types"),
    edge("archon-terminal", Kind::Dev, "archon-testkit"),
    edge("archon-skills", Kind::Normal, "archon-agents-types"),
    edge("archon-skills", Kind::Dev, "archon-testkit"),
    edge("archon-snapshots", Kind::Dev, "archon-testkit"),
    edge("archon-local-model", Kind::Normal, "archon-agents-types"),
    edge("archon-local-embedder", Kind::Normal, "archon-agents-types"),
    edge("archon-agents", Kind::Normal, "archon-agents-types"),
    edge("archon-agents", Kind::Normal, "archon-macros"),
    edge("archon-agents", Kind::Normal, "archon-providers"),
    edge("archon-agents", Kind::Normal, "archon-tools"),
    edge("archon-agents", Kind::Normal, "archon-react-loop"),
    edge("archon-agents", Kind::Normal, "archon-store"),
    edge("archon-agents", Kind::Normal, "archon-views"),
    edge("archon-agents", Kind::Optional, "archon-planner"),
    edge("archon-agents", Kind::Optional, "archon-memory"),
    edge("archon-agents", Kind::Optional, "archon-bus"),
    edge("archon-agents", Kind::Optional, "archon-assistant"),
    edge("archon-agents", Kind::Optional, "archon-orchestrator"),
    edge("archon-agents", Kind::Optional, "archon-code"),
    edge("archon-agents", Kind::Optional, "archon-mcp"),
    edge("archon-agents", Kind::Optional, "archon-mcp-serve"),
    edge("archon-agents", Kind::Optional, "archon-openapi"),
    edge("archon-agents", Kind::Optional, "archon-server"),
    edge("archon-agents", Kind::Optional, "archon-openai-serve"),
    edge("archon-agents", Kind::Optional, "archon-tool-search"),
    edge("archon-agents", Kind::Optional, "archon-hooks"),
    edge("archon-agents", Kind::Optional, "archon-skills"),
    edge("archon-agents", Kind::Optional, "archon-snapshots"),
    edge("archon-agents", Kind::Optional, "archon-triggers"),
    edge("archon-agents", Kind::Optional, "archon-notify"),
    edge("archon-agents", Kind::Optional, "archon-oauth"),
    edge("archon-agents", Kind::Optional, "archon-answers"),
    edge("archon-agents", Kind::Optional, "archon-event-sources"),
    edge("archon-agents", Kind::Dev, "archon-testkit"),
    edge("archon-agents-cli", Kind::Normal, "archon-agents"),
    edge("archon-agents-cli", Kind::Optional, "archon-local-embedder"),
    edge("archon-agents-cli", Kind::Optional, "archon-local-model"),
    edge("archon-agents-cli", Kind::Optional, "archon-terminal"),
    edge("archon-agents-cli", Kind::Dev, "archon-testkit"),
];

/// Dependencies that a crate may not have, directly or indirectly.
const FORBIDDEN: &[Forbidden] = &[
    Forbidden {
        of: "archon-agents-types",
        what: "reqwest",
        features: &[],
        why: "types hold data and traits, no HTTP",
    },
    Forbidden { of: "archon-agents-types", what: "rusqlite", features: &[], why: "types know no storage" },
    Forbidden {
        of: "archon-agents-types",
        what: "tokio",
        features: &["rt", "net", "fs", "process"],
        why: "types run nothing; a caller brings the runtime",
    },
    Forbidden {
        of: "archon-views",
        what: "tokio",
        features: &["rt", "net", "fs", "process"],
        why: "views are folds; a store brings the files",
    },
    Forbidden {
        of: "archon-run",
        what: "tokio",
        features: &["rt", "net", "fs", "process"],
        why: "the program that drives a run brings the runtime",
    },
    Forbidden {
        of: "archon-react-loop",
        what: "reqwest",
        features: &[],
        why: "the loop reaches a model by trait",
    },
    Forbidden {
        of: "archon-react-loop",
        what: "rusqlite",
        features: &[],
        why: "the loop reaches a journal by trait",
    },
    Forbidden {
        of: "archon-react-loop",
        what: "tokio",
        features: &["net", "fs", "process"],
        why: "effects are behind traits",
    },
    Forbidden {
        of: "archon-planner",
        what: "reqwest",
        features: &[],
        why: "a planner reaches a model by trait",
    },
    Forbidden {
        of: "archon-planner",
        what: "rusqlite",
        features: &[],
        why: "a plan reaches a journal by trait",
    },
    Forbidden {
        of: "archon-planner",
        what: "tokio",
        features: &["net", "fs", "process"],
        why: "effects are behind traits",
    },
    Forbidden {
        of: "archon-bus",
        what: "archon-run",
        features: &[],
        why: "a bus carries messages and knows no runs",
    },
    Forbidden {
        of: "archon-bus",
        what: "tokio",
        features: &["rt", "net", "fs", "process"],
        why: "the program that uses the bus brings the runtime",
    },
    Forbidden {
        of: "archon-assistant",
        what: "reqwest",
        features: &[],
        why: "an assistant reaches its agent by trait",
    },
    Forbidden {
        of: "archon-assistant",
        what: "rusqlite",
        features: &[],
        why: "the pool reaches a journal by trait",
    },
    Forbidden {
        of: "archon-assistant",
        what: "tokio",
        features: &["net", "fs", "process"],
        why: "effects are behind traits",
    },
    Forbidden {
        of: "archon-orchestrator",
        what: "reqwest",
        features: &[],
        why: "a team reaches a model through its members",
    },
    Forbidden {
        of: "archon-orchestrator",
        what: "rusqlite",
        features: &[],
        why: "a team reaches a journal by trait",
    },
    Forbidden {
        of: "archon-orchestrator",
        what: "tokio",
        features: &["net", "fs", "process"],
        why: "effects are behind traits",
    },
    Forbidden {
        of: "archon-hooks",
        what: "rusqlite",
        features: &[],
        why: "a closure answers which files are trusted",
    },
    Forbidden {
        of: "archon-triggers",
        what: "reqwest",
        features: &[],
        why: "the engine reaches runs, channels and stores by trait",
    },
    Forbidden { of: "archon-mcp", what: "rusqlite", features: &[], why: "pins and credentials are traits" },
    Forbidden {
        of: "archon-mcp-serve",
        what: "reqwest",
        features: &[],
        why: "a door reaches runs by trait, and nothing else",
    },
    Forbidden { of: "archon-openapi", what: "rusqlite", features: &[], why: "credentials are a trait" },
    Forbidden {
        of: "archon-server",
        what: "reqwest",
        features: &[],
        why: "the server reaches runs by trait, and nothing else",
    },
    Forbidden {
        of: "archon-openai-serve",
        what: "reqwest",
        features: &[],
        why: "the endpoints reach runs by trait, and fetch nothing for a client",
    },
    Forbidden {
        of: "archon-openai-serve",
        what: "rusqlite",
        features: &[],
        why: "the endpoints reach runs by trait",
    },
    Forbidden {
        of: "archon-server",
        what: "rusqlite",
        features: &[],
        why: "the server reaches runs and memories by trait",
    },
    Forbidden {
        of: "archon-terminal",
        what: "tokio",
        features: &["rt", "net", "fs", "process"],
        why: "a screen is a fold; who owns the terminal reads and writes",
    },
    Forbidden {
        of: "archon-terminal",
        what: "crossterm",
        features: &[],
        why: "a screen is a fold; who owns the terminal reads and writes",
    },
    Forbidden { of: "archon-terminal", what: "reqwest", features: &[], why: "a screen shows records" },
    Forbidden { of: "archon-terminal", what: "rusqlite", features: &[], why: "a screen shows records" },
    Forbidden {
        of: "archon-skills",
        what: "tokio",
        features: &["rt", "net", "fs", "process"],
        why: "skills are read from folders by whoever calls",
    },
    Forbidden { of: "archon-skills", what: "reqwest", features: &[], why: "no skill is fetched" },
    Forbidden { of: "archon-tools", what: "rusqlite", features: &[], why: "tools know no storage" },
    Forbidden { of: "archon-providers", what: "rusqlite", features: &[], why: "providers know no storage" },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: &'static str,
    kind: Kind,
    to: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Normal,
    /// Behind a feature of the depending crate.
    Optional,
    Dev,
}

/// A crate `what`, with any of `features` (or at all, if there are none), that must not be reachable from
/// `of`.
struct Forbidden {
    of: &'static str,
    what: &'static str,
    features: &'static [&'static str],
    why: &'static str,
}

const fn edge(from: &'static str, kind: Kind, to: &'static str) -> Edge {
    Edge { from, kind, to }
}

/// Returns the folder of a package. Its name tells it: `archon-agents` is in `crates/archon`, `archon-agents-types` in
/// `crates/types` and `archon-tools` in `crates/tools`.
pub(crate) fn folder(package: &str) -> String {
    let short = package.strip_prefix("archon-agents-").or_else(|| package.strip_prefix("archon-"));
    let short = short.filter(|short| *short != "agents").unwrap_or("archon");
    format!("crates/{short}")
}

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    let problems = check_workspace()?;
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    if !problems.is_empty() {
        bail!("{} breaches of the layers; the table is in xtask/src/layers.rs", problems.len());
    }
    println!("layers: {} edges", EDGES.len());
    Ok(())
}

fn check_workspace() -> Result<Vec<String>> {
    let mut problems = check_table(LAYERS, EDGES);
    problems.extend(check_edges(LAYERS, EDGES, &Metadata::load()?));
    for crate_name in FORBIDDEN.iter().map(|row| row.of).collect::<BTreeSet<_>>() {
        // One line for each crate behind it, with the features that this crate alone turns on.
        let line = format!("tree --package {crate_name} --edges normal --prefix none --format {{p}}|{{f}}");
        problems.extend(check_forbidden(FORBIDDEN, crate_name, &CommandLine::cargo(&line).output()?));
    }
    let files = repository::text_files()?;
    let page = files.iter().find(|file| file.path == DRAWING).map_or("", |file| &file.text);
    problems.extend(check_drawing(LAYERS, page));
    problems.extend(circles::check(&files, product().map(folder)));
    Ok(problems)
}

/// Checks that the drawing has each crate as a room on the floor of its layer, and no other rooms.
fn check_drawing(layers: &[(&str, u8)], page: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (floor, layer) in FLOORS.iter().zip(1..) {
        let of_layer = layers.iter().filter(|(_, of)| *of == layer);
        let expected: BTreeSet<String> =
            of_layer.map(|(name, _)| folder(name).trim_start_matches("crates/").to_owned()).collect();
        let drawn = rooms(page, floor);
        for missing in expected.difference(&drawn) {
            problems.push(format!("{DRAWING}: the drawing has no `{missing}` on the floor `{floor}`"));
        }
        for unknown in drawn.difference(&expected) {
            problems.push(format!("{DRAWING}: `{unknown}` is no crate of the floor `{floor}`, see LAYERS"));
        }
        if expected.len() > MOST_ROOMS {
            let count = expected.len();
            problems.push(format!("the floor `{floor}` has {count} crates; at most {MOST_ROOMS}"));
        }
    }
    problems
}

/// Returns the rooms on a floor of the page's drawing: its lines, up to the next floor or a blank line.
fn rooms(page: &str, floor: &str) -> BTreeSet<String> {
    let drawing = page.split("```text\n").find(|block| block.starts_with(" apps ")).unwrap_or_default();
    let label = format!(" {floor} ");
    let mut lines = drawing.lines().skip_while(|line| !line.starts_with(&label));
    let first = lines.next().and_then(|line| line.strip_prefix(&label)).unwrap_or_default();
    let more = lines.take_while(|line| line.starts_with("  "));
    std::iter::once(first).chain(more).flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// Checks the table itself: edges point down, and dev edges reach the testkit only.
fn check_table(layers: &[(&str, u8)], edges: &[Edge]) -> Vec<String> {
    let layer = |name: &str| layers.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer);
    let mut problems = Vec::new();
    for Edge { from, kind, to } in edges {
        match (layer(from), layer(to)) {
            (Some(above), Some(below)) if above > below => {}
            (Some(_), Some(_)) => problems.push(format!("table: {from} → {to} points sideways or up")),
            _ => problems.push(format!("table: {from} → {to} names a crate that has no layer")),
        }
        if *kind == Kind::Dev && *to != "archon-testkit" {
            problems.push(format!("table: {from} → {to} is a dev edge; those reach archon-testkit only"));
        }
    }
    for (name, _) in layers.iter().filter(|(_, layer)| *layer < FACADE) {
        let is_counted = |edge: &&Edge| edge.from == *name && edge.kind != Kind::Dev && edge.to != TYPES;
        let below = edges.iter().filter(is_counted).count();
        if below > MOST_BELOW {
            problems.push(format!(
                "table: {name} depends on {below} of our crates besides {TYPES}; at most {MOST_BELOW}"
            ));
        }
    }
    problems
}

/// Compares the workspace with the table, both ways.
fn check_edges(layers: &[(&str, u8)], edges: &[Edge], metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    let members: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for package in
        metadata.packages.iter().filter(|package| !["archon-tests", "archon-evals"].contains(&&*package.name))
    {
        let from = package.name.as_str();
        if !OUTSIDE.contains(&from) && !layers.iter().any(|(name, _)| *name == from) {
            problems.push(format!("{from} has no layer; give it one in LAYERS"));
        }
        for dependency in package.dependencies.iter().filter(|dependency| members.contains(&*dependency.name))
        {
            let (kind, to) = (kind_of(dependency), dependency.name.as_str());
            let row = edges.iter().find(|row| row.from == from && Some(row.kind) == kind && row.to == to);
            match row {
                Some(row) => _ = seen.insert(*row),
                None => {
                    problems.push(format!("{from} → {to} ({}) is not in the table", kind_name(dependency)))
                }
            }
        }
    }
    for stale in edges.iter().filter(|row| !seen.contains(row)) {
        problems
            .push(format!("stale row: {} → {} ({:?}) is no dependency", stale.from, stale.to, stale.kind));
    }
    for (stale, _) in layers.iter().filter(|(name, _)| !members.contains(name)) {
        problems.push(format!("stale row: {stale} has a layer but is no crate"));
    }
    problems
}

/// Checks the output of `cargo tree --format {p}|{f}` of a crate against its forbidden rows.
fn check_forbidden(rows: &[Forbidden], crate_name: &str, tree: &str) -> Vec<String> {
    let mut problems = BTreeSet::new();
    for (package, on) in tree.lines().filter_map(|line| line.split_once('|')) {
        let name = package.split_whitespace().next().unwrap_or_default();
        let on: Vec<&str> = on.trim_end_matches(" (*)").split(',').collect();
        for row in rows.iter().filter(|row| row.of == crate_name && row.what == name) {
            if row.features.is_empty() {
                problems.insert(format!("{crate_name} reaches {name}: {}", row.why));
            }
            for feature in row.features.iter().filter(|feature| on.contains(feature)) {
                problems.insert(format!("{crate_name} reaches {name} with feature `{feature}`: {}", row.why));
            }
        }
    }
    problems.into_iter().collect()
}

/// Returns the kind of a dependency; `None` for build dependencies, which are never allowed between our
/// crates.
fn kind_of(dependency: &Dependency) -> Option<Kind> {
    match dependency.kind.as_deref() {
        None if dependency.optional => Some(Kind::Optional),
        None => Some(Kind::Normal),
        Some("dev") => Some(Kind::Dev),
        Some(_) => None,
    }
}

fn kind_name(dependency: &Dependency) -> String {
    kind_of(dependency)
        .map_or_else(|| dependency.kind.clone().unwrap_or_default(), |kind| format!("{kind:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL_LAYERS: &[(&str, u8)] = &[("types", 1), ("tools", 2), ("store", 2)];

    fn workspace(edges: &[(&str, Kind, &str)]) -> Metadata {
        let dependency = |(_, kind, to): &(&str, Kind, &str)| {
            let kind_value =
                if *kind == Kind::Dev { serde_json::json!("dev") } else { serde_json::Value::Null };
            serde_json::json!({ "name": to, "kind": kind_value, "optional": *kind == Kind::Optional })
        };
        let package = |name: &&str| {
            let dependencies: Vec<_> =
                edges.iter().filter(|(from, ..)| from == name).map(dependency).collect();
            serde_json::json!({ "name": name, "version": "1.0.0", "manifest_path": "t/Cargo.toml", "dependencies": dependencies, "features": {} })
        };
        let packages: Vec<_> =
            ["types", "tools", "store", "archon-tests", "xtask"].iter().map(package).collect();
        Metadata::parse(&serde_json::json!({ "packages": packages, "target_directory": "t" }).to_string())
            .unwrap()
    }

    fn check(actual: &[(&str, Kind, &str)]) -> Vec<String> {
        check_edges(SMALL_LAYERS, &[edge("tools", Kind::Normal, "types")], &workspace(actual))
    }

    // spec: Q-01
    #[test]
    fn the_workspace_keeps_its_layers() {
        let problems = check_workspace().unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn an_edge_has_to_be_in_the_table_with_its_kind() {
        let allowed = ("tools", Kind::Normal, "types");
        assert_eq!(check(&[allowed]), [""; 0]);
        assert_eq!(
            check(&[allowed, ("tools", Kind::Normal, "store")]),
            ["tools → store (Normal) is not in the table"]
        );
        assert_eq!(
            check(&[("tools", Kind::Optional, "types")]),
            [
                "tools → types (Optional) is not in the table",
                "stale row: tools → types (Normal) is no dependency"
            ]
        );
    }

    #[test]
    fn a_row_without_its_edge_is_stale() {
        assert_eq!(check(&[]), ["stale row: tools → types (Normal) is no dependency"]);
    }

    #[test]
    fn the_tests_may_use_anything_and_this_program_nothing() {
        let allowed = ("tools", Kind::Normal, "types");
        assert_eq!(check(&[allowed, ("archon-tests", Kind::Dev, "tools")]), [""; 0]);
        assert_eq!(
            check(&[allowed, ("xtask", Kind::Normal, "types")]),
            ["xtask → types (Normal) is not in the table"]
        );
    }

    #[test]
    fn every_crate_has_a_layer_and_every_layer_a_crate() {
        let workspace = workspace(&[]);
        let problems = check_edges(&[("types", 1), ("tools", 2), ("gone", 3)], &[], &workspace);
        assert_eq!(
            problems,
            ["store has no layer; give it one in LAYERS", "stale row: gone has a layer but is no crate"]
        );
    }

    #[test]
    fn the_table_points_down_and_dev_edges_reach_the_testkit() {
        let problems = check_table(
            SMALL_LAYERS,
            &[edge("tools", Kind::Normal, "store"), edge("tools", Kind::Dev, "types")],
        );
        assert_eq!(
            problems,
            [
                "table: tools → store points sideways or up",
                "table: tools → types is a dev edge; those reach archon-testkit only"
            ]
        );
    }

    // spec: Q-01
    #[test]
    fn check_drawing_room_that_is_missing_or_on_another_floor_is_a_problem() {
        let page = "```text\n apps  cli\n pillars  tools\n    store\n base  types\n\n    cli\n```\n";
        let layers = |store: u8| {
            let others = [("archon-agents-types", 1), ("archon-tools", 4), ("archon-agents-cli", 7)];
            others.into_iter().chain([("archon-store", store)]).collect::<Vec<(&str, u8)>>()
        };
        assert_eq!(check_drawing(&layers(4), page), [""; 0]);
        assert_eq!(
            check_drawing(&layers(2), page),
            [
                "docs/architecture.md: the drawing has no `store` on the floor `shared`",
                "docs/architecture.md: `store` is no crate of the floor `pillars`, see LAYERS"
            ]
        );
    }

    // spec: Q-01
    #[test]
    fn check_drawing_floor_with_twenty_one_crates_is_a_problem() {
        let names: Vec<String> = (0..=MOST_ROOMS).map(|n| format!("archon-c{n:02}")).collect();
        let layers: Vec<(&str, u8)> = names.iter().map(|name| (name.as_str(), 7)).collect();
        let rooms: Vec<&str> = names.iter().map(|name| name.trim_start_matches("archon-")).collect();
        let page = |rooms: &[&str]| format!("```text\n apps   {}\n```\n", rooms.join("  "));
        assert_eq!(check_drawing(&layers[1..], &page(&rooms[1..])), [""; 0]);
        assert_eq!(check_drawing(&layers, &page(&rooms)), ["the floor `apps` has 21 crates; at most 20"]);
    }

    // spec: Q-01
    #[test]
    fn every_crate_warns_of_missing_docs() {
        let read = |path: &str| std::fs::read_to_string(crate::repository::root().join(path)).unwrap();
        assert!(read("Cargo.toml").contains("[workspace.lints.rust]\nmissing_docs = \"warn\"\n"));
        for name in product() {
            let manifest = read(&format!("{}/Cargo.toml", folder(name)));
            assert!(manifest.contains("[lints]\nworkspace = true\n"), "{name}");
        }
    }

    // spec: Q-01
    #[test]
    fn a_crate_below_the_facade_depends_on_two_others_besides_the_types() {
        let layers =
            &[(TYPES, 1), ("a", 1), ("b", 1), ("c", 1), ("two", 3), ("three", 3), ("facade", FACADE)];
        let to = |from, names: &[&'static str]| -> Vec<Edge> {
            names.iter().map(|name| edge(from, Kind::Optional, name)).collect()
        };
        let edges = [
            to("two", &[TYPES, "a", "b"]),
            to("three", &[TYPES, "a", "b", "c"]),
            to("facade", &[TYPES, "a", "b", "c"]),
        ];
        assert_eq!(
            check_table(layers, &edges.concat()),
            ["table: three depends on 3 of our crates besides archon-agents-types; at most 2"]
        );
    }

    #[test]
    fn forbidden_crate_is_found_at_any_depth() {
        let rows = [
            Forbidden { of: "types", what: "reqwest", features: &[], why: "no HTTP" },
            Forbidden { of: "types", what: "tokio", features: &["rt"], why: "no runtime" },
        ];
        let check = |tree| check_forbidden(&rows, "types", tree);
        assert_eq!(check("types v0.1.0 (path)|\ntokio v1.48.0|sync,time\n"), [""; 0]);
        assert_eq!(
            check("tokio v1.48.0|rt,sync\nreqwest v0.13.5|\nreqwest v0.13.5| (*)\n"),
            ["types reaches reqwest: no HTTP", "types reaches tokio with feature `rt`: no runtime"]
        );
    }
}
