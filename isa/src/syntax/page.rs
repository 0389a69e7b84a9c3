//! A description as a page to read: memories with their sizes, instructions with their slices and equations.

use super::printer::{Printer, attributes, names, size};
use crate::model::{Computation, Instr, Isa, Stmt};
use act_hlo::{Binary, OpKind, Shape};
use serde::Serialize;
use std::fmt;

/// What there is to know about an accelerator, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page {
    pub name: String,
    pub main_memory: MemoryLine,
    pub buffers: Vec<MemoryLine>,
    /// Control registers with their first values.
    pub registers: Vec<String>,
    pub units: Vec<String>,
    /// Queues and banks, as the description states them.
    pub timing: Vec<String>,
    pub instructions: Vec<InstrPage>,
}

/// One memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryLine {
    pub name: String,
    /// As the text form spells it; empty for main memory, which is bytes.
    pub shape: String,
    pub bytes: u64,
    pub notes: Vec<String>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstrPage {
    pub name: String,
    /// Computational attributes with their ranges.
    pub alpha: String,
    /// Addressing attributes with their ranges.
    pub beta: String,
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub requires: Vec<String>,
    pub updates: Vec<String>,
    pub equations: Vec<String>,
    pub cost: String,
    pub unit: Option<String>,
}

/// Characters up to which a value that is used once stands where it is used.
const INLINE: usize = 60;

impl Isa {
    /// The description as a page to read.
    pub fn page(&self) -> Page {
        let memory = |name: &str, shape: String, bytes: u64, notes: Vec<String>| MemoryLine {
            name: name.to_owned(),
            shape,
            bytes,
            notes,
        };
        let aligned = |a: u64| format!("aligned to {a} bytes");
        let mut main_notes: Vec<String> =
            (self.hbm.align > 1).then(|| aligned(self.hbm.align)).into_iter().collect();
        if self.hbm.ordered {
            main_notes.push("loads see earlier stores without a fence".to_owned());
        }
        let buffers = self.buffers.iter().map(|b| {
            let dims = |dims: &[u64]| dims.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            let shape = format!("{}[{} | {}]", b.elem, dims(&b.access), dims(&b.unit));
            let bytes = Shape::new(b.elem, [b.access.clone(), b.unit.clone()].concat()).bytes();
            let mut notes = Vec::new();
            if b.align.iter().any(|&a| a > 1) {
                notes.push(format!("starts are multiples of {}", dims(&b.align)));
            }
            if b.nospill {
                notes.push("never spilled".to_owned());
            }
            if b.init.is_some() {
                notes.push("holds initial values".to_owned());
            }
            memory(&b.name, shape, bytes, notes)
        });
        Page {
            name: self.name.clone(),
            main_memory: memory(&self.hbm.name, String::new(), self.hbm.size, main_notes),
            buffers: buffers.collect(),
            registers: self.registers.iter().map(|(name, value)| format!("{name} = {value}")).collect(),
            units: self.units.clone(),
            timing: {
                let mut text = String::new();
                super::timing::print(self, &mut text);
                text.lines().map(str::to_owned).collect()
            },
            instructions: self.instrs.iter().map(|instr| self.instr_page(instr)).collect(),
        }
    }

    fn instr_page(&self, instr: &Instr) -> InstrPage {
        let printer = Printer { isa: self, instr, variables: Vec::new() };
        let (alpha, beta, stated) = attributes(instr);
        let equations = match &instr.structured {
            Some(structured) => {
                let mut text = String::new();
                printer.structured(structured, &mut text);
                text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line).to_owned()).collect()
            }
            None => Equations::of(&printer, &instr.computation),
        };
        let register = |k: u16| self.registers.get(usize::from(k)).map_or("?", |(name, _)| name.as_str());
        InstrPage {
            name: instr.name.clone(),
            alpha,
            beta,
            reads: instr.inputs.iter().map(|s| printer.slice(s)).collect(),
            writes: instr.outputs.iter().map(|s| printer.slice(s)).collect(),
            requires: instr.requires.iter().skip(stated).map(|r| printer.cond(r, 0)).collect(),
            updates: instr
                .updates
                .iter()
                .map(|(k, value)| format!("{} = {}", register(*k), printer.expr(value)))
                .collect(),
            equations,
            cost: printer.expr(&instr.cost),
            unit: instr.unit.and_then(|u| self.units.get(usize::from(u)).cloned()),
        }
    }
}

/// A computation as equations: values used once stand inside what uses them, as far as a line stays readable.
struct Equations<'a> {
    printer: &'a Printer<'a>,
    computation: &'a Computation,
    /// How each value is written where it is used.
    terms: Vec<String>,
    /// Whether that is an infix operation, which needs parentheses inside another.
    loose: Vec<bool>,
    lines: Vec<String>,
}

impl Equations<'_> {
    fn of(printer: &Printer<'_>, computation: &Computation) -> Vec<String> {
        let names = names(&computation.stmts);
        let mut equations = Equations {
            printer,
            computation,
            terms: names.clone(),
            loose: vec![false; computation.stmts.len()],
            lines: Vec::new(),
        };
        for (k, stmt) in computation.stmts.iter().enumerate() {
            let term = equations.term(k);
            let uses = computation.stmts.iter().flat_map(|s| &s.operands).filter(|&&o| o == k).count();
            let root = computation.roots.contains(&k);
            let parameter = matches!(stmt.op, OpKind::Parameter(_));
            let short = matches!(stmt.op, OpKind::Constant(_)) || uses == 1;
            if !root && !parameter && short && term.chars().count() <= INLINE {
                equations.terms[k] = term;
                equations.loose[k] = infix_symbol(stmt).is_some();
                continue;
            }
            let dims: Vec<String> = stmt.dims.iter().map(|d| printer.expr(d)).collect();
            equations.lines.push(format!("{} : {}[{}] = {term}", names[k], stmt.elem, dims.join(", ")));
        }
        if computation.roots.len() > 1 {
            let roots: Vec<&str> = computation.roots.iter().map(|&r| names[r].as_str()).collect();
            equations.lines.push(format!("return {}", roots.join(", ")));
        }
        equations.lines
    }

    fn term(&self, k: usize) -> String {
        let stmt = &self.computation.stmts[k];
        let operand = |at: usize| stmt.operands.get(at).map_or("?", |&o| self.terms[o].as_str());
        let infix = |symbol: &str| {
            let side = |at: usize| {
                let text = operand(at);
                let loose = stmt.operands.get(at).is_some_and(|&o| self.loose[o]);
                if loose { format!("({text})") } else { text.to_owned() }
            };
            format!("{} {symbol} {}", side(0), side(1))
        };
        if let Some(symbol) = infix_symbol(stmt) {
            return infix(symbol);
        }
        match &stmt.op {
            OpKind::Parameter(k) => format!("input {k}"),
            OpKind::Constant(_) => {
                let mut text = String::new();
                self.printer.operation(stmt, &self.terms, &mut text);
                let inner = text.strip_prefix("constant(").and_then(|t| t.strip_suffix(')'));
                inner.map(str::to_owned).unwrap_or(text)
            }
            op => {
                let operands: Vec<&str> = (0..stmt.operands.len()).map(operand).collect();
                let mut options = String::new();
                self.printer.options(op, &mut options);
                // Attributes of an operator stand inside its parentheses, so that a term can stand in another.
                let options = options.strip_prefix(", ").map(|o| format!("; {o}")).unwrap_or_default();
                format!("{}({}{options})", op.name(), operands.join(", "))
            }
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.name)?;
        let memories = || [&self.main_memory].into_iter().chain(&self.buffers);
        let wide = |text: fn(&MemoryLine) -> &str| memories().map(|m| text(m).len()).max().unwrap_or(0);
        let (name, shape) = (wide(|m| &m.name), wide(|m| &m.shape));
        for memory in memories() {
            let line = format!("  {:name$}  {:shape$}  {:>8}", memory.name, memory.shape, kib(memory.bytes));
            let notes = if memory.notes.is_empty() { String::new() } else { "   ".to_owned() };
            writeln!(f, "{line}{notes}{}", memory.notes.join(", "))?;
        }
        for (what, list) in [("units", &self.units), ("registers", &self.registers)] {
            if !list.is_empty() {
                writeln!(f, "  {what}: {}", list.join(", "))?;
            }
        }
        self.timing.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        self.instructions.iter().try_for_each(|instr| write!(f, "\n{instr}"))
    }
}

impl fmt::Display for InstrPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        for (what, list) in [("alpha", &self.alpha), ("beta", &self.beta)] {
            if !list.is_empty() {
                write!(f, " {what}({list})")?;
            }
        }
        let unit = self.unit.as_ref().map(|u| format!(" on {u}")).unwrap_or_default();
        writeln!(f, "   cost {}{unit}", self.cost)?;
        let lists = [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("requires", &self.requires),
            ("sets", &self.updates),
        ];
        for (what, list) in lists {
            list.iter().try_for_each(|item| writeln!(f, "  {what:<8} {item}"))?;
        }
        self.equations.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

fn infix_symbol(stmt: &Stmt) -> Option<&'static str> {
    match stmt.op {
        OpKind::Binary(Binary::Add) => Some("+"),
        OpKind::Binary(Binary::Subtract) => Some("-"),
        OpKind::Binary(Binary::Multiply) => Some("*"),
        OpKind::Binary(Binary::Divide) => Some("/"),
        _ => None,
    }
}

/// `16 KiB`, `1 MiB`, `300 B`
fn kib(bytes: u64) -> String {
    let text = size(bytes);
    if text.ends_with('B') {
        text
    } else if bytes >= 1024 {
        format!("{:.1} KiB", bytes as f64 / 1024.0)
    } else {
        format!("{bytes} B")
    }
}

#[cfg(test)]
mod tests {
    use crate::{Isa, load_target, targets};

    #[test]
    fn softmax_reads_as_an_equation() {
        let page = load_target("h_qkv").unwrap().page().to_string();
        for line in [
            "d1  bf16[128 | 64]    16 KiB",
            "softmax alpha(n: 1..64) beta(addr)   cost n on activation",
            "  reads    d2[addr :+ n]",
            "    e : bf16[n, 64] = exponential(x)",
            "    d : bf16[n, 64] = broadcast(reduce(e, 0.0; dimensions={1}, to_apply=add); dimensions={0})",
            "    y : bf16[n, 64] = e / d",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    /// In every term each `;` follows the operands of the innermost call that is open there, and no call has two.
    #[test]
    fn attributes_close_with_their_own_call() {
        let calls_without =
            ["bitcast-convert", "reshape", "convert", "select", "minimum", "maximum", "fma", "clamp"];
        let mut seen = 0;
        for (name, _) in targets() {
            for instr in load_target(name).unwrap().page().instructions {
                for line in &instr.equations {
                    let mut open: Vec<&str> = Vec::new();
                    let mut word = 0;
                    for (at, c) in line.char_indices() {
                        match c {
                            '(' => open.push(&line[word..at]),
                            ')' => assert!(open.pop().is_some(), "{line}"),
                            ';' if !open.is_empty() => {
                                let call = open.last().copied().unwrap_or("");
                                assert!(!calls_without.contains(&call), "{name}: {line}");
                                seen += 1;
                            }
                            _ => {}
                        }
                        if !(c.is_ascii_alphanumeric() || c == '-' || c == '_') {
                            word = at + c.len_utf8();
                        }
                    }
                    assert!(open.is_empty(), "{name}: {line}");
                }
            }
        }
        assert!(seen > 100, "{seen}");
        let page = |block: &str| {
            let text = format!(
                "isa t\nhbm d0: 1 KiB\nbuffer v: f32[8 | ] init 0\ninstr f beta(a, b) {{\nin v[a :+ 4]\nin v[b :+ 4]\n\
                 out v[a :+ 4]\ncomputation {{\nx = f32[4] parameter(0)\ny = f32[4] parameter(1)\n{block}\n}}\n}}\n"
            );
            Isa::parse(&text, "t").unwrap().page().to_string()
        };
        let shown = page("c = pred[4] compare(x, y), direction=GT ROOT r = f32[4] select(c, x, y)");
        assert!(shown.contains("= select(compare(x, y; direction=GT), x, y)\n"), "{shown}");
        let shown = page(
            "s = f32[4] add(x, y) e = f32[4] exponential(y) t = f32[4] add(s, e) ROOT r = f32[4] subtract(x, t)",
        );
        assert!(shown.contains("= x - ((x + y) + exponential(y))\n"), "{shown}");
    }

    #[test]
    fn the_page_says_that_main_memory_is_ordered() {
        let note = "loads see earlier stores without a fence";
        assert!(load_target("x86").unwrap().page().to_string().contains(note));
        assert!(!load_target("gemmini").unwrap().page().to_string().contains(note));
    }

    #[test]
    fn every_target_has_a_page_with_all_its_instructions() {
        for (name, _) in targets() {
            let isa = load_target(name).unwrap();
            let page = isa.page();
            assert_eq!(page.instructions.len(), isa.instrs.len());
            let text = page.to_string();
            for (instr, shown) in isa.instrs.iter().zip(&page.instructions) {
                assert!(text.contains(&format!("\n{}", instr.name)), "{}", instr.name);
                assert_eq!(shown.writes.len(), instr.outputs.len());
                assert!(!shown.equations.is_empty() || instr.outputs.is_empty(), "{name} {}", instr.name);
            }
        }
    }
}
