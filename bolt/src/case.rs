//! One case from its text to a verdict: what is proved, by which conditions, resting on what; or a run that refutes it.

use crate::align::{align, check_rewriting, labelled};
use crate::discharge::{Answer, Proof, discharge};
use crate::hex::domain::{Domain, Reading};
use crate::hex::expand::{Expanded, Symbolic, expand};
use crate::hex::printer::print_expr;
use crate::hex::run::{FaultKind, Machine, Outcome, run};
use crate::hex::source::{HexError, Source, Span};
use crate::hex::syntax::{Case, Expr, ExprKind, Function, Relation, Stmt, StmtKind, Sym, visit_expr};
use crate::hex::{check, parse_with};
use crate::product::{apart, weave, written};
use crate::relate::{accumulated, infer, storing};
use crate::solver::Solver;
use crate::verify::{Unsupported, generate};
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// How a case is judged.
#[derive(Clone, Debug)]
pub struct Options {
    /// Wall time for one condition.
    pub limit: Duration,
    /// Values of parameters other than the file's.
    pub settings: Vec<(String, i64)>,
    /// Statements that a run may take.
    pub fuel: u64,
    pub threads: usize,
    /// The line that an inferred relation is read off which is to be left out, to see whether it is needed.
    pub leave_out: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            limit: Duration::from_secs(20),
            settings: Vec::new(),
            fuel: 200_000_000,
            threads,
            leave_out: None,
        }
    }
}

/// What is said of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Every condition holds, and none of them for want of a state that meets its assumptions.
    Proved,
    /// A run of both programs from one first state ends with other outputs, or does not end.
    Refuted(Counterexample),
    Unknown {
        reason: String,
    },
}

/// What a run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// What differs, as indices and values, or how the hardware fails.
    pub what: String,
    /// The lines of both programs that made it.
    pub lines: Vec<String>,
    /// Whether the hardware fails, rather than ends with something else.
    pub fails: bool,
}

/// The verdict on a case with what it rests on.
#[derive(Debug)]
pub struct Report {
    pub name: String,
    pub judgement: Judgement,
    pub proofs: Vec<Proof>,
    /// Numeric rules: functions of the hardware and what they stand for in the tensor program.
    pub rests_on: Vec<String>,
    /// Rewrites that aligned the tensor program, where the case left that to the search.
    pub steps: Vec<String>,
    /// How many loops of the hardware that compute have one of the tensor program, and how many there are.
    pub aligned: Option<(usize, usize)>,
    /// Lines of the movements that relations were read off.
    pub inferred: Vec<String>,
    /// Parameters that stayed symbolic.
    pub symbolic: Vec<String>,
    pub cut: Vec<String>,
    pub bulk: usize,
    pub unrolled: usize,
}

/// Why a case gets no verdict at all.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    #[error("cannot read {path}: {reason}")]
    Read { path: String, reason: String },
    /// The text is no case; rendered with its line.
    #[error("{0}")]
    Text(String),
}

fn text_error(error: &HexError, source: &Source) -> CaseError {
    CaseError::Text(error.render(source))
}

/// A case from a file, with the files it includes from the same folder.
///
/// # Errors
/// A file cannot be read or is no case.
pub fn load(path: &Path) -> Result<(Case, Source), CaseError> {
    let text = read(path)?;
    load_text(&path.display().to_string(), &text, path.parent().unwrap_or(Path::new(".")))
}

/// A case from a text; what it includes is in `folder`.
///
/// # Errors
/// A file cannot be read or a text is no case.
pub fn load_text(name: &str, text: &str, folder: &Path) -> Result<(Case, Source), CaseError> {
    let loader = |file: &str| {
        std::fs::read_to_string(folder.join(file)).map_err(|e| format!("cannot read `{file}`: {e}"))
    };
    let (case, source) =
        parse_with(name, text, &loader).map_err(|(error, source)| text_error(&error, &source))?;
    check(&case).map_err(|error| text_error(&error, &source))?;
    if case.name.is_empty() {
        let error = HexError::new(Span::default(), "this is no case: no `case NAME` is in it");
        return Err(text_error(&error, &source));
    }
    Ok((case, source))
}

fn read(path: &Path) -> Result<String, CaseError> {
    std::fs::read_to_string(path)
        .map_err(|e| CaseError::Read { path: path.display().to_string(), reason: e.to_string() })
}

/// Judges the case of a file. Without a solver nothing is proved, but a wrong mapping is still refuted.
///
/// # Errors
/// The file is no case.
pub fn verify_case(path: &Path, solver: Option<&Solver>, options: &Options) -> Result<Report, CaseError> {
    let (case, source) = load(path)?;
    verify(&case, &source, solver, options)
}

/// Judges a case.
///
/// # Errors
/// Its parameters do not fit it.
pub fn verify(
    case: &Case,
    source: &Source,
    solver: Option<&Solver>,
    options: &Options,
) -> Result<Report, CaseError> {
    Ok(prepare(case, source, options)?.judge(source, solver, options))
}

/// A case with its parameters' values and its alignment, ready to be judged.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub case: Expanded,
    steps: Vec<String>,
    aligned: Option<(usize, usize)>,
    /// Why the alignment is none.
    fault: Option<String>,
}

/// Puts in the parameters and aligns the tensor program.
///
/// # Errors
/// The parameters do not fit the case.
pub fn prepare(case: &Case, source: &Source, options: &Options) -> Result<Prepared, CaseError> {
    let settings: Vec<(&str, i64)> =
        options.settings.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let mut expanded = expand(case, &settings).map_err(|error| text_error(&error, source))?;
    let mut steps = Vec::new();
    let mut fault = None;
    let mut aligned = None;
    if expanded.align
        && let Some(alignment) = align(case, &settings, &mut expanded)
    {
        aligned = Some((alignment.loops - alignment.unaligned, alignment.loops));
        for step in alignment.steps {
            fault = fault.or(step.fault.map(|reason| format!("{}: {reason}", step.what)));
            steps.push(step.what);
        }
        expanded.aligned = alignment.body;
        expanded.decls.extend(alignment.decls);
        expanded.hardware = labelled(&expanded.hardware, &alignment.labels);
    }
    expanded.aligned = apart(&expanded.aligned, &expanded.hardware, &mut expanded.names);
    Ok(Prepared { case: expanded, steps, aligned, fault })
}

impl Prepared {
    /// The verdict. Without a solver nothing is proved, but a wrong mapping is still refuted.
    #[must_use]
    pub fn judge(&self, source: &Source, solver: Option<&Solver>, options: &Options) -> Report {
        let Prepared { case, steps, aligned, fault } = self;
        let range =
            |param: &Symbolic| format!("{} in {}..{}", case.names.text(param.name), param.lo, param.hi);
        let mut report = Report {
            name: case.name.clone(),
            judgement: Judgement::Unknown { reason: String::new() },
            proofs: Vec::new(),
            rests_on: rests_on(case, source),
            steps: steps.clone(),
            aligned: *aligned,
            inferred: Vec::new(),
            symbolic: case.symbolic.iter().map(range).collect(),
            cut: Vec::new(),
            bulk: 0,
            unrolled: 0,
        };
        report.judgement = match fault {
            Some(reason) => Judgement::Unknown { reason: reason.clone() },
            None => judge(case, source, solver, options, &mut report),
        };
        report
    }
}

fn rests_on(case: &Expanded, source: &Source) -> Vec<String> {
    let functions = case.applied().into_iter().filter(|function| function.reads.is_some());
    functions.map(|function| source.line(function.span)).collect()
}

fn judge(
    case: &Expanded,
    source: &Source,
    solver: Option<&Solver>,
    options: &Options,
    report: &mut Report,
) -> Judgement {
    if case.posts.is_empty() {
        return Judgement::Unknown { reason: "the case asks for nothing: it has no `ensure`".to_owned() };
    }
    if let Some(function) = case.applied().into_iter().find(|function| !commutes(case, function)) {
        let reason = format!("a function that is called commutative is not ({})", source.line(function.span));
        return Judgement::Unknown { reason };
    }
    if let Err(reason) = check_rewriting(case, &case.aligned, source, options.fuel) {
        return Judgement::Unknown { reason };
    }
    if !claims(case) {
        return match refute(case, source, options) {
            Some(judgement) => judgement,
            None if is_short(case) => by_proof(case, source, solver, options, report),
            None => Judgement::Unknown {
                reason: "a run makes the same terms, but the case claims nothing of its loops".to_owned(),
            },
        };
    }
    by_proof(case, source, solver, options, report)
}

/// Whether a function commutes if it is said to, on concrete data and in ideal arithmetic: proofs take its word for it.
fn commutes(case: &Expanded, function: &Function) -> bool {
    let on = |reading| Domain::new(case, reading, 1).commutes(function.name);
    !function.commutative || (on(Reading::Concrete) && on(Reading::Ideal))
}

/// Whether anything is said of the loops, or left to be read off them.
fn claims(case: &Expanded) -> bool {
    fn whereby(body: &[Stmt]) -> bool {
        body.iter().any(|stmt| match &stmt.kind {
            StmtKind::Loop(inner) => !inner.whereby.is_empty() || whereby(&inner.body),
            StmtKind::If(_, then, other) => whereby(then) || whereby(other),
            _ => false,
        })
    }
    case.infer
        || case.align
        || !case.symbolic.is_empty()
        || !case.relations.is_empty()
        || !case.invariants.is_empty()
        || whereby(&case.hardware)
}

/// Whether everything can be unrolled.
fn is_short(case: &Expanded) -> bool {
    const STEPS: u64 = 5_000;
    run(case, &case.hardware, &Domain::new(case, Reading::Hashed, 1), STEPS).is_ok()
}

fn by_proof(
    case: &Expanded,
    source: &Source,
    solver: Option<&Solver>,
    options: &Options,
    report: &mut Report,
) -> Judgement {
    // A proof needs no run of the hardware; a fault shows in a run sooner than in a proof that is tried in every way.
    let mut beyond = None;
    if let Some(solver) = solver {
        beyond = first_try(case, source, solver, options, report);
        if beyond.is_none() && is_proved(report) {
            return Judgement::Proved;
        }
    }
    if let Some(refutation) = refute(case, source, options) {
        return refutation;
    }
    let Some(solver) = solver else {
        return Judgement::Unknown { reason: NO_SOLVER.to_owned() };
    };
    for &ordered in ways(case) {
        beyond = try_to_prove(case, ordered, source, solver, options, true, report);
        if beyond.is_none() && is_proved(report) {
            return Judgement::Proved;
        }
    }
    if let Some(Unsupported { span, reason }) = beyond {
        return Judgement::Unknown { reason: format!("{reason} ({})", source.line(span)) };
    }
    let failed: Vec<&Proof> = report.proofs.iter().filter(|proof| proof.answer != Answer::Holds).collect();
    match failed.first() {
        None => Judgement::Unknown { reason: "there was nothing to prove".to_owned() },
        Some(first) => {
            let kind = match &first.answer {
                Answer::Fails { .. } => "not inductive: a condition fails in a state that no run shows",
                Answer::Vacuous => "a condition's assumptions contradict each other",
                _ => "the solver did not decide a condition",
            };
            let more = failed.len() - 1;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Judgement::Unknown { reason: format!("{kind}: {}{more}", first.name) }
        }
    }
}

fn is_proved(report: &Report) -> bool {
    !report.proofs.is_empty() && report.proofs.iter().all(|proof| proof.answer == Answer::Holds)
}

/// Whether loops that store inputs get claims: where sizes are not known, addresses can often not be read backwards.
fn ways(case: &Expanded) -> &'static [bool] {
    if case.infer && !case.symbolic.is_empty() { &[true, false] } else { &[false] }
}

fn first_try(
    case: &Expanded,
    source: &Source,
    solver: &Solver,
    options: &Options,
    report: &mut Report,
) -> Option<Unsupported> {
    try_to_prove(case, ways(case)[0], source, solver, options, false, report)
}

/// Tries with what can be inferred, leaving out what does not hold until the rest does. What is beyond conditions, if any is.
fn try_to_prove(
    case: &Expanded,
    ordered: bool,
    source: &Source,
    solver: &Solver,
    options: &Options,
    thorough: bool,
    report: &mut Report,
) -> Option<Unsupported> {
    let mut case = case.clone();
    if ordered {
        let labels = storing(&mut case);
        case.hardware = labelled(&case.hardware, &labels);
    }
    let mut candidates = if case.infer { infer(&case, ordered, options.fuel) } else { Vec::new() };
    if case.align {
        candidates.extend(accumulated(&case));
    }
    candidates.retain(|relation| options.leave_out.as_ref() != Some(&source.line(relation.span)));
    loop {
        let mut case = case.clone();
        report.inferred = candidates.iter().map(|relation| source.line(relation.span)).collect();
        case.relations.extend(candidates.iter().cloned());
        let beyond = prove(&case, source, solver, options, thorough, report).err();
        // What is claimed at no loop is not needed.
        report.inferred.retain(|line| report.proofs.iter().any(|proof| proof.lines == [line.clone()]));
        if beyond.is_some() || !thorough {
            return beyond;
        }
        let fails = |relation: &Relation| {
            let line = source.line(relation.span);
            let mut failing =
                report.proofs.iter().filter(|proof| matches!(proof.answer, Answer::Fails { .. }));
            failing.any(|proof| proof.lines == [line.clone()])
        };
        let before = candidates.len();
        // Those of accumulators are what the alignment means: without them a loop is only unrolled.
        candidates.retain(|relation| !relation.at.is_empty() || !fails(relation));
        if candidates.len() == before {
            return None;
        }
    }
}

/// Makes the conditions of a case and asks the solver.
fn prove(
    case: &Expanded,
    source: &Source,
    solver: &Solver,
    options: &Options,
    thorough: bool,
    report: &mut Report,
) -> Result<(), Unsupported> {
    let product = weave(&case.hardware, &case.aligned);
    let mut of_ir = HashSet::new();
    written(&weave(&[], &case.aligned), &mut of_ir);
    let generated = generate(case, &product, &of_ir)?;
    report.cut.clone_from(&generated.cut);
    (report.bulk, report.unrolled) = (generated.bulk, generated.unrolled);
    // What a run refutes needs no second look.
    report.proofs = discharge(case, generated, source, solver, options, thorough);
    Ok(())
}

/// Runs both programs from the same random first states and compares what the case asks for: first on hashes, where every
/// difference of terms shows. One that shows there counts only if it shows without the choice of functions as well: against
/// the tensor program as it was, in the ideal arithmetic that functions stand for, or on concrete data.
fn refute(case: &Expanded, source: &Source, options: &Options) -> Option<Judgement> {
    let hashed = compare(case, &case.aligned, source, options, (Reading::Hashed, 1))?;
    let Judgement::Refuted(example) = &hashed else { return Some(hashed) };
    if example.fails {
        return Some(hashed);
    }
    let unknown = |reason: &str| Some(Judgement::Unknown { reason: reason.to_owned() });
    let applied = case.applied();
    let names: Vec<Sym> = applied.iter().map(|function| function.name).collect();
    if Domain::new(case, Reading::Concrete, 1).defines(&names) {
        for seed in 1..=CONCRETE_RUNS {
            let concrete = compare(case, &case.aligned, source, options, (Reading::Concrete, seed));
            if concrete.is_some() {
                return concrete;
            }
        }
        if applied.iter().any(|function| function.reads.is_none()) {
            return unknown("the programs make other terms, but on concrete data they agree");
        }
    }
    let ideal = compare(case, &case.ir, source, options, (Reading::Ideal, 1));
    if matches!(ideal, Some(Judgement::Refuted(_))) {
        return Some(hashed);
    }
    unknown("the programs differ only where functions are uninterpreted; in ideal arithmetic they agree")
}

/// What to do where Z3 is missing.
const NO_SOLVER: &str = "Z3 is missing, which proves the conditions: `pip install act-pjrt[verify]`";

/// Random data that programs are run on where all functions are defined.
const CONCRETE_RUNS: u64 = 3;

fn compare(
    case: &Expanded,
    program: &[Stmt],
    source: &Source,
    options: &Options,
    (reading, seed): (Reading, u64),
) -> Option<Judgement> {
    let domain = Domain::new(case, reading, seed);
    let ir = match run(case, program, &domain, options.fuel) {
        Ok(outcome) => outcome,
        Err(fault) => {
            let reason = format!("the tensor program fails: {} ({})", fault.kind, source.line(fault.span));
            return Some(Judgement::Unknown { reason });
        }
    };
    // Hardware moves data besides computing, but not for ever.
    let fuel = options.fuel.min(ir.steps.saturating_mul(100).saturating_add(1_000_000));
    let hardware = match run(case, &case.hardware, &domain, fuel) {
        Ok(outcome) => outcome,
        // No loop is past its end: it may only be slow.
        Err(fault) if matches!(fault.kind, FaultKind::TooLong(_) | FaultKind::TooLarge { .. }) => {
            let reason = format!("the hardware: {} ({})", fault.kind, source.line(fault.span));
            return Some(Judgement::Unknown { reason });
        }
        Err(fault) => return Some(refuted(fault.kind.to_string(), &[fault.span], source, true)),
    };
    let (what, spans) = difference(case, &hardware, &ir, &domain, options.fuel)?;
    Some(refuted(what, &spans, source, false))
}

fn refuted(what: String, spans: &[Span], source: &Source, fails: bool) -> Judgement {
    let lines = spans.iter().map(|span| source.line(*span)).collect();
    Judgement::Refuted(Counterexample { what, lines, fails })
}

/// The first place where an `ensure` does not hold.
fn difference(
    case: &Expanded,
    hardware: &Outcome,
    ir: &Outcome,
    domain: &Domain,
    fuel: u64,
) -> Option<(String, Vec<Span>)> {
    let mut names = HashSet::new();
    for post in &case.posts {
        for side in [&post.left, &post.right] {
            visit_expr(side, &mut |expr| {
                if let ExprKind::Name(name) | ExprKind::Access(name, _) = &expr.kind {
                    names.insert(*name);
                }
            });
        }
    }
    let mut machine = Machine::new(case, domain, fuel, &names).ok()?;
    let mut of_ir = HashSet::new();
    written(&weave(&[], &case.aligned), &mut of_ir);
    for name in names {
        let side = if of_ir.contains(&name) { ir } else { hardware };
        if let Some(data) = side.buffers.get(&name) {
            machine.load(name, data);
        }
    }
    for post in &case.posts {
        let mut found = None;
        each(&mut machine, &post.vars, &mut |machine| {
            let (left, right) = (machine.eval(&post.left).ok()?, machine.eval(&post.right).ok()?);
            if left == right {
                return None;
            }
            let point: Vec<String> = post
                .vars
                .iter()
                .filter_map(|(name, _, _)| {
                    Some(format!("{} = {}", case.names.text(*name), machine.value(*name)?))
                })
                .collect();
            let names = &case.names;
            let (text_left, text_right) = (print_expr(names, &post.left), print_expr(names, &post.right));
            let text = format!(
                "{text_left} is {left:#x}, {text_right} is {right:#x} at {} ({:?} data)",
                point.join(", "),
                domain.reading
            );
            found = Some(text);
            found.clone()
        });
        if let Some(text) = found {
            let mut spans = vec![post.span];
            spans.extend(writers(case, &post.left));
            spans.extend(writers(case, &post.right));
            return Some((text, spans));
        }
    }
    None
}

/// Calls `visit` at every point of the ranges until it finds something.
fn each(
    machine: &mut Machine<'_>,
    vars: &[(Sym, Expr, Expr)],
    visit: &mut dyn FnMut(&Machine<'_>) -> Option<String>,
) -> bool {
    let Some(((name, lo, hi), rest)) = vars.split_first() else { return visit(machine).is_some() };
    let (Ok(lo), Ok(hi)) = (machine.eval(lo), machine.eval(hi)) else { return false };
    for at in lo..hi {
        machine.set(*name, at);
        if each(machine, rest, visit) {
            return true;
        }
    }
    false
}

/// The statements that write the buffer of a place.
fn writers(case: &Expanded, place: &Expr) -> Vec<Span> {
    fn walk(body: &[Stmt], name: Sym, found: &mut Vec<Span>) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Assign(to, ..) if *to == name => found.push(stmt.span),
                StmtKind::Loop(inner) => walk(&inner.body, name, found),
                StmtKind::If(_, then, other) => {
                    walk(then, name, found);
                    walk(other, name, found);
                }
                _ => {}
            }
        }
    }
    let (ExprKind::Access(name, _) | ExprKind::Name(name)) = &place.kind else { return Vec::new() };
    let mut found = Vec::new();
    walk(&case.hardware, *name, &mut found);
    walk(&case.aligned, *name, &mut found);
    found.dedup();
    found
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.judgement {
            Judgement::Proved => writeln!(f, "{}: proved", self.name)?,
            Judgement::Refuted(example) => {
                writeln!(f, "{}: refuted", self.name)?;
                writeln!(f, "  {}", example.what)?;
                for line in &example.lines {
                    writeln!(f, "    {line}")?;
                }
            }
            Judgement::Unknown { reason } => writeln!(f, "{}: unknown ({reason})", self.name)?,
        }
        if !self.proofs.is_empty() {
            let holds = self.proofs.iter().filter(|proof| proof.answer == Answer::Holds).count();
            let instances: usize = self.proofs.iter().map(|proof| proof.instances).sum();
            writeln!(
                f,
                "  {holds} of {} conditions hold; {} loops cut, {} as maps, {} unrolled; {instances} instances",
                self.proofs.len(),
                self.cut.len(),
                self.bulk,
                self.unrolled
            )?;
        }
        for proof in self.proofs.iter().filter(|proof| proof.answer != Answer::Holds) {
            writeln!(f, "  fails: {} ({})", proof.name, proof.answer)?;
            for line in &proof.lines {
                writeln!(f, "    {line}")?;
            }
        }
        for line in &self.inferred {
            writeln!(f, "  related by {line}")?;
        }
        if let Some((aligned, of)) = self.aligned {
            writeln!(f, "  aligned {aligned} of {of} loops of the hardware")?;
        }
        if !self.steps.is_empty() {
            writeln!(f, "  aligned by {} steps: {}", self.steps.len(), self.steps.join("; "))?;
        }
        for param in &self.symbolic {
            writeln!(f, "  for all {param}; the alignment was run at the sample")?;
        }
        for rule in &self.rests_on {
            writeln!(f, "  rests on {rule}")?;
        }
        Ok(())
    }
}
