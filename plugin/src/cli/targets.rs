//! `act targets`: the descriptions that come with act.

use super::outcome::{CliError, Report};
use act_isa::targets::{load_target, targets as embedded};
use serde_json::json;
use std::fmt::Write as _;

/// Lists every embedded description.
///
/// # Errors
/// An embedded description does not load, which the tests exclude.
pub(super) fn targets() -> Result<Report, CliError> {
    let mut text = String::new();
    let mut list = Vec::new();
    for (name, _) in embedded() {
        let isa = load_target(name).map_err(crate::compiler::CompilerError::from)?;
        let buffers: Vec<String> = isa
            .buffers
            .iter()
            .map(|b| {
                let dims = |dims: &[u64]| dims.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
                format!("{}: {}[{} | {}]", b.name, b.elem, dims(&b.access), dims(&b.unit))
            })
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<12} {:>3} instructions   {}", isa.instrs.len(), buffers.join(", "));
        let instructions: Vec<&str> = isa.instrs.iter().map(|i| i.name.as_str()).collect();
        list.push(json!({ "name": name, "instructions": instructions, "buffers": buffers }));
    }
    Ok(Report { text, json: json!({ "targets": list }), success: true })
}
