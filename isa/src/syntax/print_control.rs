//! Semantics with control flow as text.

use super::printer::Printer;
use crate::control::{Step, Structured};
use std::fmt::Write;

impl Printer<'_> {
    /// The steps and the outputs, as they stand inside `computation { .. }`.
    pub(super) fn structured(&self, structured: &Structured, out: &mut String) {
        self.steps(&structured.steps, &structured.variables, 2, out);
        let name = |&root: &usize| structured.variables.get(root).map_or("?", String::as_str);
        let roots: Vec<&str> = structured.roots.iter().map(name).collect();
        if !roots.is_empty() {
            let _ = writeln!(out, "    return {}", roots.join(", "));
        }
    }

    fn steps(&self, steps: &[Step], names: &[String], depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        for step in steps {
            match step {
                Step::Assign { variable, stmt } => {
                    let name = names.get(*variable).map_or("?", String::as_str);
                    let dims: Vec<String> = stmt.dims.iter().map(|d| self.expr(d)).collect();
                    let _ = write!(out, "{indent}{name} = {}[{}] ", stmt.elem, dims.join(", "));
                    self.operation(stmt, names, out);
                    out.push('\n');
                }
                Step::If { cond, then, otherwise } => {
                    let _ = writeln!(out, "{indent}if {} {{", self.cond(cond, 0));
                    self.steps(then, names, depth + 1, out);
                    if !otherwise.is_empty() {
                        let _ = writeln!(out, "{indent}}} else {{");
                        self.steps(otherwise, names, depth + 1, out);
                    }
                    let _ = writeln!(out, "{indent}}}");
                }
                Step::Repeat { name, count, body } => {
                    let _ = writeln!(out, "{indent}repeat {name} in {} {{", self.expr(count));
                    let variables = [self.variables.as_slice(), &[name.as_str()]].concat();
                    let inner = Printer { isa: self.isa, instr: self.instr, variables };
                    inner.steps(body, names, depth + 1, out);
                    let _ = writeln!(out, "{indent}}}");
                }
            }
        }
    }
}
