//! What the released TAIDL spells otherwise than HLO: other names of operators, selection by a comparison, and
//! `TYPE[1]` where HLO has a scalar (its grammar cannot spell one).

use super::ast::StmtAst;
use super::diagnostic::{Diagnostic, Problem};
use super::lower_stmt::Block;
use super::parser::Parsed;
use crate::expr::Expr;
use crate::model::{Stmt, SymOp};
use act_hlo::{Binary, Direction, ElemType, OpKind};

/// Other spellings in published descriptions.
const ALIASES: [(&str, &str); 9] = [
    ("exp", "exponential"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("div", "divide"),
    ("bitcvt", "bitcast-convert"),
    ("concat", "concatenate"),
    ("shift-right", "shift-right-arithmetic"),
];

/// HLO's name of an operator.
pub(super) fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, canonical)| canonical)
}

/// An elementwise operator of two operands by its HLO name or an alias.
pub(super) fn combiner(name: &str) -> Option<Binary> {
    Binary::from_name(canonical(name))
}

/// The combiner of `to_apply=`: an operator, or a computation named after one (`add_f32`, `max_func_s32`, `add.1`).
pub(super) fn named_combiner(name: &str) -> Option<Binary> {
    combiner(name).or_else(|| combiner(name.split(['-', '.']).next()?))
}

/// The comparison in `select_lt(a, b, c, d)`, which is `a < b ? c : d`, and its like.
pub(super) fn selection(op: &str) -> Option<Direction> {
    let word = op.strip_prefix("select-")?;
    Direction::from_name(&word.strip_suffix("-var").unwrap_or(word).to_ascii_uppercase())
}

fn is_one(stmt: &Stmt) -> bool {
    stmt.dims == [Expr::Int(1)]
}

impl Block {
    /// Operands of the select that `select_lt` and its like stand for; the comparison becomes a statement.
    pub(super) fn selection(
        &mut self,
        direction: Direction,
        operands: &[usize],
        ast: &StmtAst,
    ) -> Parsed<Vec<usize>> {
        let &[a, b, on_true, on_false] = operands else {
            let what = format!("operands of `{}`", ast.op.text);
            let problem = Problem::Count { what, expected: 4, got: operands.len() };
            return Err(Diagnostic::error(ast.op.span, problem));
        };
        let wide = if is_one(&self.stmts[a]) { b } else { a };
        let dims = self.stmts[wide].dims.clone();
        let mut compared = vec![a, b];
        let op = self.fit_scalars(OpKind::Compare(direction), &mut compared, ast, &dims);
        let name = self.fresh(&ast.name.text, "pred");
        let pred = self.push(Stmt { name, op, operands: compared, elem: ElemType::Pred, dims }, ast.span);
        Ok(vec![pred, on_true, on_false])
    }

    /// Puts scalars in the place of operands of type `TYPE[1]` where the operator wants a scalar, and spreads them
    /// where it wants the result's shape.
    pub(super) fn fit_scalars(
        &mut self,
        op: SymOp,
        operands: &mut [usize],
        ast: &StmtAst,
        dims: &[Expr],
    ) -> SymOp {
        let wider = *dims != [Expr::Int(1)];
        let scalars = match &op {
            OpKind::Broadcast { dims: to } => {
                let ones = operands.first().is_some_and(|&x| is_one(&self.stmts[x]));
                let stretched = to.first().is_none_or(|&at| dims.get(at) != Some(&Expr::Int(1)));
                if ones && stretched {
                    operands[0] = self.scalar(operands[0], ast);
                    return OpKind::Broadcast { dims: Vec::new() };
                }
                return op;
            }
            OpKind::Reduce { .. } | OpKind::Pad { .. } | OpKind::DynamicSlice { .. } => 1..operands.len(),
            OpKind::DynamicUpdateSlice => 2..operands.len(),
            OpKind::Binary(_) | OpKind::Compare(_) | OpKind::Select | OpKind::Clamp | OpKind::Fma
                if wider =>
            {
                for operand in operands.iter_mut() {
                    if is_one(&self.stmts[*operand]) {
                        let scalar = self.scalar(*operand, ast);
                        *operand = self.spread(scalar, ast, dims);
                    }
                }
                return op;
            }
            _ => return op,
        };
        for operand in operands.get_mut(scalars).unwrap_or_default() {
            if is_one(&self.stmts[*operand]) {
                *operand = self.scalar(*operand, ast);
            }
        }
        op
    }

    /// The scalar of a value of type `TYPE[1]`.
    fn scalar(&mut self, at: usize, ast: &StmtAst) -> usize {
        let stmt = &self.stmts[at];
        let elem = stmt.elem;
        if matches!(&stmt.op, OpKind::Broadcast { dims } if dims.is_empty()) {
            return stmt.operands[0];
        }
        let name = self.fresh(&ast.name.text, "scalar");
        let op = OpKind::Reshape;
        self.push(Stmt { name, op, operands: vec![at], elem, dims: Vec::new() }, ast.span)
    }

    fn spread(&mut self, scalar: usize, ast: &StmtAst, dims: &[Expr]) -> usize {
        let elem = self.stmts[scalar].elem;
        let name = self.fresh(&ast.name.text, "splat");
        let op = OpKind::Broadcast { dims: Vec::new() };
        self.push(Stmt { name, op, operands: vec![scalar], elem, dims: dims.to_vec() }, ast.span)
    }

    /// Drops the stand-ins that nothing uses and renumbers the rest.
    pub(super) fn drop_spare(&mut self, roots: &mut [usize]) {
        let used = |at: usize| roots.contains(&at) || self.stmts.iter().any(|s| s.operands.contains(&at));
        let gone: Vec<usize> = self.spare.iter().copied().filter(|&at| !used(at)).collect();
        let moved = |at: &mut usize| *at -= gone.iter().filter(|&&g| g < *at).count();
        for &at in gone.iter().rev() {
            self.stmts.remove(at);
            self.spans.remove(at);
        }
        self.stmts.iter_mut().flat_map(|s| &mut s.operands).for_each(moved);
        roots.iter_mut().for_each(moved);
    }
}
