//! Checking one offloaded region from outside: the stitched text, with its loops, addresses and assembly, against the
//! region's graph before tiling. The text is executed instruction by instruction, every loop counted out, on terms over the
//! region's inputs; the result's terms must be those of the graph. Takes no hint from the compiler.

mod algebra;
mod budget;
mod counterexample;
mod field;
mod laws;
mod machine;
mod memory;
#[cfg(test)]
mod soundness;
mod stitched;
mod tensor;
mod term;
mod translate;

pub use counterexample::Difference;
pub use laws::Law;
pub use machine::Trouble;
pub use stitched::{StitchedTextError, parse as parse_stitched};
pub use translate::{TranslateError, hex_of_region};

use crate::solver::Solver;
use act_hlo::{Binary, ElemType, Graph, Node, Op, print_graph};
use act_isa::{Isa, LoopProgram, Space, View};
use algebra::{Algebra, Level};
use budget::{Budget, Spent};
use counterexample::{Shown, element_offsets, index_of, search};
use laws::Laws;
use machine::{Stop, TermMachine, Watch, WatchedResult};
use memory::Moment;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tensor::{TermError, TermGraph};
use term::Term;

/// What floats may be computed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permitted {
    Exact,
    Xla,
    Fast,
}

/// What a region must compute, and where its tensors lie.
#[derive(Clone, Copy, Debug)]
pub struct RegionSpec<'a> {
    pub graph: &'a Graph,
    /// Of every parameter, in the operands' segments.
    pub operands: &'a [View],
    /// Of every root, in the results' segments.
    pub results: &'a [View],
    pub numerics: Permitted,
}

/// What to check with.
#[derive(Clone, Copy)]
pub struct RegionOptions<'a> {
    /// Proves the laws that a verdict rests on. Without one nothing is proved.
    pub solver: Option<&'a Solver>,
    /// For one law.
    pub limit: Duration,
    /// Products, elements and loop steps after which checking ends.
    pub steps: u64,
    /// Wall time after which it ends; the search for a counterexample counts.
    pub time: Option<Duration>,
    /// Ends it as soon as it is set.
    pub stopped: Option<&'a AtomicBool>,
}

impl Default for RegionOptions<'_> {
    fn default() -> Self {
        let limit = Duration::from_secs(10);
        RegionOptions { solver: None, limit, steps: 1 << 33, time: None, stopped: None }
    }
}

/// What is to be said of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionVerdict {
    /// Equal bit for bit, NaN payloads aside.
    Proved,
    /// Equal up to the float algebra that the numerics policy permits.
    ProvedUpToReassociation,
    Refuted(Refutation),
    Unknown {
        reason: String,
    },
}

/// Why stitched code is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// It computes something else.
    Difference(Box<Difference>),
    /// It is wrong whatever the data.
    Trouble(Box<Trouble>),
    /// The oracle's words for it.
    Fault(String),
    /// A result element that nothing writes.
    Unwritten { result: usize, index: Vec<u64> },
}

/// A verdict with what it rests on.
#[derive(Clone, Debug)]
pub struct RegionReport {
    pub verdict: RegionVerdict,
    pub numerics: Permitted,
    /// Laws that a proof used, in order.
    pub laws: Vec<Law>,
    /// Instructions and host copies executed on terms.
    pub instructions: u32,
    /// Result elements compared.
    pub elements: u64,
}

/// What to do where Z3 is missing.
pub const NO_SOLVER: &str =
    "Z3 is missing, which proves the laws that a verdict rests on: `pip install act-pjrt[verify]`";

impl RegionSpec<'_> {
    /// Element types of the operands' segments.
    fn operand_elems(&self, segments: usize) -> Result<Vec<ElemType>, String> {
        let mut elems = vec![None; segments];
        for view in self.operands {
            let Space::Operand(k) = view.space else { return Err("an operand outside the operands".into()) };
            let slot = elems.get_mut(usize::from(k)).ok_or("an operand that the program does not have")?;
            if slot.is_some_and(|elem| elem != view.elem) {
                return Err("two operands of different types in one segment".into());
            }
            let width = view.elem.bytes() as i64;
            let aligned = view.start.ivs.is_empty()
                && std::iter::once(view.start.c0)
                    .chain(view.dims.iter().map(|d| d.1))
                    .all(|n| n % width == 0);
            if !aligned || view.elem.bits() == 4 || view.elem.is_complex() {
                return Err(format!("an operand of type {} that has no elements of its own", view.elem));
            }
            *slot = Some(view.elem);
        }
        Ok(elems.into_iter().map(|elem| elem.unwrap_or(ElemType::U8)).collect())
    }

    /// What the program says of a segment's size, where it is not what the tensors there take up.
    fn other_sizes(&self, program: &LoopProgram) -> Option<String> {
        let mut needed = vec![0u64; program.operands.len() + program.results.len()];
        for view in self.operands.iter().chain(self.results) {
            let at = match view.space {
                Space::Operand(k) => usize::from(k),
                Space::Result(k) => program.operands.len() + usize::from(k),
                Space::Scratch | Space::Consts => {
                    return Some("a tensor outside operands and results".into());
                }
            };
            let last = |sum: i64, &(len, stride): &(u64, i64)| sum + stride * (len as i64 - 1);
            let empty = view.dims.iter().any(|d| d.0 == 0);
            let end = view.dims.iter().fold(view.start.c0, last) + view.elem.bytes() as i64;
            let Some(slot) = needed.get_mut(at) else { return Some(format!("no segment {}", view.space)) };
            *slot = (*slot).max(if empty { 0 } else { u64::try_from(end).unwrap_or(0) });
        }
        let said = program.operands.iter().chain(&program.results);
        let other = said.zip(&needed).position(|(said, needed)| said != needed)?;
        let space = match other.checked_sub(program.operands.len()) {
            None => Space::Operand(other as u16),
            Some(k) => Space::Result(k as u16),
        };
        Some(format!("{space} takes {} bytes, and the text says otherwise", needed[other]))
    }

    /// Whether floats are summed.
    fn sums_floats(&self) -> bool {
        let sums = |node: &Node| {
            node.shape.elem.is_float()
                && match node.op {
                    Op::Dot(_) => true,
                    Op::Reduce { combiner, .. } => combiner == Binary::Add,
                    _ => false,
                }
        };
        self.graph.nodes().iter().any(sums)
    }

    /// Where a root comes from in the user's program.
    fn source_of(&self, root: usize) -> Option<String> {
        let mut id = *self.graph.roots().get(root)?;
        loop {
            let node = self.graph.node(id);
            if let Some(source) = &node.source {
                let place = if source.file.is_empty() {
                    String::new()
                } else {
                    format!(" ({}:{})", source.file, source.line)
                };
                return Some(format!("{}{place}", source.op_name));
            }
            id = *node.operands.first()?;
        }
    }
}

/// Judges stitched text.
#[must_use]
pub fn verify_region(
    isa: &Isa,
    spec: &RegionSpec<'_>,
    text: &str,
    options: &RegionOptions<'_>,
) -> RegionReport {
    let mut report = RegionReport {
        verdict: RegionVerdict::Unknown { reason: String::new() },
        numerics: spec.numerics,
        laws: Vec::new(),
        instructions: 0,
        elements: 0,
    };
    report.verdict = match stitched::parse(isa, text) {
        Ok(program) => judge(isa, spec, &program, options, seed(spec, text), &mut report),
        Err(error) => {
            RegionVerdict::Unknown { reason: format!("the stitched text is not understood: {error}") }
        }
    };
    report
}

fn unknown(reason: impl Into<String>) -> RegionVerdict {
    RegionVerdict::Unknown { reason: reason.into() }
}

/// The point at which polynomials are compared: drawn anew for every text.
fn seed(spec: &RegionSpec<'_>, text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (text, print_graph(spec.graph)).hash(&mut hasher);
    hasher.finish()
}

fn judge(
    isa: &Isa,
    spec: &RegionSpec<'_>,
    program: &LoopProgram,
    options: &RegionOptions<'_>,
    seed: u64,
    report: &mut RegionReport,
) -> RegionVerdict {
    if spec.results.len() != spec.graph.roots().len() || spec.operands.len() != spec.graph.params().len() {
        return unknown("the region's tensors and their places do not match");
    }
    if let Some(fault) = spec.other_sizes(program) {
        return RegionVerdict::Refuted(Refutation::Fault(fault));
    }
    let permitted: &[Level] = match spec.numerics {
        Permitted::Exact => &[Level::Exact],
        Permitted::Xla => &[Level::Exact, Level::Reassociated, Level::Relaxed],
        Permitted::Fast => &[Level::Exact, Level::Reassociated, Level::Relaxed, Level::Real],
    };
    // Sums of floats are taken in another order more often than not, and whether they were shows early in a second run.
    let upgraded = permitted.len() > 1 && spec.sums_floats();
    let budget = Budget::new(options.steps, options.time, options.stopped);
    let mut reason = String::new();
    for &level in &permitted[usize::from(upgraded)..] {
        match compare(isa, spec, program, &budget, (level, seed), None, report) {
            Outcome::Equal(laws, last) => {
                let exact = Level::Exact;
                if upgraded
                    && let Outcome::Equal(laws, _) =
                        compare(isa, spec, program, &budget, (exact, seed), Some(last), report)
                {
                    return prove(laws, exact, options, report);
                }
                return prove(laws, level, options, report);
            }
            Outcome::Unequal { result, index, floats } => {
                reason = format!("result {result} at {index:?} is another term than the kernel's");
                if !floats {
                    break;
                }
            }
            Outcome::Differs => break,
            Outcome::Refuted(refutation) => return confirmed(isa, spec, program, &budget, refutation),
            // What terms take too long for takes numbers too long as well.
            Outcome::Spent(spent) => return unknown(spent.to_string()),
            Outcome::None(why) => {
                reason = why;
                break;
            }
        }
    }
    match search(isa, spec, program, &budget) {
        Shown::Difference(difference) => RegionVerdict::Refuted(Refutation::Difference(difference)),
        Shown::Fault(fault) => RegionVerdict::Refuted(Refutation::Fault(fault)),
        Shown::Nothing => unknown(reason),
        Shown::Spent(spent) => unknown(format!("{spent}; {reason}")),
    }
}

/// A fault counts only if the oracle meets it too, unless it lies in what execution in order cannot show.
fn confirmed(
    isa: &Isa,
    spec: &RegionSpec<'_>,
    program: &LoopProgram,
    budget: &Budget<'_>,
    refutation: Refutation,
) -> RegionVerdict {
    let sequential = match &refutation {
        Refutation::Trouble(trouble) => trouble.sequential,
        _ => false,
    };
    if !sequential {
        return RegionVerdict::Refuted(refutation);
    }
    match search(isa, spec, program, budget) {
        Shown::Spent(spent) => unknown(spent.to_string()),
        Shown::Fault(_) => RegionVerdict::Refuted(refutation),
        Shown::Difference(difference) => RegionVerdict::Refuted(Refutation::Difference(difference)),
        Shown::Nothing => match refutation {
            Refutation::Trouble(trouble) => unknown(format!("{trouble}; but the oracle runs it")),
            _ => unknown("a fault that the oracle does not meet"),
        },
    }
}

fn prove(laws: Laws, level: Level, options: &RegionOptions<'_>, report: &mut RegionReport) -> RegionVerdict {
    report.laws = laws.iter().collect();
    let Some(solver) = options.solver else { return unknown(NO_SOLVER) };
    for law in &report.laws {
        if let Err(reason) = law.prove(solver, options.limit) {
            return unknown(format!("the law that {law} is not proved: {reason}"));
        }
    }
    if level == Level::Exact { RegionVerdict::Proved } else { RegionVerdict::ProvedUpToReassociation }
}

enum Outcome {
    /// By these laws; who wrote each byte of the results last.
    Equal(Laws, Vec<Vec<Moment>>),
    /// The last value of some element is another.
    Differs,
    Unequal {
        result: usize,
        index: Vec<u64>,
        floats: bool,
    },
    Refuted(Refutation),
    Spent(Spent),
    None(String),
}

/// Executes both on terms, and compares element by element. With the writers of a run before, it ends at the first element
/// that comes out otherwise.
fn compare(
    isa: &Isa,
    spec: &RegionSpec<'_>,
    program: &LoopProgram,
    budget: &Budget<'_>,
    (level, seed): (Level, u64),
    last: Option<Vec<Vec<Moment>>>,
    report: &mut RegionReport,
) -> Outcome {
    if let Err(spent) = budget.look() {
        return Outcome::Spent(spent);
    }
    let mut algebra = Algebra::new(level, seed);
    let reference = match TermGraph::new(spec.graph.clone()) {
        Ok(graph) => graph,
        Err(error) => return Outcome::None(error.to_string()),
    };
    let leaf = |view: &View| -> Option<Vec<Term>> {
        let Space::Operand(k) = view.space else { return None };
        let width = view.elem.bytes() as i64;
        let element = |at: i64| u64::try_from(at / width).ok();
        let declared = |at: i64| {
            let leaf = algebra.leaf(u64::from(k), element(at)?);
            Some(algebra.declare(view.elem, leaf))
        };
        element_offsets(view).into_iter().map(declared).collect()
    };
    let Some(inputs) = spec.operands.iter().map(leaf).collect::<Option<Vec<_>>>() else {
        return Outcome::None("an operand whose place is not understood".into());
    };
    // A kernel that needs more is not begun.
    if let Err(spent) = budget.clone().take(reference.multiplications) {
        return Outcome::Spent(spent);
    }
    let expected = match reference.eval(&mut algebra, &mut budget.clone(), inputs) {
        Ok(expected) => expected,
        Err(TermError::Spent(spent)) => return Outcome::Spent(spent),
        Err(error) => return Outcome::None(error.to_string()),
    };
    algebra.turn_to_program();
    let watch = last.map(|last| watch(spec, &expected, last));
    let mut machine = match TermMachine::new(isa, spec, program, &mut algebra, budget.clone()) {
        Ok(machine) => machine.watched(watch.as_ref()),
        Err(stop) => return Outcome::None(stop.to_string()),
    };
    match machine.run() {
        Ok(instructions) => report.instructions = instructions,
        Err(Stop::Differs) => return Outcome::Differs,
        Err(Stop::Spent(spent)) => return Outcome::Spent(spent),
        Err(Stop::Fault(trouble)) => return Outcome::Refuted(Refutation::Trouble(trouble)),
        Err(stop) => return Outcome::None(stop.to_string()),
    }
    report.elements = 0;
    let mut bytes = Vec::new();
    let mut unequal = None;
    for (result, (view, want)) in spec.results.iter().zip(&expected).enumerate() {
        let segment = match view.space {
            Space::Result(k) if usize::from(k) < program.results.len() => usize::from(k),
            _ => return Outcome::None("a result whose place is not understood".into()),
        };
        let shape = spec.graph.shape(spec.graph.roots()[result]);
        let mut covered = vec![false; machine.result(segment).len()];
        for (k, (at, want)) in element_offsets(view).into_iter().zip(want.iter()).enumerate() {
            let range = usize::try_from(at).ok().map(|at| at..at + view.elem.bytes() as usize);
            let Some(range) = range.filter(|range| range.end <= covered.len()) else {
                return Outcome::None("a result that its segment does not hold".into());
            };
            covered[range.clone()].fill(true);
            bytes.clear();
            bytes.extend_from_slice(&machine.result(segment).terms[range]);
            let got = machine.value(view.elem, &bytes);
            if got == Term::POISON {
                let index = index_of(shape, k as u64);
                return Outcome::Refuted(Refutation::Unwritten { result, index });
            }
            if got != *want && unequal.is_none() {
                unequal = Some((result, index_of(shape, k as u64)));
            }
            report.elements += 1;
        }
        let memory = machine.result(segment);
        if (0..memory.len()).any(|at| !covered[at] && memory.writer(at) > 0) {
            return Outcome::None(format!("result {result} has bytes that the code must not write"));
        }
    }
    match unequal {
        None => {
            let writers = (0..program.results.len()).map(|k| machine.result(k).writers().to_vec()).collect();
            Outcome::Equal(algebra.laws, writers)
        }
        Some((result, index)) => Outcome::Unequal { result, index, floats: algebra.floats },
    }
}

/// What the results have to be, for a run that ends as soon as they are not.
fn watch(spec: &RegionSpec<'_>, expected: &[Rc<Vec<Term>>], last: Vec<Vec<Moment>>) -> Watch {
    let nothing = |last: Vec<Moment>| WatchedResult {
        elem: ElemType::U8,
        expected: vec![Term::POISON; last.len()],
        last,
    };
    let mut results: Vec<WatchedResult> = last.into_iter().map(nothing).collect();
    for (view, terms) in spec.results.iter().zip(expected) {
        let Space::Result(k) = view.space else { continue };
        let Some(result) = results.get_mut(usize::from(k)) else { continue };
        result.elem = view.elem;
        for (at, &term) in element_offsets(view).into_iter().zip(terms.iter()) {
            if let Some(slot) = usize::try_from(at).ok().and_then(|at| result.expected.get_mut(at)) {
                *slot = term;
            }
        }
    }
    Watch { results }
}

impl fmt::Display for Permitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Permitted::Exact => "exact",
            Permitted::Xla => "xla",
            Permitted::Fast => "fast",
        })
    }
}

impl RegionVerdict {
    /// The verdict in a word or few.
    pub fn name(&self) -> &'static str {
        match self {
            RegionVerdict::Proved => "proved",
            RegionVerdict::ProvedUpToReassociation => "proved up to re-association",
            RegionVerdict::Refuted(_) => "refuted",
            RegionVerdict::Unknown { .. } => "unknown",
        }
    }

    pub fn is_proved(&self) -> bool {
        matches!(self, RegionVerdict::Proved | RegionVerdict::ProvedUpToReassociation)
    }
}

impl fmt::Display for Refutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refutation::Trouble(trouble) => write!(f, "{trouble}"),
            Refutation::Fault(fault) => f.write_str(fault),
            Refutation::Unwritten { result, index } => {
                write!(f, "result {result} at {index:?} is never written")
            }
            Refutation::Difference(difference) => {
                let Difference { result, index, expected, got, operands, elements, source } = &**difference;
                write!(f, "result {result} at {index:?} is {got}, not {expected}")?;
                if *elements > 1 {
                    write!(f, " ({elements} elements differ)")?;
                }
                write!(f, ", for operands of {operands}")?;
                source.as_ref().map_or(Ok(()), |source| write!(f, "; computed by {source}"))
            }
        }
    }
}

impl fmt::Display for RegionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            RegionVerdict::Refuted(refutation) => writeln!(f, "refuted: {refutation}")?,
            RegionVerdict::Unknown { reason } => writeln!(f, "unknown: {reason}")?,
            proved => writeln!(f, "{}", proved.name())?,
        }
        writeln!(f, "  numerics: {}", self.numerics)?;
        if self.verdict.is_proved() {
            writeln!(
                f,
                "  {} instructions executed on terms, {} result elements compared; addresses, bounds, fences and \
                 parallel loops checked in each",
                self.instructions, self.elements
            )?;
            for law in &self.laws {
                writeln!(f, "  rests on: {law}{}", if law.script().is_some() { " (proved)" } else { "" })?;
            }
        }
        Ok(())
    }
}
