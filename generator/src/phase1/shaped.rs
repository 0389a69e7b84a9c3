//! Instructions that reshape what they have summed before they compute on: `add(old, reshape(dot(a, b)))` is
//! `reshape(add(reshape(old), dot(a, b)))`, whose operators stand next to each other as they do in kernels. Exact.
//! Knows no e-graph and no accelerator.

use super::language::{is_elementwise, is_movement};
use act_hlo::OpKind;
use act_isa::{Computation, Expr, Instr, Stmt};

/// A computation under construction.
struct Rebuilt {
    stmts: Vec<Stmt>,
}

impl Rebuilt {
    fn push(&mut self, stmt: Stmt) -> usize {
        self.stmts.push(Stmt { name: format!("s{}", self.stmts.len()), ..stmt });
        self.stmts.len() - 1
    }

    /// What reshapes are of in the end, if that is computed and of another shape.
    fn summed(&self, at: usize) -> Option<usize> {
        let mut from = at;
        while let (OpKind::Reshape, &[x]) = (&self.stmts[from].op, &self.stmts[from].operands[..]) {
            from = x;
        }
        let op = &self.stmts[from].op;
        let given = matches!(op, OpKind::Parameter(_) | OpKind::Constant(_)) || is_movement(op);
        (from != at && !given && self.stmts[from].dims != self.stmts[at].dims).then_some(from)
    }

    /// The value with other dimensions and the same elements.
    fn reshaped(&mut self, at: usize, dims: &[Expr]) -> usize {
        let stmt = self.stmts[at].clone();
        let spread = matches!(&stmt.op, OpKind::Broadcast { dims } if dims.is_empty());
        match self.summed(at) {
            Some(x) if self.stmts[x].dims == dims => x,
            _ if spread => self.push(Stmt { dims: dims.to_vec(), ..stmt }),
            _ if stmt.dims.is_empty() || stmt.dims == dims => at,
            _ => self.push(Stmt {
                op: OpKind::Reshape,
                operands: vec![at],
                elem: stmt.elem,
                dims: dims.to_vec(),
                name: String::new(),
            }),
        }
    }
}

/// The instruction with its reshapes of computed values behind the elementwise operators that follow them; `None`
/// where there are none.
pub(crate) fn shaped_last(instr: &Instr) -> Option<Instr> {
    let Computation { stmts, roots } = &instr.computation;
    let mut rebuilt = Rebuilt { stmts: Vec::with_capacity(stmts.len()) };
    let mut place = Vec::with_capacity(stmts.len());
    let mut moved = false;
    for stmt in stmts {
        let operands: Vec<usize> = stmt.operands.iter().map(|&o| place[o]).collect();
        let inner =
            if is_elementwise(&stmt.op) { operands.iter().find_map(|&o| rebuilt.summed(o)) } else { None };
        let Some(inner) = inner else {
            place.push(rebuilt.push(Stmt { operands, ..stmt.clone() }));
            continue;
        };
        moved = true;
        let dims = rebuilt.stmts[inner].dims.clone();
        let operands = operands.into_iter().map(|o| rebuilt.reshaped(o, &dims)).collect();
        let computed = rebuilt.push(Stmt { operands, dims, ..stmt.clone() });
        place.push(rebuilt.push(Stmt { op: OpKind::Reshape, operands: vec![computed], ..stmt.clone() }));
    }
    let roots = roots.iter().map(|&r| place[r]).collect();
    moved.then(|| {
        let computation = Computation { stmts: rebuilt.stmts, roots };
        Instr { computation: computation.without_unused(), ..instr.clone() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::random::{SplitMix64, Values, random_literal};
    use act_isa::Isa;

    /// One instruction on slots of 1 x 4 x 4; `body` gives `r` from `x`, `y`: s32[1,4] and `old`: s32[1,4,4].
    fn instr(body: &str) -> (Isa, Instr) {
        let text = format!(
            "isa t  hbm d0: 1 KiB  buffer z: s32[8 | 4] init 0  buffer za: s32[2, 4 | 4]
instr f beta(a, b, t) {{ in z[a :+ 1]  in z[b :+ 1]  in za[t :+ 1, 0 :+ 4]  out za[t :+ 1, 0 :+ 4]
  computation {{
    x = s32[1,4] parameter(0)  y = s32[1,4] parameter(1)  old = s32[1,4,4] parameter(2)
    p = s32[4,4] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
    {body}
    return r
  }} }}"
        );
        let isa = Isa::parse(&text, "t.taidl").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let instr = isa.instrs[0].clone();
        (isa, instr)
    }

    /// Operators in order, and whether both computations give the same on random slots.
    fn shaped(body: &str) -> Option<Vec<&'static str>> {
        let (isa, instr) = instr(body);
        let shaped = shaped_last(&instr)?;
        let [before, after] =
            [&instr, &shaped].map(|i| i.instantiate(&isa, &[]).unwrap_or_else(|e| panic!("{e}")));
        for seed in 0..4 {
            let mut rng = SplitMix64::new(seed);
            let mut draw = |p: &act_hlo::NodeId| random_literal(&mut rng, before.shape(*p), Values::Full);
            let slots: Vec<act_hlo::Literal> = before.params().iter().map(&mut draw).collect();
            let [before, after] =
                [&before, &after].map(|g| act_hlo::eval(g, &slots).unwrap_or_else(|e| panic!("{e}")));
            assert_eq!(before, after, "{body}");
        }
        let given = |s: &&Stmt| !matches!(s.op, OpKind::Parameter(_));
        Some(shaped.computation.stmts.iter().filter(given).map(|s| s.op.name()).collect())
    }

    #[test]
    fn reshapes_go_behind_what_is_computed_from_the_sum() {
        let added = "q = s32[1,4,4] reshape(p)  r = s32[1,4,4] add(old, q)";
        assert_eq!(shaped(added), Some(vec!["dot", "reshape", "add", "reshape"]));
        let clamped = "q = s32[1,4,4] reshape(p)  s = s32[1,4,4] subtract(old, q)  zero = s32[] constant(0)
    top = s32[] constant(1000)  z = s32[1,4,4] constant(0)  m = s32[1,4,4] maximum(s, z)
    r = s32[1,4,4] clamp(zero, m, top)";
        let found = shaped(clamped).expect("a reshape to move");
        assert_eq!(found.last(), Some(&"reshape"));
        assert_eq!(found.iter().filter(|op| **op == "reshape").count(), 2, "{found:?}");
    }

    #[test]
    fn a_reshape_of_a_reshape_goes_behind_too() {
        let twice = "q = s32[2,2,4] reshape(p)  t = s32[1,4,4] reshape(q)  r = s32[1,4,4] add(old, t)";
        assert_eq!(shaped(twice), Some(vec!["dot", "reshape", "add", "reshape"]));
    }

    #[test]
    fn what_is_shaped_last_already_stays() {
        assert_eq!(
            shaped("o = s32[4,4] reshape(old)  q = s32[4,4] add(o, p)  r = s32[1,4,4] reshape(q)"),
            None
        );
        assert_eq!(shaped("r = s32[1,4,4] reshape(p)"), None);
    }
}
