//! Makes the tools of one document, and checks each: a valid schema, a legal and unique name. Prints the counts, the time
//! and, on Linux, the memory of the process at its peak.

#![allow(clippy::print_stdout, reason = "a program of its own")]

use std::{collections::BTreeSet, env, error::Error, fs, time::Instant};

use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
use archon_types::Tool;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: check_document FILE")?;
    let begun = Instant::now();
    let config = OpenApiConfig::default().with_base_url("https://api.example.com");
    let made = OpenApiTools::from_file(&path, config, OperationFilter::All)?;
    let took = begun.elapsed();
    // Before the checks below, which take memory of their own.
    let memory = peak_megabytes().map(|peak| format!(", {peak} MB")).unwrap_or_default();
    let mut names = BTreeSet::new();
    for tool in &made.tools {
        let spec = tool.spec();
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if spec.name.is_empty() || spec.name.len() > 64 || !spec.name.chars().all(is_legal) {
            return Err(format!("the name {} is not legal", spec.name).into());
        }
        if !jsonschema::draft202012::meta::is_valid(&spec.parameters) {
            return Err(format!("the schema of {} is not valid", spec.name).into());
        }
        if !names.insert(spec.name.clone()) {
            return Err(format!("two tools have the name {}", spec.name).into());
        }
    }
    made.warnings.iter().for_each(|warning| println!("{warning}"));
    let (tools, warnings) = (made.tools.len(), made.warnings.len());
    println!("{tools} tools, {warnings} warnings, {} ms{memory}", took.as_millis());
    Ok(())
}

/// Returns the largest memory that the process had so far.
fn peak_megabytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((kib << 10) / 1_000_000)
}
