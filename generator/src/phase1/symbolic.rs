//! Views of d0 whose lengths and strides are polynomials over an instruction's attributes: what the movement operators
//! at the rim of its semantics make of an HBM window. Matching a tensor's place against such a view replaces byte-level
//! rewriting. Knows no e-graph.

use super::polynomial::{Polynomial, Solution};
use act_hlo::{ElemType, OpKind};
use act_isa::{Expr, HbmWindow, SymOp, View};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SymbolicView {
    pub(crate) elem: ElemType,
    /// (length, byte stride) per dimension.
    pub(crate) dims: Vec<(Polynomial, Polynomial)>,
    /// Equations that must hold for the view to be strided at all.
    pub(crate) side: Vec<(Polynomial, Polynomial)>,
}

impl SymbolicView {
    /// The bytes of a window.
    pub(crate) fn window(window: &HbmWindow) -> SymbolicView {
        let dims = window.dims.iter().map(|(len, stride)| (Polynomial::of(len), Polynomial::of(stride)));
        SymbolicView { elem: ElemType::U8, dims: dims.collect(), side: Vec::new() }
    }

    /// The possible views of `op(x)`, whose type is `elem[dims]`, when this is x's.
    pub(crate) fn through(&self, op: &SymOp, elem: ElemType, dims: &[Expr]) -> Vec<SymbolicView> {
        match op {
            OpKind::Copy => vec![self.clone()],
            OpKind::Reshape => self.reshaped(dims),
            OpKind::BitcastConvert => self.bitcast(elem).into_iter().collect(),
            OpKind::Transpose { perm } => {
                let turned: Option<Vec<_>> = perm.iter().map(|&p| self.dims.get(p).cloned()).collect();
                turned.into_iter().map(|dims| SymbolicView { dims, ..self.clone() }).collect()
            }
            OpKind::Broadcast { dims: to } => {
                let zero = Polynomial::constant(0);
                let mut out: Vec<_> = dims.iter().map(|d| (Polynomial::of(d), zero.clone())).collect();
                for (from, &to) in self.dims.iter().zip(to) {
                    match out.get_mut(to) {
                        Some(slot) => slot.1 = from.1.clone(),
                        None => return Vec::new(),
                    }
                }
                vec![SymbolicView { dims: out, ..self.clone() }]
            }
            _ => Vec::new(),
        }
    }

    /// The possible places of x, of type `elem[dims]`, when `op(x)` lies at this view.
    pub(crate) fn back_through(&self, op: &SymOp, elem: ElemType, dims: &[Expr]) -> Vec<SymbolicView> {
        match op {
            OpKind::Copy => vec![self.clone()],
            OpKind::Reshape => self.reshaped(dims),
            OpKind::BitcastConvert => self.bitcast(elem).into_iter().collect(),
            OpKind::Transpose { perm } => {
                let mut out = vec![None; perm.len()];
                for (dim, &p) in self.dims.iter().zip(perm) {
                    match out.get_mut(p) {
                        Some(slot) => *slot = Some(dim.clone()),
                        None => return Vec::new(),
                    }
                }
                let dims: Option<Vec<_>> = out.into_iter().collect();
                dims.into_iter().map(|dims| SymbolicView { dims, ..self.clone() }).collect()
            }
            _ => Vec::new(),
        }
    }

    /// States that a concrete view has this form. The stride of a dimension of length 1 means nothing.
    pub(crate) fn unify(&self, view: &View, solution: &mut Solution<'_>) -> bool {
        self.elem == view.elem
            && self.dims.len() == view.dims.len()
            && self.dims.iter().zip(&view.dims).all(|((len, stride), &(n, step))| {
                i64::try_from(n).is_ok_and(|n| solution.equate(len, n))
                    && (n == 1 || solution.equate(stride, step))
            })
            && self.side.iter().all(|(a, b)| solution.equate_both(a, b))
    }

    /// States the lengths alone, for a tensor that may be laid out as the instruction likes.
    pub(crate) fn unify_lengths(&self, lengths: &[u64], solution: &mut Solution<'_>) -> bool {
        self.dims.len() == lengths.len()
            && self
                .dims
                .iter()
                .zip(lengths)
                .all(|((len, _), &n)| i64::try_from(n).is_ok_and(|n| solution.equate(len, n)))
            && self.side.iter().all(|(a, b)| solution.equate_both(a, b))
    }

    fn bitcast(&self, elem: ElemType) -> Option<SymbolicView> {
        let (from, to) = (self.elem.bytes() as i64, elem.bytes() as i64);
        let mut cast = SymbolicView { elem, ..self.clone() };
        if from > to {
            cast.dims.push((Polynomial::constant(from / to), Polynomial::constant(to)));
        } else if from < to {
            let (len, stride) = cast.dims.pop()?;
            if len != Polynomial::constant(to / from) || stride != Polynomial::constant(from) {
                return None;
            }
        }
        Some(cast)
    }

    fn reshaped(&self, dims: &[Expr]) -> Vec<SymbolicView> {
        let one = Polynomial::constant(1);
        let to: Vec<Polynomial> = dims.iter().map(Polynomial::of).collect();
        let from: Vec<_> = self.dims.iter().filter(|d| d.0 != one).cloned().collect();
        let wanted: Vec<_> = to.iter().filter(|&len| *len != one).cloned().collect();
        let mut found = Vec::new();
        regroup(&from, &wanted, &mut Vec::new(), &mut self.side.clone(), &mut found);
        found
            .into_iter()
            .map(|(strided, side)| {
                let mut rest = strided.into_iter();
                let dims = to.iter().map(|len| {
                    let taken = if *len == one { None } else { rest.next() };
                    taken.unwrap_or_else(|| (len.clone(), Polynomial::constant(0)))
                });
                SymbolicView { elem: self.elem, dims: dims.collect(), side }
            })
            .collect()
    }
}

type Dim = (Polynomial, Polynomial);
type Equations = Vec<(Polynomial, Polynomial)>;

/// Cuts both lists into groups of equal products and gives every wanted length its stride; all ways are found.
fn regroup(
    from: &[Dim],
    to: &[Polynomial],
    done: &mut Vec<Dim>,
    side: &mut Equations,
    found: &mut Vec<(Vec<Dim>, Equations)>,
) {
    if from.is_empty() && to.is_empty() {
        found.push((done.clone(), side.clone()));
        return;
    }
    for i in 1..=from.len() {
        let product = from[..i].iter().fold(Polynomial::constant(1), |p, d| p.times(&d.0));
        for j in 1..=to.len() {
            if to[..j].iter().fold(Polynomial::constant(1), |p, len| p.times(len)) != product {
                continue;
            }
            for (step, equations) in merged(&from[..i]) {
                let (dims_before, side_before) = (done.len(), side.len());
                let mut stride = step;
                let mut group = Vec::new();
                for len in to[..j].iter().rev() {
                    group.push((len.clone(), stride.clone()));
                    stride = stride.times(len);
                }
                done.extend(group.into_iter().rev());
                side.extend(equations);
                regroup(&from[i..], &to[j..], done, side, found);
                done.truncate(dims_before);
                side.truncate(side_before);
            }
            return;
        }
    }
}

/// The ways in which adjacent dimensions are one: the stride of the result, and the equations under which it is so.
fn merged(dims: &[Dim]) -> Vec<(Polynomial, Equations)> {
    let [outer, rest @ ..] = dims else { return Vec::new() };
    if rest.is_empty() {
        return vec![(outer.1.clone(), Vec::new())];
    }
    let one = Polynomial::constant(1);
    let mut ways = Vec::new();
    for (step, equations) in merged(rest) {
        let reach = rest.iter().fold(step.clone(), |p, d| p.times(&d.0));
        if reach == outer.1 {
            ways.push((step, equations));
            continue;
        }
        let with = |equation: (Polynomial, Polynomial)| {
            let mut all = equations.clone();
            all.push(equation);
            all
        };
        // The outer dimension has one element, or continues exactly where the inner ones end.
        ways.push((step.clone(), with((outer.0.clone(), one.clone()))));
        ways.push((step, with((outer.1.clone(), reach))));
    }
    // All inner dimensions have one element.
    let inner = rest.iter().map(|d| (d.0.clone(), one.clone())).collect();
    ways.push((outer.1.clone(), inner));
    if let Some(unconditional) = ways.iter().position(|(_, equations)| equations.is_empty()) {
        return vec![ways.swap_remove(unconditional)];
    }
    let unequal = |(a, b): &(Polynomial, Polynomial)| match (a.as_constant(), b.as_constant()) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    };
    ways.retain(|(_, equations)| !equations.iter().any(unequal));
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alpha(k: u16) -> Expr {
        Expr::Alpha(k)
    }
    fn mul(a: Expr, b: i64) -> Expr {
        Expr::Mul(Box::new(a), Box::new(Expr::Int(b)))
    }

    #[test]
    fn a_flat_window_splits_into_rows_of_words() {
        // d0[addr :+ 128n] read as bf16[n, 64].
        let flat = HbmWindow { start: Expr::Beta(0), dims: vec![(mul(alpha(0), 128), Expr::Int(1))] };
        let dims = [alpha(0), Expr::Int(64), Expr::Int(2)];
        let bytes = SymbolicView::window(&flat).through(&OpKind::Reshape, ElemType::U8, &dims);
        assert_eq!(bytes.len(), 1);
        let words = bytes[0].through(&OpKind::BitcastConvert, ElemType::BF16, &dims[..2]);
        let strides: Vec<_> = words[0].dims.iter().map(|d| d.1.as_constant()).collect();
        assert_eq!(strides, [Some(128), Some(2)]);
        // And back again.
        let back = words[0].back_through(&OpKind::BitcastConvert, ElemType::U8, &dims);
        assert_eq!(back, bytes);
        let flat_again = back[0].back_through(
            &OpKind::Reshape,
            ElemType::U8,
            &flat.dims.iter().map(|d| d.0.clone()).collect::<Vec<_>>(),
        );
        assert_eq!(flat_again, [SymbolicView::window(&flat)]);
    }

    #[test]
    fn merging_strided_rows_is_possible_under_equations_only() {
        // Rows of 16 bytes, `stride` apart, as one dimension of 16·rows.
        let rows = HbmWindow {
            start: Expr::Beta(0),
            dims: vec![(alpha(0), alpha(1)), (Expr::Int(16), Expr::Int(1))],
        };
        let views = SymbolicView::window(&rows).through(&OpKind::Reshape, ElemType::U8, &[mul(alpha(0), 16)]);
        assert_eq!(views.len(), 2);
        assert!(views.iter().all(|v| !v.side.is_empty()));
    }
}
