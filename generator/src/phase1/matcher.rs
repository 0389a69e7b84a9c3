//! One IR-to-ISA rule per instruction, generated from its semantics (ACT paper, section 5.2): every operator, attribute,
//! size, element type, constant and repeated operand takes part. How a rule is matched against an e-graph stands in
//! [`super::matching`], how it reads as text in [`super::print`].

use super::closed;
use super::language::is_commutative;
use super::operators::OperatorNumber;
use super::polynomial::Polynomial;
use super::symbolic::SymbolicView;
use act_hlo::{Binary, ElemType, OpKind};
use act_isa::{BufferId, Feasibility, Instr, InstrId, Isa, NotSelectable, Slice, SymConst, SymOp};

/// The generated rule of one instruction.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    /// The instruction, a path of one, among those without control flow.
    pub(crate) instr: InstrId,
    /// The instruction of the description.
    pub(crate) origin: InstrId,
    /// One pattern per statement of the semantics.
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) targets: Vec<Target>,
    /// With which attributes it can be executed.
    pub(crate) feasibility: Feasibility,
    /// Holds only where float sums may be taken in another order.
    pub(crate) loose: bool,
}

/// What a class must be to stand for a statement.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) elem: ElemType,
    pub(crate) dims: Vec<Polynomial>,
    /// Alternatives, tried in order.
    pub(crate) forms: Vec<Form>,
}

#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Input `input`, which must be available in a buffer, in a slot of these lengths; the statement is the parameter or
    /// its bits as another type of the same width.
    OnChip { input: usize, buffer: BufferId, lens: Vec<Polynomial> },
    /// A re-view of HBM input `input`.
    InHbm { input: usize, view: SymbolicView },
    /// A constant, every element of which has this value.
    Splat(SymConst),
    /// A constant tensor: what the statement is for the attributes.
    Closed,
    /// The same value as another statement.
    Same { operand: usize },
    /// The same value as another statement, if the f32 attribute is 1.
    TimesOne { operand: usize, attr: u16 },
    /// An operator applied to other statements.
    Node { operator: OperatorNumber, op: SymOp, operands: Vec<usize>, commutes: bool },
}

/// Where the matched value appears.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Output `output`, in a slot of a buffer, with these lengths.
    OnChip { output: usize, root: usize, buffer: BufferId, lens: Vec<Polynomial> },
    /// Output `output`, in d0: the statement's value, once the movement operators after it are read as a view of the
    /// window.
    Store { output: usize, root: usize, view: SymbolicView },
}

/// What a class looks like from outside: enough to see that most rules cannot match it.
pub(crate) struct Look {
    pub(crate) elem: ElemType,
    pub(crate) operators: Vec<OperatorNumber>,
    /// It lies in d0 or is a constant.
    pub(crate) in_memory: bool,
    pub(crate) constant: bool,
}

/// Why no rule could be generated for an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmatchableError {
    #[error(transparent)]
    NotSelectable(#[from] NotSelectable),
    #[error("it has no output")]
    NoOutput,
    #[error("it writes {0} places of d0 at once")]
    Stores(usize),
    #[error("input {0} does not occur in its semantics")]
    UnusedInput(usize),
    #[error("{0} refers to something that the description does not define")]
    Dangling(&'static str),
}

impl Matcher {
    /// Derives the rule of an instruction.
    ///
    /// # Errors
    /// Instructions whose semantics no pattern expresses.
    pub(crate) fn generate(isa: &Isa, id: InstrId, origin: InstrId) -> Result<Matcher, UnmatchableError> {
        let instr = isa.instr(id);
        let computation = &instr.computation;
        let roots = &computation.roots;
        if instr.outputs.is_empty() {
            return Err(UnmatchableError::NoOutput);
        }
        if roots.len() != instr.outputs.len() {
            return Err(UnmatchableError::Dangling("a result"));
        }
        let stores = instr.outputs.iter().filter(|output| matches!(output, Slice::Hbm(_))).count();
        if stores > 1 {
            return Err(UnmatchableError::Stores(stores));
        }
        let mut rims: Vec<Vec<(usize, SymbolicView)>> = Vec::new();
        let mut patterns: Vec<Pattern> = Vec::new();
        for stmt in &computation.stmts {
            if stmt.operands.iter().any(|&o| o >= patterns.len()) {
                return Err(UnmatchableError::Dangling("a statement's operand"));
            }
            let rim = rim(instr, stmt, &rims);
            let mut forms: Vec<Form> =
                rim.iter().map(|(input, view)| Form::InHbm { input: *input, view: view.clone() }).collect();
            forms.extend(forms_of(isa, instr, stmt, &patterns)?);
            let splat = matches!(forms.as_slice(), [Form::Splat(_)]);
            if !splat && closed::is(&instr.computation, patterns.len()) {
                forms.insert(0, Form::Closed);
            }
            rims.push(rim);
            patterns.push(Pattern {
                elem: stmt.elem,
                dims: stmt.dims.iter().map(Polynomial::of).collect(),
                forms,
            });
        }
        let used = used_inputs(&computation.stmts, roots);
        if let Some(input) = (0..instr.inputs.len()).find(|k| !used.contains(k)) {
            return Err(UnmatchableError::UnusedInput(input));
        }
        let mut targets = Vec::new();
        for (output, (slice, &root)) in instr.outputs.iter().zip(roots).enumerate() {
            match slice {
                Slice::OnChip(slice) => {
                    if usize::from(slice.buffer.0) >= isa.buffers.len() {
                        return Err(UnmatchableError::Dangling("an output"));
                    }
                    let lens: Vec<Polynomial> = slice.len.iter().map(Polynomial::of).collect();
                    let roots = std::iter::once(root).chain(retyped(&computation.stmts, root));
                    let (buffer, lens) = (slice.buffer, &lens);
                    targets.extend(roots.map(|root| Target::OnChip {
                        output,
                        root,
                        buffer,
                        lens: lens.clone(),
                    }));
                }
                Slice::Hbm(window) => {
                    targets.extend(store_targets(instr, output, root, SymbolicView::window(window)));
                }
            }
        }
        let feasibility = Feasibility::of(isa, instr);
        Ok(Matcher { instr: id, origin, patterns, targets, feasibility, loose: false })
    }
}

impl Matcher {
    /// Whether the rule may compute a class that looks like this in `buffer`.
    pub(crate) fn may_fill(&self, buffer: BufferId, look: &Look) -> bool {
        self.targets.iter().any(|target| match target {
            Target::OnChip { root, buffer: out, .. } => *out == buffer && self.may_root(*root, look),
            Target::Store { .. } => false,
        })
    }

    /// Whether the rule may store a class that looks like this.
    pub(crate) fn may_store(&self, look: &Look) -> bool {
        self.targets.iter().any(|target| match target {
            Target::OnChip { .. } => false,
            Target::Store { root, .. } => self.may_root(*root, look),
        })
    }

    /// What only moves the bits of its result moves those of any type of the same width.
    fn may_root(&self, root: usize, look: &Look) -> bool {
        let elem = self.patterns[root].elem;
        if elem == look.elem { self.may_be(root, look) } else { elem.bits() == look.elem.bits() }
    }

    fn may_be(&self, stmt: usize, look: &Look) -> bool {
        let pattern = &self.patterns[stmt];
        pattern.elem == look.elem
            && pattern.forms.iter().any(|form| match form {
                Form::OnChip { .. } => true,
                Form::InHbm { .. } => look.in_memory,
                Form::Splat(_) | Form::Closed => look.constant,
                Form::Same { operand } | Form::TimesOne { operand, .. } => self.may_be(*operand, look),
                Form::Node { operator, .. } => look.operators.contains(operator),
            })
    }
}

/// The views of d0 that a statement may be read as.
fn rim(
    instr: &Instr,
    stmt: &act_isa::Stmt,
    before: &[Vec<(usize, SymbolicView)>],
) -> Vec<(usize, SymbolicView)> {
    match (&stmt.op, stmt.operands.as_slice()) {
        (OpKind::Parameter(k), []) => match instr.inputs.get(*k as usize) {
            Some(Slice::Hbm(window)) => vec![(*k as usize, SymbolicView::window(window))],
            _ => Vec::new(),
        },
        (op, [operand]) => before[*operand]
            .iter()
            .flat_map(|(input, view)| {
                view.through(op, stmt.elem, &stmt.dims).into_iter().map(|v| (*input, v))
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn forms_of(
    isa: &Isa,
    instr: &Instr,
    stmt: &act_isa::Stmt,
    before: &[Pattern],
) -> Result<Vec<Form>, UnmatchableError> {
    Ok(match (&stmt.op, stmt.operands.as_slice()) {
        (OpKind::Parameter(k), _) => match instr.inputs.get(*k as usize) {
            Some(Slice::OnChip(slice)) if usize::from(slice.buffer.0) < isa.buffers.len() => {
                let lens = slice.len.iter().map(Polynomial::of).collect();
                vec![Form::OnChip { input: *k as usize, buffer: slice.buffer, lens }]
            }
            Some(Slice::Hbm(_)) => Vec::new(),
            _ => return Err(UnmatchableError::Dangling("a parameter")),
        },
        // The elements of a list may differ.
        (OpKind::Constant(SymConst::Literal(list)), _) if list.splat_value().is_none() => Vec::new(),
        (OpKind::Constant(c), _) => vec![Form::Splat(c.clone())],
        (OpKind::Broadcast { .. } | OpKind::Reshape | OpKind::Copy, [operand])
            if splat_of(&before[*operand]).is_some() =>
        {
            splat_of(&before[*operand]).into_iter().map(|c| Form::Splat(c.clone())).collect()
        }
        (OpKind::Copy, [operand]) => vec![Form::Same { operand: *operand }],
        (op, operands) => {
            let mut forms = Vec::new();
            if let (OpKind::BitcastConvert, &[operand]) = (op, operands)
                && before[operand].elem.bits() == stmt.elem.bits()
            {
                forms.extend(
                    before[operand].forms.iter().filter(|f| matches!(f, Form::OnChip { .. })).cloned(),
                );
            }
            if matches!(op, OpKind::Binary(Binary::Multiply))
                && stmt.elem == ElemType::F32
                && let [a, b] = *operands
            {
                for (operand, factor) in [(a, b), (b, a)] {
                    if let Some(SymConst::F32Attr(attr)) = splat_of(&before[factor]) {
                        forms.push(Form::TimesOne { operand, attr: *attr });
                    }
                }
            }
            forms.push(Form::Node {
                operator: OperatorNumber::of(op.name()),
                op: op.clone(),
                operands: operands.to_vec(),
                commutes: is_commutative(op) && operands.first() != operands.last(),
            });
            forms
        }
    })
}

/// The operand of a statement that only re-types its bits, width kept.
fn retyped(stmts: &[act_isa::Stmt], at: usize) -> Option<usize> {
    match (&stmts[at].op, stmts[at].operands.as_slice()) {
        (OpKind::BitcastConvert, &[operand]) if stmts[operand].elem.bits() == stmts[at].elem.bits() => {
            Some(operand)
        }
        _ => None,
    }
}

fn splat_of(pattern: &Pattern) -> Option<&SymConst> {
    match pattern.forms.as_slice() {
        [Form::Splat(c)] => Some(c),
        _ => None,
    }
}

fn used_inputs(stmts: &[act_isa::Stmt], roots: &[usize]) -> Vec<usize> {
    let mut used = Vec::new();
    let mut seen = vec![false; stmts.len()];
    let mut todo = roots.to_vec();
    while let Some(s) = todo.pop() {
        if s >= stmts.len() || std::mem::replace(&mut seen[s], true) {
            continue;
        }
        if let OpKind::Parameter(k) = stmts[s].op {
            used.push(k as usize);
        }
        todo.extend(&stmts[s].operands);
    }
    used
}

/// The statements whose value a store puts at a strided place: from the root down through movement operators. A level
/// that can be passed without a condition is not kept, unless it is the same bits as another type.
fn store_targets(instr: &Instr, output: usize, root: usize, window: SymbolicView) -> Vec<Target> {
    let stmts = &instr.computation.stmts;
    let mut targets = Vec::new();
    let mut levels = vec![(root, window)];
    while let Some((at, view)) = levels.pop() {
        let stmt = &stmts[at];
        let deeper = match stmt.operands.as_slice() {
            [operand] => view
                .back_through(&stmt.op, stmts[*operand].elem, &stmts[*operand].dims)
                .into_iter()
                .map(|v| (*operand, v))
                .collect(),
            _ => Vec::new(),
        };
        let passed = |(_, v): &(usize, SymbolicView)| v.side == view.side;
        if !deeper.iter().any(passed) || retyped(stmts, at).is_some() {
            targets.push(Target::Store { output, root: at, view });
        }
        levels.extend(deeper);
    }
    targets
}
