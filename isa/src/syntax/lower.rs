//! The tree of a description to its model: names resolved, sizes evaluated. Goes on after a fault, item by item.

use super::ast::{
    AttrAst, AttrKindAst, BufferAst, DevicePart, InstrAst, Item, Name, SliceAst, SliceKindAst, Term,
};
use super::diagnostic::{Diagnostic, Problem, Span, nearest};
use super::lower_control::{Lowered, lower_computation};
use super::lower_encoding::{lower_encoding, lower_loop};
use super::lower_stmt::scalar_literal;
use super::parser::Parsed;
use super::scope::{RESERVED, Scope};
use crate::encoding::Operands;
use crate::expr::{Cond, Env, Expr};
use crate::model::{AttrDecl, AttrKind, Buffer, BufferId, BufferSlice, Hbm, HbmWindow, Instr, Isa, Slice};

/// Ids are 16 bits wide.
const MAX_ITEMS: usize = u16::MAX as usize;

/// Where the parts of one instruction stand.
pub(super) struct InstrSpans {
    pub name: Span,
    pub alpha: Vec<Span>,
    pub beta: Vec<Span>,
    pub inputs: Vec<Span>,
    pub outputs: Vec<Span>,
    pub requires: Vec<Span>,
    pub updates: Vec<Span>,
    pub cost: Span,
    pub asm: Span,
    pub stmts: Vec<Span>,
    /// Fields of every encoding, those of rs1 first.
    pub fields: Vec<Vec<Span>>,
}

/// What is wrong with one instruction.
pub(super) struct Faults(pub Vec<Diagnostic>);

impl Faults {
    /// The value, or `None` after noting why there is none.
    pub(super) fn keep<T>(&mut self, result: Parsed<T>) -> Option<T> {
        result.map_err(|fault| self.0.push(fault)).ok()
    }
}

/// A model, where its parts stand, and what was wrong.
pub(super) struct LoweredIsa {
    pub isa: Isa,
    /// Parallel to [`Isa::instrs`]; an instruction with a fault is left out of both.
    pub instrs: Vec<InstrSpans>,
    pub buffers: Vec<Span>,
    pub diagnostics: Vec<Diagnostic>,
}

pub(super) fn lower(items: &[Item]) -> LoweredIsa {
    let mut lowering =
        Lowering { scope: Scope::default(), faulty_buffers: Vec::new(), loops: false, out: empty() };
    lowering.declarations(items);
    for item in items {
        lowering.device(item);
        lowering.timing(item);
        if let Item::Instr(ast) = item
            && let Some((instr, spans)) = lowering.instr(ast)
        {
            lowering.out.isa.instrs.push(instr);
            lowering.out.instrs.push(spans);
        }
    }
    if lowering.out.isa.instrs.len() > MAX_ITEMS {
        let problem = Problem::TooMany { what: "instructions", limit: MAX_ITEMS };
        lowering.out.diagnostics.push(Diagnostic::error(Span::default(), problem));
    }
    lowering.out
}

fn empty() -> LoweredIsa {
    let hbm = Hbm { align: 1, ..Hbm::default() };
    LoweredIsa {
        isa: Isa { hbm, ..Isa::default() },
        instrs: Vec::new(),
        buffers: Vec::new(),
        diagnostics: Vec::new(),
    }
}

struct Lowering {
    /// Registers and constants; attributes are those of the instruction at hand.
    scope: Scope,
    /// Declared, but not understood: what uses one is not judged.
    faulty_buffers: Vec<String>,
    /// Whether a loop construct was declared.
    loops: bool,
    out: LoweredIsa,
}

impl Lowering {
    fn note<T>(&mut self, result: Parsed<T>) -> Option<T> {
        result.map_err(|diagnostic| self.out.diagnostics.push(diagnostic)).ok()
    }

    fn duplicate(&mut self, what: &'static str, name: &Name) {
        let problem = Problem::DuplicateName { what, name: name.text.clone() };
        self.out.diagnostics.push(Diagnostic::error(name.span, problem));
    }

    /// Everything but instructions, which may stand before what they use.
    fn declarations(&mut self, items: &[Item]) {
        let mut instr_names: Vec<&str> = Vec::new();
        for item in items {
            match item {
                Item::Isa(name) if !self.out.isa.name.is_empty() => self.duplicate("the name", name),
                Item::Isa(name) => self.out.isa.name = name.text.clone(),
                Item::Hbm { name, .. } if !self.out.isa.hbm.name.is_empty() => {
                    self.duplicate("main memory", name);
                }
                Item::Hbm { name, size, scale, align, ordered } => {
                    let hbm = self.hbm(name, size, *scale, align.as_ref());
                    match self.note(hbm) {
                        Some(hbm) => self.out.isa.hbm = Hbm { ordered: *ordered, ..hbm },
                        None => self.faulty_buffers.push(name.text.clone()),
                    }
                }
                Item::Buffer(ast) => {
                    if self.out.isa.buffers.iter().any(|b| b.name == ast.name.text) {
                        self.duplicate("buffer", &ast.name);
                    }
                    let buffer = self.buffer(ast);
                    match self.note(buffer) {
                        Some(buffer) => {
                            self.out.isa.buffers.push(buffer);
                            self.out.buffers.push(ast.name.span);
                        }
                        None => self.faulty_buffers.push(ast.name.text.clone()),
                    }
                }
                Item::Register(name, value) | Item::Const(name, value) => {
                    if self.scope.names().any(|n| n == name.text) {
                        self.duplicate("name", name);
                    }
                    let value = self.scope.value(value);
                    if let Some(value) = self.note(value) {
                        let list = if matches!(item, Item::Register(..)) {
                            &mut self.scope.registers
                        } else {
                            &mut self.scope.constants
                        };
                        list.push((name.text.clone(), value));
                    }
                }
                Item::Device(..) | Item::Loop(_) | Item::Timing(_) => {}
                Item::Units(names) => {
                    for name in names {
                        if self.out.isa.units.contains(&name.text) {
                            self.duplicate("unit", name);
                        }
                        self.out.isa.units.push(name.text.clone());
                    }
                }
                Item::Instr(ast) => {
                    if instr_names.contains(&ast.name.text.as_str()) {
                        self.duplicate("instruction", &ast.name);
                    }
                    instr_names.push(&ast.name.text);
                }
            }
        }
        self.out.isa.registers = self.scope.registers.clone();
        let missing = |what| {
            let problem = Problem::Missing { what, of: "the description".to_owned() };
            Diagnostic::error(Span::default(), problem)
        };
        if self.out.isa.name.is_empty() {
            self.out.diagnostics.push(missing("`isa NAME`"));
        }
        if !items.iter().any(|item| matches!(item, Item::Hbm { .. })) {
            self.out.diagnostics.push(missing("`hbm NAME: SIZE`"));
        }
        let hbm_name = self.out.isa.hbm.name.clone();
        if let Some(at) = self.out.isa.buffers.iter().position(|b| b.name == hbm_name) {
            let problem = Problem::DuplicateName { what: "buffer", name: hbm_name };
            self.out.diagnostics.push(Diagnostic::error(self.out.buffers[at], problem));
        }
        for (what, len) in [("buffers", self.out.isa.buffers.len()), ("units", self.out.isa.units.len())] {
            if len > MAX_ITEMS {
                let problem = Problem::TooMany { what, limit: MAX_ITEMS };
                self.out.diagnostics.push(Diagnostic::error(Span::default(), problem));
            }
        }
    }

    /// Items of the device side; they may use constants declared behind them.
    fn device(&mut self, item: &Item) {
        match item {
            Item::Device(part, ast, span) => {
                let lowered = lower_encoding(ast, &self.scope).and_then(|(encoding, _)| {
                    let nothing =
                        Operands { alpha: &[], beta: &[], registers: &self.out.isa.register_values() };
                    match encoding.evaluate(&Instr::default(), nothing) {
                        Ok(_) => Ok(encoding),
                        Err(error) => Err(Diagnostic::error(*span, Problem::Encoding(error.to_string()))),
                    }
                });
                if let Some(encoding) = self.note(lowered) {
                    let device = &mut self.out.isa.device;
                    match part {
                        DevicePart::Prologue => device.prologue.push(encoding),
                        DevicePart::Epilogue => device.epilogue.push(encoding),
                        DevicePart::Fence => device.fence.push(encoding),
                    }
                }
            }
            Item::Loop(ast) => {
                if std::mem::replace(&mut self.loops, true) {
                    self.duplicate("the loop construct", &ast.name);
                }
                let lowered = lower_loop(ast, &self.scope);
                if let Some(construct) = self.note(lowered) {
                    self.out.isa.device.loops = construct;
                }
            }
            _ => {}
        }
    }

    /// Queues and banks; they may stand before their units and buffers.
    fn timing(&mut self, item: &Item) {
        if let Item::Timing(ast) = item {
            let lowered = ast.lower(&mut self.out.isa, &self.scope, &self.faulty_buffers);
            self.note(lowered);
        }
    }

    fn positive(&self, what: &'static str, term: &Term) -> Parsed<u64> {
        let value = self.scope.value(term)?;
        u64::try_from(value)
            .ok()
            .filter(|&v| v > 0)
            .ok_or_else(|| Diagnostic::error(term.span, Problem::NotPositive(what)))
    }

    fn hbm(&self, name: &Name, size: &Term, scale: u64, align: Option<&Term>) -> Parsed<Hbm> {
        let too_big = || {
            let problem = Problem::TooMany { what: "bytes of main memory", limit: i64::MAX as usize };
            Diagnostic::error(size.span, problem)
        };
        let bytes = self.positive("the size", size)?.checked_mul(scale).ok_or_else(too_big)?;
        let bytes = i64::try_from(bytes).map_err(|_| too_big())?;
        let align = align.map_or(Ok(1), |a| self.positive("the alignment", a))?;
        Ok(Hbm { name: name.text.clone(), size: bytes as u64, align, ordered: false })
    }

    fn buffer(&self, ast: &BufferAst) -> Parsed<Buffer> {
        let sizes = |what: &'static str, terms: &[Term]| {
            terms.iter().map(|t| self.positive(what, t)).collect::<Parsed<Vec<u64>>>()
        };
        let (access, unit) = (sizes("a dimension", &ast.access)?, sizes("a dimension", &ast.unit)?);
        let bytes = act_hlo::Shape::new(ast.elem, [access.clone(), unit.clone()].concat()).bytes();
        // A buffer is simulated in host memory; 16 GiB on chip is a slip of the pen.
        if bytes > 1 << 34 {
            let problem = Problem::TooMany { what: "bytes in a buffer", limit: 1 << 34 };
            return Err(Diagnostic::error(ast.name.span, problem));
        }
        let align = match &ast.align {
            None => vec![1; access.len()],
            Some((terms, span)) if terms.len() != access.len() => {
                let what = "alignments".to_owned();
                let problem = Problem::Count { what, expected: access.len(), got: terms.len() };
                return Err(Diagnostic::error(*span, problem));
            }
            Some((terms, _)) => sizes("an alignment", terms)?,
        };
        let init = match &ast.init {
            None => None,
            Some((value, span)) => Some(scalar_literal(value, ast.elem, &self.scope, *span)?),
        };
        let name = ast.name.text.clone();
        Ok(Buffer { name, access, unit, elem: ast.elem, align, nospill: ast.nospill, init })
    }

    fn attr(&self, ast: &AttrAst, is_alpha: bool, scope: &Scope) -> Parsed<AttrDecl> {
        let kind = match &ast.kind {
            AttrKindAst::Plain => AttrKind::Int { min: 0, max: i64::MAX },
            AttrKindAst::F32 if !is_alpha => {
                let found = "f32".to_owned();
                let problem = Problem::Expected { expected: "an integer range".to_owned(), found };
                return Err(Diagnostic::error(ast.name.span, problem));
            }
            AttrKindAst::F32 => AttrKind::F32,
            AttrKindAst::Range(min_term, max_term) => {
                let min = self.scope.value(min_term)?;
                let max = max_term.as_ref().map_or(Ok(i64::MAX), |m| self.scope.value(m))?;
                if min > max {
                    return Err(Diagnostic::error(min_term.span, Problem::EmptyRange { min, max }));
                }
                AttrKind::Int { min, max }
            }
            AttrKindAst::Set(..) => {
                let values = self.set(ast)?;
                // Not empty: the parser's list may be, and `set` refuses that.
                let min = values.iter().copied().min().unwrap_or(0);
                AttrKind::Int { min, max: values.iter().copied().max().unwrap_or(min) }
            }
        };
        if RESERVED.contains(&ast.name.text.as_str()) {
            return Err(Diagnostic::error(ast.name.span, Problem::ReservedName(ast.name.text.clone())));
        }
        if scope.names().any(|n| n == ast.name.text) {
            let problem = Problem::DuplicateName { what: "name", name: ast.name.text.clone() };
            return Err(Diagnostic::error(ast.name.span, problem));
        }
        Ok(AttrDecl { name: ast.name.text.clone(), kind })
    }

    /// The values of an enumerated attribute; empty for other kinds.
    fn set(&self, ast: &AttrAst) -> Parsed<Vec<i64>> {
        let AttrKindAst::Set(terms, span) = &ast.kind else { return Ok(Vec::new()) };
        if terms.is_empty() {
            let problem = Problem::Expected { expected: "a value".to_owned(), found: "`{}`".to_owned() };
            return Err(Diagnostic::error(*span, problem));
        }
        terms.iter().map(|t| self.scope.value(t)).collect()
    }

    /// What the enumerated attributes of an instruction require; faulty ones are noted elsewhere.
    fn enumerated(&self, ast: &InstrAst) -> Vec<(Cond, Span)> {
        let alpha = ast.alpha.iter().enumerate().map(|(k, a)| (a, Expr::Alpha(k as u16)));
        let beta = ast.beta.iter().enumerate().map(|(k, a)| (a, Expr::Beta(k as u16)));
        let one = |(attr, e): (&AttrAst, Expr)| match &attr.kind {
            AttrKindAst::Set(_, span) => Some((Cond::In(e, self.set(attr).ok()?), *span)),
            _ => None,
        };
        alpha.chain(beta).filter_map(one).collect()
    }

    /// Every register is changed at most once.
    fn updates(&self, ast: &InstrAst, scope: &Scope, faults: &mut Faults) -> Vec<(u16, Expr)> {
        let mut updates: Vec<(u16, Expr)> = Vec::with_capacity(ast.updates.len());
        for (name, value) in &ast.updates {
            let Some(at) = scope.registers.iter().position(|(n, _)| *n == name.text) else {
                let nearest = nearest(&name.text, scope.registers.iter().map(|(n, _)| n.as_str()));
                let problem = Problem::UnknownName { what: "register", name: name.text.clone(), nearest };
                faults.0.push(Diagnostic::error(name.span, problem));
                continue;
            };
            if updates.iter().any(|(earlier, _)| usize::from(*earlier) == at) {
                let what = "update of the register";
                let of = format!("instruction `{}`", ast.name.text);
                faults.0.push(Diagnostic::error(name.span, Problem::Repeated { what, of }));
            }
            if let Some(value) = faults.keep(scope.expr(value)) {
                updates.push((at as u16, value));
            }
        }
        updates
    }

    /// The instruction, or `None` after noting all that is wrong with it.
    fn instr(&mut self, ast: &InstrAst) -> Option<(Instr, InstrSpans)> {
        let uses_faulty = |s: &SliceAst| self.faulty_buffers.contains(&s.memory.text);
        if ast.inputs.iter().chain(&ast.outputs).any(uses_faulty) {
            return None;
        }
        let mut faults = Faults(Vec::new());
        let mut scope = self.scope.clone();
        for (attr, is_alpha) in ast.alpha.iter().map(|a| (a, true)).chain(ast.beta.iter().map(|a| (a, false)))
        {
            let decl = self.attr(attr, is_alpha, &scope);
            // One with a fault is known all the same, so that its uses are no faults.
            let unknown =
                || AttrDecl { name: attr.name.text.clone(), kind: AttrKind::Int { min: 0, max: i64::MAX } };
            let decl = faults.keep(decl).unwrap_or_else(unknown);
            if is_alpha { &mut scope.alpha } else { &mut scope.beta }.push(decl);
        }
        let mut slices = |list: &[SliceAst]| -> Vec<Slice> {
            list.iter().filter_map(|s| faults.keep(self.slice(s, &scope))).collect()
        };
        let (inputs, outputs) = (slices(&ast.inputs), slices(&ast.outputs));
        let enumerated = self.enumerated(ast);
        let required = ast.requires.iter().filter_map(|r| faults.keep(scope.cond(r)));
        let requires = enumerated.iter().map(|(cond, _)| cond.clone()).chain(required).collect();
        let updates = self.updates(ast, &scope, &mut faults);
        let encodings = ast.encodings.iter().filter_map(|e| faults.keep(lower_encoding(e, &scope)));
        let (encodings, fields): (Vec<_>, Vec<_>) = encodings.unzip();
        let cost = ast.cost.as_ref().map_or(Ok(Expr::Int(1)), |c| scope.expr(c));
        let cost = faults.keep(cost);
        let unit = faults.keep(ast.unit.as_ref().map(|name| self.unit(name)).transpose());
        let missing = |what| {
            let of = format!("instruction `{}`", ast.name.text);
            Diagnostic::error(ast.name.span, Problem::Missing { what, of })
        };
        if ast.outputs.is_empty() && ast.updates.is_empty() {
            faults.0.push(missing("`out` slice and no `update`"));
        }
        let lowered = match &ast.computation {
            Some(computation) => {
                let lowered = lower_computation(computation, &scope, ast.inputs.len(), &mut faults);
                lowered.filter(|l| faults.keep(self.roots(ast, l, ast.outputs.len())).is_some())
            }
            None if ast.outputs.is_empty() => Some(Lowered::default()),
            None => {
                faults.0.push(missing("`computation`"));
                None
            }
        };
        if !faults.0.is_empty() {
            self.out.diagnostics.append(&mut faults.0);
            return None;
        }
        let Lowered { computation, structured, spans } = lowered?;
        let instr = Instr {
            name: ast.name.text.clone(),
            alpha: scope.alpha,
            beta: scope.beta,
            inputs,
            outputs,
            requires,
            updates,
            cost: cost?,
            unit: unit?,
            asm: ast.asm.as_ref().map(|(text, _)| text.clone()).unwrap_or_default(),
            computation,
            structured,
            encodings,
        };
        let names = |list: &[AttrAst]| list.iter().map(|a| a.name.span).collect();
        let spans = InstrSpans {
            name: ast.name.span,
            alpha: names(&ast.alpha),
            beta: names(&ast.beta),
            inputs: ast.inputs.iter().map(|s| s.span).collect(),
            outputs: ast.outputs.iter().map(|s| s.span).collect(),
            requires: enumerated.iter().map(|r| r.1).chain(ast.requires.iter().map(|r| r.span)).collect(),
            updates: ast.updates.iter().map(|(name, value)| name.span.to(value.span)).collect(),
            cost: ast.cost.as_ref().map_or(ast.name.span, |c| c.span),
            asm: ast.asm.as_ref().map_or(ast.name.span, |(_, span)| *span),
            stmts: spans,
            fields,
        };
        Some((instr, spans))
    }

    fn roots(&self, ast: &InstrAst, lowered: &Lowered, outputs: usize) -> Parsed<()> {
        let flat = &lowered.computation.roots;
        let got = lowered.structured.as_ref().map_or(flat, |s| &s.roots).len();
        if got == outputs {
            return Ok(());
        }
        let span = ast.computation.as_ref().map_or(ast.name.span, |c| c.span);
        let what = "roots of the computation (one per `out` slice; mark them ROOT)".to_owned();
        Err(Diagnostic::error(span, Problem::Count { what, expected: outputs, got }))
    }

    fn unit(&self, name: &Name) -> Parsed<u16> {
        let units = &self.out.isa.units;
        units.iter().position(|u| *u == name.text).map(|at| at as u16).ok_or_else(|| {
            let nearest = nearest(&name.text, units.iter().map(String::as_str));
            Diagnostic::error(
                name.span,
                Problem::UnknownName { what: "unit", name: name.text.clone(), nearest },
            )
        })
    }

    fn slice(&self, ast: &SliceAst, scope: &Scope) -> Parsed<Slice> {
        let isa = &self.out.isa;
        let expected = |expected: &str, found: &str| {
            let problem = Problem::Expected { expected: expected.to_owned(), found: found.to_owned() };
            Err(Diagnostic::error(ast.span, problem))
        };
        if ast.memory.text == isa.hbm.name {
            let (start, dims) = match &ast.kind {
                SliceKindAst::Box(dims) => match dims.as_slice() {
                    [(start, len)] => (scope.expr(start)?, vec![(scope.expr(len)?, Expr::Int(1))]),
                    _ => return expected("`[start :+ bytes]` or `[start; rows by stride, bytes]`", "a box"),
                },
                SliceKindAst::Window(start, dims) => {
                    let mut window = Vec::with_capacity(dims.len());
                    for (k, (len, stride)) in dims.iter().enumerate() {
                        let stride = match stride {
                            Some(stride) => scope.expr(stride)?,
                            None if k + 1 == dims.len() => Expr::Int(1),
                            None => return expected("`by` and a stride in bytes", "a bare length"),
                        };
                        window.push((scope.expr(len)?, stride));
                    }
                    (scope.expr(start)?, window)
                }
            };
            if betas(&start).len() != 1 {
                return Err(Diagnostic::error(ast.span, Problem::WindowStart));
            }
            if dims.is_empty()
                || dims.iter().any(|(len, stride)| len.mentions_beta() || stride.mentions_beta())
            {
                return expected("lengths and strides over computational attributes", "something else");
            }
            return Ok(Slice::Hbm(HbmWindow { start, dims }));
        }
        let Some(at) = isa.buffers.iter().position(|b| b.name == ast.memory.text) else {
            let known = isa.buffers.iter().map(|b| b.name.as_str()).chain([isa.hbm.name.as_str()]);
            let known = known.filter(|name| !name.is_empty());
            let nearest = nearest(&ast.memory.text, known);
            let problem = Problem::UnknownName { what: "buffer", name: ast.memory.text.clone(), nearest };
            return Err(Diagnostic::error(ast.memory.span, problem));
        };
        let SliceKindAst::Box(dims) = &ast.kind else {
            return expected("`[start :+ length, ..]` of an on-chip buffer", "a strided window");
        };
        let access = isa.buffers[at].access.len();
        if dims.len() != access {
            let what = format!("access dimensions of `{}`", ast.memory.text);
            return Err(Diagnostic::error(
                ast.span,
                Problem::Count { what, expected: access, got: dims.len() },
            ));
        }
        let start = dims.iter().map(|(s, _)| scope.expr(s)).collect::<Parsed<Vec<Expr>>>()?;
        let len = dims.iter().map(|(_, l)| scope.expr(l)).collect::<Parsed<Vec<Expr>>>()?;
        if len.iter().any(Expr::mentions_beta) {
            return expected("lengths over computational attributes", "an addressing attribute");
        }
        for (start, size) in start.iter().zip(&isa.buffers[at].access) {
            if let Ok(value) = start.eval(Env::default())
                && (value < 0 || value as u64 >= *size)
            {
                return expected(&format!("a start in 0..{}", size - 1), &value.to_string());
            }
        }
        Ok(Slice::OnChip(BufferSlice { buffer: BufferId(at as u16), start, len }))
    }
}

/// Addressing attributes in an expression, each once.
pub(super) fn betas(e: &Expr) -> std::collections::BTreeSet<u16> {
    let mut found = std::collections::BTreeSet::new();
    e.for_each_leaf(&mut |leaf| {
        if let Expr::Beta(k) = leaf {
            found.insert(*k);
        }
    });
    found
}
