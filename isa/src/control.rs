//! Semantics with control flow (`if`, `repeat`) and the flat computations they stand for: one for given attributes, or
//! one per path with the condition under which it is taken. Knows nothing of how a flat computation is used.

use crate::expr::{Cond, Env, EvalExprError, Expr, Relation};
use crate::model::{AttrKind, Computation, Instr, InstrId, Isa, Stmt};
use crate::registers::NotSelectable;
use act_hlo::OpKind;
use std::collections::{BTreeMap, BTreeSet};

/// Statements of one flat computation at most.
const MAX_STMTS: usize = 1 << 14;
/// Paths of one instruction that a compiler is offered at most.
const MAX_PATHS: usize = 64;
/// Combinations of attribute values looked at for the possible counts of a `repeat`.
const MAX_TRIED: u128 = 4096;

/// A computation with control flow. Values have names; a name that is assigned again takes the new value from there on,
/// in a `repeat` into the next round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Structured {
    /// Names of the values, in the order of their first assignment.
    pub variables: Vec<String>,
    pub steps: Vec<Step>,
    /// Variable of every output.
    pub roots: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Operands of the statement are variables.
    Assign {
        variable: usize,
        stmt: Stmt,
    },
    If {
        cond: Cond,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    /// `name` counts 0, 1, .. count-1. In the body it is [`Expr::Variable`], numbered by nesting from outside.
    Repeat {
        name: String,
        count: Expr,
        body: Vec<Step>,
    },
}

/// A flat computation and the conditions under which it is the instruction's, beyond its requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub conditions: Vec<Cond>,
    pub computation: Computation,
}

/// The instructions of a description that a compiler may select by value, without control flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    /// The description with one instruction per path; a path's condition is among its requirements.
    pub isa: Isa,
    /// For every instruction of `isa`, the instruction of the description.
    pub origin: Vec<InstrId>,
    pub excluded: Vec<(InstrId, NotSelectable)>,
}

/// Why control flow has no flat form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    #[error("the condition: {0}")]
    Condition(EvalExprError),
    #[error("the count: {0}")]
    Count(EvalExprError),
    #[error("the count is {0}")]
    NegativeCount(i64),
    #[error("more than {MAX_STMTS} statements or rounds")]
    TooLong,
    #[error("`{0}` has no value on some path")]
    Unassigned(String),
}

/// A flat computation on the way, with the conditions met so far.
#[derive(Clone, Default)]
struct Path {
    conditions: Vec<Cond>,
    stmts: Vec<Stmt>,
    /// For every statement, its number in the text.
    origin: Vec<usize>,
    /// Statement that a variable's value comes from.
    values: Vec<Option<usize>>,
    loops: Vec<i64>,
    /// How often every variable was assigned.
    named: BTreeMap<usize, usize>,
    /// Rounds of `repeat` gone through.
    rounds: usize,
}

/// How conditions and counts are decided.
enum Decide<'a> {
    /// By values of the attributes.
    By(Env<'a>),
    /// Every way that attributes allow.
    Every { isa: &'a Isa, instr: &'a Instr },
}

/// What keeps the paths of an instruction from being listed.
enum Obstacle {
    Error(ControlError),
    Excluded(NotSelectable),
}

impl Structured {
    /// The computation for given attributes and registers, and for every statement its number in the text.
    ///
    /// # Errors
    /// Conditions and counts without a value, and more statements than any instruction can mean.
    pub fn flatten(&self, env: Env<'_>) -> Result<(Computation, Vec<usize>), ControlError> {
        let path = match self.paths(&Decide::By(env)) {
            Ok(paths) => paths.into_iter().next().unwrap_or_default(),
            Err(Obstacle::Error(error)) => return Err(error),
            Err(Obstacle::Excluded(_)) => Path::default(),
        };
        let (stmts, origin) = (path.stmts.clone(), path.origin.clone());
        Ok((Computation { stmts, roots: self.flat_roots(&path)? }, origin))
    }

    /// Calls `visit` for every expression: sizes, attributes of operators, constants, conditions and counts.
    pub(crate) fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        fn steps(list: &[Step], visit: &mut dyn FnMut(&Expr)) {
            for step in list {
                match step {
                    Step::Assign { stmt, .. } => stmt.for_each_expr(visit),
                    Step::If { cond, then, otherwise } => {
                        cond.for_each_leaf(&mut |leaf| visit(leaf));
                        steps(then, visit);
                        steps(otherwise, visit);
                    }
                    Step::Repeat { count, body, .. } => {
                        visit(count);
                        steps(body, visit);
                    }
                }
            }
        }
        steps(&self.steps, visit);
    }

    /// Calls `visit` for every statement, in the order of the text.
    pub fn for_each_stmt(&self, visit: &mut dyn FnMut(&Stmt)) {
        fn steps(list: &[Step], visit: &mut dyn FnMut(&Stmt)) {
            for step in list {
                match step {
                    Step::Assign { stmt, .. } => visit(stmt),
                    Step::If { then, otherwise, .. } => {
                        steps(then, visit);
                        steps(otherwise, visit);
                    }
                    Step::Repeat { body, .. } => steps(body, visit),
                }
            }
        }
        steps(&self.steps, visit);
    }

    fn paths(&self, decide: &Decide<'_>) -> Result<Vec<Path>, Obstacle> {
        let start = Path { values: vec![None; self.variables.len()], ..Path::default() };
        self.walk(&self.steps, 0, vec![start], decide)
    }

    fn flat_roots(&self, path: &Path) -> Result<Vec<usize>, ControlError> {
        self.roots.iter().map(|&root| self.value(path, root)).collect()
    }

    fn value(&self, path: &Path, variable: usize) -> Result<usize, ControlError> {
        path.values.get(variable).copied().flatten().ok_or_else(|| {
            ControlError::Unassigned(self.variables.get(variable).cloned().unwrap_or_default())
        })
    }

    /// Takes every path through `steps`, whose first statement has number `first` in the text.
    fn walk(
        &self,
        steps: &[Step],
        first: usize,
        mut paths: Vec<Path>,
        decide: &Decide<'_>,
    ) -> Result<Vec<Path>, Obstacle> {
        let mut number = first;
        for step in steps {
            match step {
                Step::Assign { variable, stmt } => {
                    for path in &mut paths {
                        self.assign(path, *variable, stmt, number).map_err(Obstacle::Error)?;
                    }
                }
                Step::If { cond, then, otherwise } => {
                    let (mut taken, mut passed) = (Vec::new(), Vec::new());
                    for path in paths {
                        let cond = cond.map_leaves(&|leaf| unrolled(leaf, &path.loops));
                        let (may, may_not) = decide.cond(&cond, &path)?;
                        if may {
                            taken.push(path.clone().under(may_not.then(|| cond.clone())));
                        }
                        if may_not {
                            passed.push(path.under(may.then(|| Cond::Not(cond.into()))));
                        }
                    }
                    paths = self.walk(then, number, taken, decide)?;
                    paths.extend(self.walk(otherwise, number + count_stmts(then), passed, decide)?);
                }
                Step::Repeat { count, body, .. } => {
                    let mut done = Vec::new();
                    for path in paths {
                        let count = count.map_leaves(&|leaf| unrolled(leaf, &path.loops));
                        for (times, cond) in decide.counts(&count)? {
                            let mut rounds = vec![path.clone().under(cond)];
                            for round in 0..times {
                                for path in &mut rounds {
                                    path.loops.push(round);
                                    path.rounds += 1;
                                    if path.rounds > MAX_STMTS {
                                        return Err(Obstacle::Error(ControlError::TooLong));
                                    }
                                }
                                rounds = self.walk(body, number, rounds, decide)?;
                                rounds.iter_mut().for_each(|p| p.loops.truncate(path.loops.len()));
                            }
                            done.extend(rounds);
                        }
                    }
                    paths = done;
                }
            }
            number += count_stmts(std::slice::from_ref(step));
            if paths.len() > MAX_PATHS {
                return Err(Obstacle::Excluded(NotSelectable::TooManyPaths { limit: MAX_PATHS }));
            }
        }
        Ok(paths)
    }

    fn assign(&self, path: &mut Path, to: usize, stmt: &Stmt, number: usize) -> Result<(), ControlError> {
        if path.stmts.len() >= MAX_STMTS {
            return Err(ControlError::TooLong);
        }
        let operands = stmt.operands.iter().map(|&o| self.value(path, o)).collect::<Result<_, _>>()?;
        let at = |e: &Expr| e.map_leaves(&|leaf| unrolled(leaf, &path.loops));
        let constant = |c: &crate::model::SymConst| match c {
            crate::model::SymConst::Int(e) => crate::model::SymConst::Int(at(e)),
            other => other.clone(),
        };
        let op: Result<_, std::convert::Infallible> = stmt.op.try_map(|e| Ok(at(e)), |c| Ok(constant(c)));
        let Ok(op) = op;
        let earlier = path.named.entry(to).or_default();
        let name = if *earlier == 0 { stmt.name.clone() } else { format!("{}@{earlier}", stmt.name) };
        *earlier += 1;
        let dims = stmt.dims.iter().map(at).collect();
        path.stmts.push(Stmt { name, op, operands, elem: stmt.elem, dims });
        path.origin.push(number);
        if let Some(value) = path.values.get_mut(to) {
            *value = Some(path.stmts.len() - 1);
        }
        Ok(())
    }
}

impl Path {
    fn under(mut self, cond: Option<Cond>) -> Path {
        self.conditions.extend(cond);
        self
    }
}

fn unrolled(leaf: &Expr, loops: &[i64]) -> Expr {
    match leaf {
        Expr::Variable(k) => loops.get(usize::from(*k)).map_or_else(|| leaf.clone(), |&v| Expr::Int(v)),
        _ => leaf.clone(),
    }
}

fn count_stmts(steps: &[Step]) -> usize {
    let one = |step: &Step| match step {
        Step::Assign { .. } => 1,
        Step::If { then, otherwise, .. } => count_stmts(then) + count_stmts(otherwise),
        Step::Repeat { body, .. } => count_stmts(body),
    };
    steps.iter().map(one).sum()
}

impl Decide<'_> {
    /// (may hold, may not hold)
    fn cond(&self, cond: &Cond, path: &Path) -> Result<(bool, bool), Obstacle> {
        let error = |e| Obstacle::Error(ControlError::Condition(e));
        match self {
            Decide::By(env) => cond.eval(*env).map(|holds| (holds, !holds)).map_err(error),
            Decide::Every { isa, .. } => {
                if path.conditions.contains(cond) {
                    return Ok((true, false));
                }
                if path.conditions.contains(&Cond::Not(cond.clone().into())) {
                    return Ok((false, true));
                }
                match cond.eval(Env { registers: &isa.register_values(), ..Env::default() }) {
                    Ok(holds) => Ok((holds, !holds)),
                    Err(EvalExprError::Unsolved) => Ok((true, true)),
                    Err(e) => Err(error(e)),
                }
            }
        }
    }

    /// Possible counts, each with its condition unless it is the only one.
    fn counts(&self, count: &Expr) -> Result<Vec<(i64, Option<Cond>)>, Obstacle> {
        let fixed = |value: Result<i64, EvalExprError>| match value {
            Ok(v) if v < 0 => Err(Obstacle::Error(ControlError::NegativeCount(v))),
            Ok(v) => Ok(v),
            Err(e) => Err(Obstacle::Error(ControlError::Count(e))),
        };
        let (isa, instr) = match self {
            Decide::By(env) => return Ok(vec![(fixed(count.eval(*env))?, None)]),
            Decide::Every { isa, instr } => (isa, instr),
        };
        let registers = isa.register_values();
        match count.eval(Env { registers: &registers, ..Env::default() }) {
            Err(EvalExprError::Unsolved) => {}
            other => return Ok(vec![(fixed(other)?, None)]),
        }
        let mut values = BTreeSet::new();
        let open = || Obstacle::Excluded(NotSelectable::OpenCount);
        for alpha in combinations(count, instr).ok_or_else(open)? {
            // A count without a value or below 0 is no legal choice of these attributes.
            let value = count.eval(Env { alpha: &alpha, beta: &[], registers: &registers });
            values.extend(value.ok().filter(|v| *v >= 0));
        }
        if values.len() > MAX_PATHS {
            return Err(Obstacle::Excluded(NotSelectable::TooManyPaths { limit: MAX_PATHS }));
        }
        let under = |v| Cond::Cmp(Relation::Eq, count.clone(), Expr::Int(v));
        Ok(values.into_iter().map(|v| (v, Some(under(v)))).collect())
    }
}

/// All values of the attributes that `e` mentions, the others unsolved; `None` when there are too many.
fn combinations(e: &Expr, instr: &Instr) -> Option<Vec<Vec<Option<i64>>>> {
    let mut mentioned = BTreeSet::new();
    e.for_each_leaf(&mut |leaf| {
        if let Expr::Alpha(k) = leaf {
            mentioned.insert(usize::from(*k));
        }
    });
    let mut all = vec![vec![None; instr.alpha.len()]];
    for k in mentioned {
        let AttrKind::Int { min, max } = instr.alpha.get(k)?.kind else { return None };
        let width = u128::from(max.abs_diff(min)) + 1;
        if width.saturating_mul(all.len() as u128) > MAX_TRIED {
            return None;
        }
        all = all
            .into_iter()
            .flat_map(|alpha: Vec<Option<i64>>| {
                (min..=max).map(move |v| {
                    let mut alpha = alpha.clone();
                    alpha[k] = Some(v);
                    alpha
                })
            })
            .collect();
    }
    Some(all)
}

impl Isa {
    /// The flat computations of an instruction, each with the conditions of its path; one without conditions where
    /// there is no control flow.
    ///
    /// # Errors
    /// Why a compiler must leave the instruction alone.
    pub fn variants(&self, id: InstrId) -> Result<Vec<Variant>, NotSelectable> {
        if let Some(reason) = self.not_selectable(id) {
            return Err(reason);
        }
        let instr = self.instr(id);
        let Some(structured) = &instr.structured else {
            return Ok(vec![Variant { conditions: Vec::new(), computation: instr.computation.clone() }]);
        };
        let paths =
            structured.paths(&Decide::Every { isa: self, instr }).map_err(|obstacle| match obstacle {
                Obstacle::Excluded(reason) => reason,
                Obstacle::Error(error) => NotSelectable::Control { error },
            })?;
        let variant = |path: Path| {
            let roots = structured.flat_roots(&path).map_err(|error| NotSelectable::Control { error })?;
            let computation = Computation { stmts: path.stmts, roots }.without_unused();
            Ok(Variant { conditions: path.conditions, computation })
        };
        paths.into_iter().map(variant).collect()
    }

    /// What a compiler may choose from.
    pub fn selectable(&self) -> Selectable {
        let mut selectable = Selectable { isa: self.clone(), origin: Vec::new(), excluded: Vec::new() };
        selectable.isa.instrs.clear();
        for id in self.instr_ids() {
            let variants = match self.variants(id) {
                Ok(variants) => variants,
                Err(reason) => {
                    selectable.excluded.push((id, reason));
                    continue;
                }
            };
            for Variant { conditions, computation } in variants {
                let mut instr = Instr { computation, structured: None, ..self.instr(id).clone() };
                instr.requires.extend(conditions);
                selectable.isa.instrs.push(instr);
                selectable.origin.push(id);
            }
        }
        selectable
    }
}

impl Computation {
    /// The computation without statements that no result needs; parameters stay.
    #[must_use]
    pub fn without_unused(self) -> Computation {
        let Computation { stmts, roots } = self;
        let mut needed = vec![false; stmts.len()];
        roots.iter().for_each(|&r| needed[r] = true);
        for at in (0..stmts.len()).rev() {
            needed[at] |= matches!(stmts[at].op, OpKind::Parameter(_));
            if needed[at] {
                stmts[at].operands.iter().for_each(|&o| needed[o] = true);
            }
        }
        let mut kept = Vec::new();
        let mut place = vec![0; stmts.len()];
        for (at, mut stmt) in stmts.into_iter().enumerate().filter(|(at, _)| needed[*at]) {
            place[at] = kept.len();
            stmt.operands.iter_mut().for_each(|o| *o = place[*o]);
            kept.push(stmt);
        }
        Computation { stmts: kept, roots: roots.into_iter().map(|r| place[r]).collect() }
    }
}
