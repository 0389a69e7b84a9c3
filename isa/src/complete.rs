//! What a description written for the released TAIDL tools leaves unsaid, said: ranges of computational attributes and
//! requirements that follow from the sizes of buffers, from the types of constants, and from the type that each slice
//! must have. The released language has no ranges, and its tools accept an instruction whose value has the type of its
//! slice for some attribute values only.
//!
//! Only legal uses are described: nothing that was possible for a well-typed instruction within its buffers is lost.

use crate::expr::{Cond, Env, Expr, Relation};
use crate::model::{AttrKind, Instr, Isa, Slice, Stmt, SymConst};
use crate::syntax::{Diagnostics, parse_unchecked};
use act_hlo::{ElemType, OpKind};

impl Isa {
    /// Reads a description whose attributes have no ranges, states what follows from the rest of it, and checks the
    /// whole. Attributes with a stated range keep it.
    ///
    /// # Errors
    /// As [`Isa::parse`]; what is found in the completed description is shown in its own text.
    pub fn parse_and_complete(text: &str, file: &str) -> Result<(Isa, Diagnostics), Diagnostics> {
        let mut isa = parse_unchecked(text, file)?;
        isa.complete();
        Isa::parse_with_warnings(&isa.print(), file)
    }

    /// States the ranges and requirements that follow.
    fn complete(&mut self) {
        let shapes: Vec<(ElemType, Vec<u64>, Vec<u64>)> =
            self.buffers.iter().map(|b| (b.elem, b.access.clone(), b.unit.clone())).collect();
        for instr in &mut self.instrs {
            let mut following = vec![];
            for slice in instr.inputs.iter().chain(&instr.outputs) {
                if let Slice::OnChip(slice) = slice
                    && let Some((_, access, _)) = shapes.get(usize::from(slice.buffer.0))
                {
                    for (len, &size) in slice.len.iter().zip(access) {
                        let size = i64::try_from(size).unwrap_or(i64::MAX);
                        following.push((Relation::Le, len.clone(), Expr::Int(size)));
                    }
                }
            }
            // The value of every slice, beside what the computation declares for it.
            let declared = |k: usize| {
                let is_param = |s: &&Stmt| s.op == OpKind::Parameter(k as u32);
                instr.computation.stmts.iter().find(is_param)
            };
            let roots = instr.computation.roots.iter().map(|&at| instr.computation.stmts.get(at));
            let params = (0..instr.inputs.len()).map(declared);
            let slices = instr.inputs.iter().chain(&instr.outputs);
            for (slice, stmt) in slices.zip(params.chain(roots)) {
                let Some(stmt) = stmt else { continue };
                let dims: Vec<Expr> = match slice {
                    Slice::Hbm(window) => window.dims.iter().map(|(len, _)| len.clone()).collect(),
                    Slice::OnChip(slice) => {
                        let unit = shapes.get(usize::from(slice.buffer.0)).map_or(&[][..], |s| &s.2);
                        let unit = unit.iter().map(|&d| Expr::Int(i64::try_from(d).unwrap_or(i64::MAX)));
                        slice.len.iter().cloned().chain(unit).collect()
                    }
                };
                // Types of different rank never agree; the checker says so.
                if dims.len() == stmt.dims.len() {
                    let pairs = dims.into_iter().zip(&stmt.dims);
                    following.extend(pairs.map(|(a, b)| (Relation::Eq, a, b.clone())));
                }
            }
            for (relation, a, b) in following {
                instr.state(relation, &a, &b);
            }
            instr.bound_by_requirements();
            instr.bound_by_types();
        }
    }
}

impl Instr {
    /// States `a relation b`: as a range where that is possible, as a requirement elsewhere; not at all where it
    /// always holds.
    fn state(&mut self, relation: Relation, a: &Expr, b: &Expr) {
        if a == b || self.narrow(relation, a, b) {
            return;
        }
        let always = Cond::Cmp(relation, a.clone(), b.clone());
        if always.eval(Env::default()) == Ok(true) || self.requires.contains(&always) {
            return;
        }
        // A polynomial identity such as `n * 4 = 4 * n` holds for every value; a false one fails for one of these.
        let probes = [1, 2, 3, 5, 7, 11, 64, 101];
        let holds = |shift: usize| {
            let alpha: Vec<Option<i64>> =
                (0..self.alpha.len()).map(|k| Some(probes[(k * 3 + shift) % probes.len()])).collect();
            always.eval(Env { alpha: &alpha, ..Env::default() }) == Ok(true)
        };
        if relation == Relation::Eq && (0..probes.len()).all(holds) {
            return;
        }
        self.requires.push(always);
    }

    /// Narrows the range of an attribute by `attribute relation number` in either order. False when it is no such
    /// relation.
    fn narrow(&mut self, relation: Relation, a: &Expr, b: &Expr) -> bool {
        let (attr, relation, bound) = match (a, b) {
            (Expr::Alpha(k), Expr::Int(v)) => (*k, relation, *v),
            (Expr::Int(v), Expr::Alpha(k)) => (*k, mirrored(relation), *v),
            _ => return false,
        };
        let Some(AttrKind::Int { min, max }) = self.alpha.get_mut(usize::from(attr)).map(|a| &mut a.kind)
        else {
            return false;
        };
        let (low, high) = match relation {
            Relation::Lt => (i64::MIN, bound.saturating_sub(1)),
            Relation::Le => (i64::MIN, bound),
            Relation::Gt => (bound.saturating_add(1), i64::MAX),
            Relation::Ge => (bound, i64::MAX),
            Relation::Eq => (bound, bound),
            Relation::Ne => return false,
        };
        let narrowed = ((*min).max(low), (*max).min(high));
        // An empty range cannot be spelled; the requirement stays and the checker reports it.
        if narrowed.0 > narrowed.1 {
            return false;
        }
        (*min, *max) = narrowed;
        true
    }

    /// Requirements that bound one attribute become its range.
    fn bound_by_requirements(&mut self) {
        let mut kept = Vec::new();
        for require in std::mem::take(&mut self.requires) {
            for part in conjuncts(require) {
                let ranged = match &part {
                    Cond::Cmp(relation, a, b) => self.narrow(*relation, a, b),
                    _ => false,
                };
                if !ranged {
                    kept.push(part);
                }
            }
        }
        self.requires = kept;
    }

    /// A size is at least 1. An attribute that is only ever the value of constants takes what their types hold.
    fn bound_by_types(&mut self) {
        for k in 0..self.alpha.len() {
            let Some(&AttrKind::Int { min: 0, max }) = self.alpha.get(k).map(|a| &a.kind) else { continue };
            let range = match self.uses_of(k as u16) {
                Uses { size: true, .. } => Some((1, max)),
                Uses { size: false, constants } if max == i64::MAX => constants
                    .into_iter()
                    .map(int_range)
                    .reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1))))
                    .flatten(),
                Uses { .. } => None,
            };
            if let (Some((min, max)), Some(attr)) = (range, self.alpha.get_mut(k))
                && min <= max
            {
                attr.kind = AttrKind::Int { min, max };
            }
        }
    }

    fn uses_of(&self, k: u16) -> Uses {
        let mentions = |e: &Expr| {
            let mut found = false;
            e.for_each_leaf(&mut |leaf| found |= *leaf == Expr::Alpha(k));
            found
        };
        let in_slice = |slice: &Slice| match slice {
            Slice::Hbm(w) => w.dims.iter().any(|(len, _)| mentions(len)),
            Slice::OnChip(s) => s.len.iter().any(mentions),
        };
        let mut size = self.inputs.iter().chain(&self.outputs).any(in_slice);
        let mut constants = Vec::new();
        for stmt in &self.computation.stmts {
            size |= stmt.dims.iter().any(mentions);
            if stmt.op == OpKind::Constant(SymConst::Int(Expr::Alpha(k))) {
                constants.push(stmt.elem);
            }
        }
        Uses { size, constants }
    }
}

/// Where an attribute occurs.
struct Uses {
    /// In the size of a slice or a value.
    size: bool,
    /// Types of the constants whose value it is.
    constants: Vec<ElemType>,
}

fn mirrored(relation: Relation) -> Relation {
    match relation {
        Relation::Lt => Relation::Gt,
        Relation::Le => Relation::Ge,
        Relation::Gt => Relation::Lt,
        Relation::Ge => Relation::Le,
        Relation::Eq | Relation::Ne => relation,
    }
}

fn conjuncts(cond: Cond) -> Vec<Cond> {
    match cond {
        Cond::And(a, b) => [conjuncts(*a), conjuncts(*b)].concat(),
        other => vec![other],
    }
}

/// Smallest and largest value of an integer type within 64 bits; `None` for others.
fn int_range(elem: ElemType) -> Option<(i64, i64)> {
    let bits = elem.bits();
    if elem.is_signed_int() {
        Some((i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)))
    } else if elem.is_unsigned_int() && bits < 64 {
        Some((0, (1i64 << bits) - 1))
    } else {
        None
    }
}
