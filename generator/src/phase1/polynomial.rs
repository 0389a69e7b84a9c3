//! Sizes of a description as polynomials over computational attributes, and solving those attributes from equations
//! with concrete sizes. Knows no e-graph.

use act_hlo::OpKind;
use act_isa::expr::Relation;
use act_isa::{AttrKind, AttrVal, Cond, Env, Expr, Feasibility, Feasible, Instr, Stmt, SymConst};
use std::collections::BTreeMap;

/// A factor of a monomial.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Atom {
    Alpha(u16),
    /// An expression that is no polynomial (division, minimum, register, ..), compared by its text alone.
    Opaque(Expr),
}

/// Sum of coefficient · product of atoms. Exact in i128, so that no description overflows it silently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Polynomial(BTreeMap<Vec<Atom>, i128>);

impl Polynomial {
    pub(crate) fn constant(value: i64) -> Polynomial {
        let mut p = Polynomial::default();
        p.add_term(Vec::new(), i128::from(value));
        p
    }

    pub(crate) fn of(expr: &Expr) -> Polynomial {
        match expr {
            Expr::Int(v) => Polynomial::constant(*v),
            Expr::Alpha(k) => {
                let mut p = Polynomial::default();
                p.add_term(vec![Atom::Alpha(*k)], 1);
                p
            }
            Expr::Add(a, b) => Polynomial::of(a).plus(&Polynomial::of(b), 1),
            Expr::Sub(a, b) => Polynomial::of(a).plus(&Polynomial::of(b), -1),
            Expr::Mul(a, b) => Polynomial::of(a).times(&Polynomial::of(b)),
            Expr::Shl(a, b) if matches!(**b, Expr::Int(0..=62)) => {
                let Expr::Int(by) = **b else { return Polynomial::default() };
                Polynomial::of(a).times(&Polynomial::constant(1 << by))
            }
            other => {
                let mut p = Polynomial::default();
                p.add_term(vec![Atom::Opaque(other.clone())], 1);
                p
            }
        }
    }

    fn add_term(&mut self, atoms: Vec<Atom>, coefficient: i128) {
        let sum = self.0.entry(atoms.clone()).or_insert(0);
        *sum = sum.saturating_add(coefficient);
        if *sum == 0 {
            self.0.remove(&atoms);
        }
    }

    fn plus(mut self, other: &Polynomial, sign: i128) -> Polynomial {
        for (atoms, k) in &other.0 {
            self.add_term(atoms.clone(), k.saturating_mul(sign));
        }
        self
    }

    pub(crate) fn times(&self, other: &Polynomial) -> Polynomial {
        let mut product = Polynomial::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut atoms = [a.as_slice(), b.as_slice()].concat();
                atoms.sort();
                product.add_term(atoms, x.saturating_mul(*y));
            }
        }
        product
    }

    pub(crate) fn as_constant(&self) -> Option<i64> {
        match self.0.iter().next() {
            None => Some(0),
            Some((atoms, k)) if self.0.len() == 1 && atoms.is_empty() => i64::try_from(*k).ok(),
            Some(_) => None,
        }
    }

    /// The same polynomial with the solved attributes in place.
    fn reduced(&self, alpha: &[Option<i64>]) -> Polynomial {
        let mut reduced = Polynomial::default();
        for (atoms, k) in &self.0 {
            let (mut rest, mut coefficient) = (Vec::new(), *k);
            for atom in atoms {
                let known = match atom {
                    Atom::Alpha(a) => alpha.get(usize::from(*a)).copied().flatten(),
                    Atom::Opaque(expr) => expr.eval(Env { alpha, ..Env::default() }).ok(),
                };
                match known {
                    Some(v) => coefficient = coefficient.saturating_mul(i128::from(v)),
                    None => rest.push(atom.clone()),
                }
            }
            reduced.add_term(rest, coefficient);
        }
        reduced
    }

    /// The polynomial written out; `None` where a coefficient does not fit.
    fn expr(&self) -> Option<Expr> {
        let mut sum = Expr::Int(0);
        for (atoms, k) in &self.0 {
            let mut term = Expr::Int(i64::try_from(*k).ok()?);
            for atom in atoms {
                let factor = match atom {
                    Atom::Alpha(a) => Expr::Alpha(*a),
                    Atom::Opaque(expr) => expr.clone(),
                };
                term = Expr::Mul(term.into(), factor.into());
            }
            sum = Expr::Add(sum.into(), term.into());
        }
        Some(sum)
    }

    /// The polynomial with the solved attributes in place, where no more than one attribute is left and that one
    /// linearly.
    fn linear(&self, alpha: &[Option<i64>]) -> Option<Linear> {
        let (mut unknown, mut slope, mut rest) = (None, 0i128, 0i128);
        for (atoms, k) in &self.0 {
            let (mut of, mut coefficient) = (None, *k);
            for atom in atoms {
                let known = match atom {
                    Atom::Alpha(a) => alpha.get(usize::from(*a)).copied().flatten(),
                    Atom::Opaque(expr) => expr.eval(Env { alpha, ..Env::default() }).ok(),
                };
                match (known, atom) {
                    (Some(v), _) => coefficient = coefficient.saturating_mul(i128::from(v)),
                    (None, Atom::Alpha(a)) if of.is_none() => of = Some(*a),
                    (None, _) => return None,
                }
            }
            match of {
                None => rest = rest.saturating_add(coefficient),
                Some(_) if unknown.is_some() && unknown != of => return None,
                Some(_) => {
                    unknown = of;
                    slope = slope.saturating_add(coefficient);
                }
            }
        }
        Some(match unknown {
            Some(k) if slope != 0 => Linear::In { k, slope, rest },
            _ => Linear::Constant(rest),
        })
    }
}

/// A polynomial that at most one attribute is left in.
enum Linear {
    Constant(i128),
    /// `slope·alpha_k + rest`.
    In {
        k: u16,
        slope: i128,
        rest: i128,
    },
}

/// Attributes of one instruction while they are being solved.
#[derive(Clone, Debug)]
pub(crate) struct Solution<'a> {
    instr: &'a Instr,
    alpha: Vec<Option<AttrVal>>,
    ints: Vec<Option<i64>>,
    /// Equations that no attribute follows from by itself.
    pending: Vec<(Polynomial, i64)>,
}

impl<'a> Solution<'a> {
    pub(crate) fn new(instr: &'a Instr) -> Solution<'a> {
        let n = instr.alpha.len();
        Solution { instr, alpha: vec![None; n], ints: vec![None; n], pending: Vec::new() }
    }

    /// States `polynomial = value`. False when that is impossible.
    pub(crate) fn equate(&mut self, polynomial: &Polynomial, value: i64) -> bool {
        match polynomial.linear(&self.ints) {
            None => {
                self.pending.push((polynomial.reduced(&self.ints), value));
                true
            }
            Some(Linear::Constant(known)) => known == i128::from(value),
            Some(Linear::In { k, slope, rest }) => {
                let wanted = i128::from(value).saturating_sub(rest);
                wanted % slope == 0 && i64::try_from(wanted / slope).is_ok_and(|v| self.set_int(k, v))
            }
        }
    }

    /// States that two polynomials are equal.
    pub(crate) fn equate_both(&mut self, a: &Polynomial, b: &Polynomial) -> bool {
        self.equate(&a.clone().plus(b, -1), 0)
    }

    /// States that an integer attribute has this value.
    pub(crate) fn set_int(&mut self, k: u16, value: i64) -> bool {
        let index = usize::from(k);
        let Some(AttrKind::Int { min, max }) = self.instr.alpha.get(index).map(|d| &d.kind) else {
            return false;
        };
        if value < *min || value > *max {
            return false;
        }
        self.alpha[index] = Some(AttrVal::Int(value));
        self.ints[index] = Some(value);
        // Whatever waited for this attribute may now be decided.
        let waiting = std::mem::take(&mut self.pending);
        waiting.into_iter().all(|(p, v)| self.equate(&p, v))
    }

    /// States that an f32 attribute has these bits.
    pub(crate) fn set_f32(&mut self, k: u16, bits: u32) -> bool {
        let index = usize::from(k);
        match (self.instr.alpha.get(index).map(|d| &d.kind), self.alpha.get(index)) {
            (Some(AttrKind::F32), Some(None)) => {
                self.alpha[index] = Some(AttrVal::F32(bits));
                f32::from_bits(bits).is_finite()
            }
            (Some(AttrKind::F32), Some(Some(known))) => *known == AttrVal::F32(bits),
            _ => false,
        }
    }

    pub(crate) fn ints(&self) -> &[Option<i64>] {
        &self.ints
    }

    /// All attributes, those that no equation determines at their least values, or `None` when the instruction cannot
    /// be executed so: not even with the best addresses, where that can be decided.
    pub(crate) fn finish(&self, feasibility: &Feasibility) -> Option<Vec<AttrVal>> {
        let equation = |(polynomial, value): &(Polynomial, i64)| {
            Some(Cond::Cmp(Relation::Eq, polynomial.expr()?, Expr::Int(*value)))
        };
        let equations: Vec<Cond> = self.pending.iter().map(equation).collect::<Option<_>>()?;
        let ints = match feasibility.choose(&self.ints, &equations) {
            Feasible::With(ints) => ints,
            // What is known is enough, and phase 2 decides on the addresses.
            Feasible::Open if equations.is_empty() => self.ints.clone(),
            Feasible::Open | Feasible::Never => return None,
        };
        let value = |(k, known): (usize, &Option<AttrVal>)| match (known, ints.get(k)) {
            (Some(known), _) => Some(*known),
            (None, Some(Some(v))) => Some(AttrVal::Int(*v)),
            (None, _) => self.is_unused_f32(k).then_some(AttrVal::F32(0)),
        };
        self.alpha.iter().enumerate().map(value).collect()
    }

    /// Whether it is an f32 that this way through the semantics does not use.
    fn is_unused_f32(&self, k: usize) -> bool {
        let is = |c: &SymConst| matches!(c, SymConst::F32Attr(attr) if usize::from(*attr) == k);
        let uses = |stmt: &Stmt| matches!(&stmt.op, OpKind::Constant(c) if is(c));
        matches!(self.instr.alpha.get(k).map(|a| &a.kind), Some(AttrKind::F32))
            && !self.instr.computation.stmts.iter().any(uses)
    }

    /// The attributes as far as they are known.
    pub(crate) fn known(&self) -> &[Option<AttrVal>] {
        &self.alpha
    }

    /// The least legal value of an integer attribute.
    pub(crate) fn least(&self, k: u16) -> Option<i64> {
        match self.instr.alpha.get(usize::from(k))?.kind {
            AttrKind::Int { min, .. } => Some(min),
            AttrKind::F32 => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_isa::{AttrDecl, Isa};

    fn int(v: i64) -> Expr {
        Expr::Int(v)
    }
    fn alpha(k: u16) -> Expr {
        Expr::Alpha(k)
    }
    fn mul(a: Expr, b: Expr) -> Expr {
        Expr::Mul(Box::new(a), Box::new(b))
    }
    fn add(a: Expr, b: Expr) -> Expr {
        Expr::Add(Box::new(a), Box::new(b))
    }

    fn instr(ranges: &[(i64, i64)], requires: Vec<Cond>) -> (Instr, Feasibility) {
        let decl = |(k, &(min, max)): (usize, &(i64, i64))| AttrDecl {
            name: format!("a{k}"),
            kind: AttrKind::Int { min, max },
        };
        let instr = Instr {
            name: "i".to_owned(),
            alpha: ranges.iter().enumerate().map(decl).collect(),
            beta: vec![AttrDecl { name: "addr".to_owned(), kind: AttrKind::Int { min: 0, max: 127 } }],
            requires,
            cost: int(1),
            ..Instr::default()
        };
        let feasibility = Feasibility::of(&Isa::default(), &instr);
        (instr, feasibility)
    }

    #[test]
    fn attributes_follow_from_linear_forms_and_products() {
        let (i, feasibility) = instr(&[(1, 64), (1, 64)], Vec::new());
        let mut s = Solution::new(&i);
        assert!(s.equate(&Polynomial::of(&mul(alpha(0), alpha(1))), 24));
        assert!(s.equate(&Polynomial::of(&add(mul(int(2), alpha(1)), int(3))), 11));
        assert_eq!(s.finish(&feasibility), Some(vec![AttrVal::Int(6), AttrVal::Int(4)]));

        let mut odd = Solution::new(&i);
        assert!(!odd.equate(&Polynomial::of(&mul(int(2), alpha(0))), 7));
        let mut big = Solution::new(&i);
        assert!(!big.equate(&Polynomial::of(&alpha(0)), 65));
        let mut clash = Solution::new(&i);
        assert!(clash.equate(&Polynomial::of(&mul(alpha(0), alpha(1))), 24));
        assert!(!clash.equate(&Polynomial::of(&alpha(1)), 5));
    }

    #[test]
    fn a_free_attribute_takes_the_smallest_value_its_conditions_allow() {
        let aligned = Cond::Cmp(Relation::Eq, Expr::Mod(Box::new(alpha(1)), Box::new(int(4))), int(0));
        let wide = Cond::Cmp(Relation::Ge, alpha(1), alpha(0));
        let (i, feasibility) = instr(&[(1, 16), (0, 1000)], vec![aligned, wide]);
        let mut s = Solution::new(&i);
        assert!(s.equate(&Polynomial::of(&alpha(0)), 9));
        assert_eq!(s.finish(&feasibility), Some(vec![AttrVal::Int(9), AttrVal::Int(12)]));
    }

    #[test]
    fn a_condition_over_addresses_fails_where_no_address_helps() {
        let fits = |n| Cond::Cmp(Relation::Le, add(Expr::Beta(0), alpha(0)), int(n));
        let (i, feasibility) = instr(&[(1, 16)], vec![fits(128)]);
        let mut s = Solution::new(&i);
        assert!(s.equate(&Polynomial::of(&alpha(0)), 16));
        assert!(s.finish(&feasibility).is_some());
        let (i, feasibility) = instr(&[(1, 16)], vec![fits(15)]);
        let mut s = Solution::new(&i);
        assert!(s.equate(&Polynomial::of(&alpha(0)), 16));
        assert_eq!(s.finish(&feasibility), None);
    }
}
