//! What an instruction computes: the concrete tensor computation g_θ(α) of ACT's appendix A as a graph of act-hlo.
//! Knows nothing of addresses: a slice contributes its shape only.

use crate::AttrVal;
use crate::constant::{ConstantError, f32_scalar, int_scalar};
use crate::control::ControlError;
use crate::expr::{Env, EvalExprError, Expr};
use crate::model::{AttrKind, Instr, Isa, Slice, SymConst};
use act_hlo::{ElemType, Graph, GraphError, NodeId, Op, OpKind, Shape};

/// Why an instruction has no meaning for the given computational attributes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstantiateError {
    #[error("{instr} takes {expected} computational attributes, got {got}")]
    AlphaCount { instr: String, expected: usize, got: usize },
    #[error("attribute `{attr}` takes {expected}")]
    AlphaKind { attr: String, expected: &'static str },
    #[error("attribute `{attr}` = {value} is outside {min}..{max}")]
    AlphaRange { attr: String, value: i64, min: i64, max: i64 },
    #[error("requirement {index} does not hold")]
    Requirement { index: usize },
    #[error("{place}: {error}")]
    Expr { place: Position, error: EvalExprError },
    #[error("{place}: negative size {value}")]
    NegativeSize { place: Position, value: i64 },
    #[error("{place}: no such {what}")]
    Dangling { place: Position, what: &'static str },
    #[error("{place}: {error}")]
    Constant { place: Position, error: ConstantError },
    #[error("{place}: {error}")]
    Shape { place: Position, error: GraphError },
    #[error("{place}: declared {declared}, but it is {actual}")]
    Mismatch { place: Position, declared: Shape, actual: Shape },
    #[error("the cost: {error}")]
    Cost { error: EvalExprError },
    #[error("the control flow: {error}")]
    Control { error: ControlError },
    #[error("{outputs} outputs but {roots} roots")]
    RootCount { outputs: usize, roots: usize },
}

/// A part of an instruction's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Require(usize),
    Input(usize),
    Output(usize),
    Stmt(usize),
    Update(usize),
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Position::Require(k) => write!(f, "requirement {k}"),
            Position::Input(k) => write!(f, "input {k}"),
            Position::Output(k) => write!(f, "output {k}"),
            Position::Stmt(k) => write!(f, "statement {k}"),
            Position::Update(k) => write!(f, "update {k}"),
        }
    }
}

impl InstantiateError {
    /// The part of the description at fault; `None` when the attributes given are.
    pub fn place(&self) -> Option<Position> {
        match self {
            InstantiateError::Expr { place, .. }
            | InstantiateError::NegativeSize { place, .. }
            | InstantiateError::Dangling { place, .. }
            | InstantiateError::Constant { place, .. }
            | InstantiateError::Shape { place, .. }
            | InstantiateError::Mismatch { place, .. } => Some(*place),
            InstantiateError::Requirement { index } => Some(Position::Require(*index)),
            InstantiateError::AlphaCount { .. }
            | InstantiateError::AlphaKind { .. }
            | InstantiateError::AlphaRange { .. }
            | InstantiateError::Cost { .. }
            | InstantiateError::Control { .. }
            | InstantiateError::RootCount { .. } => None,
        }
    }
}

impl Slice {
    /// Type of the slice's value: `u8[len of every dimension]` in HBM, `elem[len ++ unit]` on chip.
    ///
    /// # Errors
    /// A length that has no value, is negative, or a buffer that does not exist.
    pub fn shape(&self, isa: &Isa, env: Env<'_>, place: Position) -> Result<Shape, InstantiateError> {
        match self {
            Slice::Hbm(window) => {
                let lens = window.dims.iter().map(|(len, _)| size(len, env, place));
                Ok(Shape::new(ElemType::U8, lens.collect::<Result<Vec<u64>, _>>()?))
            }
            Slice::OnChip(slice) => {
                let buffer = isa
                    .buffers
                    .get(usize::from(slice.buffer.0))
                    .ok_or(InstantiateError::Dangling { place, what: "buffer" })?;
                let lens = slice.len.iter().map(|len| size(len, env, place));
                let mut dims = lens.collect::<Result<Vec<u64>, _>>()?;
                dims.extend(&buffer.unit);
                Ok(Shape::new(buffer.elem, dims))
            }
        }
    }
}

impl Instr {
    /// Integer values of the computational attributes for [`Env`]; an f32 attribute has none.
    ///
    /// # Errors
    /// A wrong number of attributes, a wrong kind, a value outside the declared range, an f32 that is not finite.
    pub fn alpha_env(&self, alpha: &[AttrVal]) -> Result<Vec<Option<i64>>, InstantiateError> {
        if alpha.len() != self.alpha.len() {
            return Err(InstantiateError::AlphaCount {
                instr: self.name.clone(),
                expected: self.alpha.len(),
                got: alpha.len(),
            });
        }
        let check = |(decl, value): (&crate::AttrDecl, &AttrVal)| {
            let attr = || decl.name.clone();
            match (&decl.kind, value) {
                (&AttrKind::Int { min, max }, &AttrVal::Int(value)) if value < min || value > max => {
                    Err(InstantiateError::AlphaRange { attr: attr(), value, min, max })
                }
                (AttrKind::Int { .. }, &AttrVal::Int(value)) => Ok(Some(value)),
                (AttrKind::F32, &AttrVal::F32(bits)) if f32::from_bits(bits).is_finite() => Ok(None),
                (AttrKind::Int { .. }, AttrVal::F32(_)) => {
                    Err(InstantiateError::AlphaKind { attr: attr(), expected: "an integer" })
                }
                (AttrKind::F32, _) => {
                    Err(InstantiateError::AlphaKind { attr: attr(), expected: "a finite f32" })
                }
            }
        };
        self.alpha.iter().zip(alpha).map(check).collect()
    }

    /// g_θ(α): parameter k is input slice k, root k is output slice k. Requirements over alpha alone are checked.
    /// Registers have their initial values.
    ///
    /// # Errors
    /// Attributes out of range, or statements whose types do not fit together for these attributes.
    pub fn instantiate(&self, isa: &Isa, alpha: &[AttrVal]) -> Result<Graph, InstantiateError> {
        self.instantiate_with(isa, alpha, &isa.register_values())
    }

    /// As [`Instr::instantiate`], for given values of the registers.
    ///
    /// # Errors
    /// As [`Instr::instantiate`].
    pub fn instantiate_with(
        &self,
        isa: &Isa,
        alpha: &[AttrVal],
        registers: &[i64],
    ) -> Result<Graph, InstantiateError> {
        let alpha_ints = self.alpha_env(alpha)?;
        let env = Env { alpha: &alpha_ints, beta: &[], registers };
        for (index, require) in self.requires.iter().enumerate().filter(|(_, r)| !r.mentions_beta()) {
            let holds = require
                .eval(env)
                .map_err(|error| InstantiateError::Expr { place: Position::Require(index), error })?;
            if !holds {
                return Err(InstantiateError::Requirement { index });
            }
        }
        self.meaning(isa, alpha, registers)
    }

    /// g_θ(α) without a look at the requirements.
    pub(crate) fn meaning(
        &self,
        isa: &Isa,
        alpha: &[AttrVal],
        registers: &[i64],
    ) -> Result<Graph, InstantiateError> {
        let alpha_ints = self.alpha_env(alpha)?;
        let env = Env { alpha: &alpha_ints, beta: &[], registers };
        let mut graph = Graph::new(self.name.as_str());
        let mut params = Vec::with_capacity(self.inputs.len());
        for (k, slice) in self.inputs.iter().enumerate() {
            params.push(graph.parameter(slice.shape(isa, env, Position::Input(k))?));
        }
        let flat = match &self.structured {
            None => None,
            Some(structured) => {
                Some(structured.flatten(env).map_err(|error| InstantiateError::Control { error })?)
            }
        };
        let (computation, origin) = match &flat {
            None => (&self.computation, None),
            Some((computation, origin)) => (computation, Some(origin)),
        };
        let mut nodes: Vec<NodeId> = Vec::with_capacity(computation.stmts.len());
        for (k, stmt) in computation.stmts.iter().enumerate() {
            let place = Position::Stmt(origin.and_then(|o| o.get(k)).copied().unwrap_or(k));
            let dims = stmt.dims.iter().map(|d| size(d, env, place)).collect::<Result<Vec<u64>, _>>()?;
            let declared = Shape::new(stmt.elem, dims);
            let dangling = |what| InstantiateError::Dangling { place, what };
            let id = if let OpKind::Parameter(param) = stmt.op {
                let id = *params.get(param as usize).ok_or_else(|| dangling("input"))?;
                expect_shape(place, &declared, graph.shape(id))?;
                id
            } else {
                let constant = |c: &SymConst| match c {
                    SymConst::Literal(literal) => Ok(literal.clone()),
                    SymConst::Int(e) => {
                        let value = e.eval(env).map_err(|error| InstantiateError::Expr { place, error })?;
                        int_scalar(stmt.elem, value)
                            .map_err(|error| InstantiateError::Constant { place, error })
                    }
                    SymConst::F32Attr(attr) => match alpha.get(usize::from(*attr)) {
                        Some(&AttrVal::F32(bits)) => f32_scalar(stmt.elem, bits)
                            .map_err(|error| InstantiateError::Constant { place, error }),
                        _ => Err(dangling("f32 attribute")),
                    },
                };
                let value = |e: &Expr| e.eval(env).map_err(|error| InstantiateError::Expr { place, error });
                let op: Op = stmt.op.try_map(value, constant)?;
                if let Op::Constant(literal) = &op {
                    expect_shape(place, &declared, literal.shape())?;
                }
                let operands = stmt.operands.iter().map(|&at| nodes.get(at).copied());
                let operands =
                    operands.collect::<Option<Vec<NodeId>>>().ok_or_else(|| dangling("earlier statement"))?;
                graph
                    .add_declared(op, &operands, Some(&declared))
                    .map_err(|error| InstantiateError::Shape { place, error })?
            };
            if graph.node(id).name.is_empty() {
                graph.annotate(id).name = stmt.name.clone();
            }
            nodes.push(id);
        }

        if computation.roots.len() != self.outputs.len() {
            return Err(InstantiateError::RootCount {
                outputs: self.outputs.len(),
                roots: computation.roots.len(),
            });
        }
        for (k, (&root, slice)) in computation.roots.iter().zip(&self.outputs).enumerate() {
            let place = Position::Output(k);
            let id = *nodes.get(root).ok_or(InstantiateError::Dangling { place, what: "statement" })?;
            expect_shape(place, &slice.shape(isa, env, place)?, graph.shape(id))?;
            graph.add_root(id).map_err(|error| InstantiateError::Shape { place, error })?;
        }
        Ok(graph)
    }
}

fn size(e: &Expr, env: Env<'_>, place: Position) -> Result<u64, InstantiateError> {
    let value = e.eval(env).map_err(|error| InstantiateError::Expr { place, error })?;
    u64::try_from(value).map_err(|_| InstantiateError::NegativeSize { place, value })
}

fn expect_shape(place: Position, declared: &Shape, actual: &Shape) -> Result<(), InstantiateError> {
    if declared == actual {
        Ok(())
    } else {
        Err(InstantiateError::Mismatch { place, declared: declared.clone(), actual: actual.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Cond, Relation};
    use crate::model::{AttrDecl, Buffer, BufferId, BufferSlice, Computation, Hbm, HbmWindow, Stmt, SymOp};
    use act_hlo::Unary;

    fn n() -> Expr {
        Expr::Alpha(0)
    }

    fn stmt(name: &str, op: SymOp, operands: &[usize], elem: ElemType, dims: Vec<Expr>) -> Stmt {
        Stmt { name: name.into(), op, operands: operands.to_vec(), elem, dims }
    }

    /// The paper's load_rm (Fig. 6) with an exponential behind it.
    fn isa() -> Isa {
        let window = HbmWindow {
            start: Expr::Beta(0),
            dims: vec![(Expr::Mul(n().into(), Expr::Int(128).into()), Expr::Int(1))],
        };
        let out = BufferSlice { buffer: BufferId(0), start: vec![Expr::Beta(1)], len: vec![n()] };
        let beta = |name: &str| AttrDecl { name: name.into(), kind: AttrKind::Int { min: 0, max: i64::MAX } };
        Isa {
            name: "t".into(),
            hbm: Hbm { name: "d0".into(), size: 1 << 20, align: 1, ordered: false },
            buffers: vec![Buffer {
                name: "d1".into(),
                access: vec![128],
                unit: vec![64],
                elem: ElemType::BF16,
                align: vec![1],
                ..Buffer::default()
            }],
            instrs: vec![Instr {
                name: "load".into(),
                alpha: vec![AttrDecl { name: "n".into(), kind: AttrKind::Int { min: 1, max: 128 } }],
                beta: vec![beta("addr_in"), beta("addr_out")],
                inputs: vec![Slice::Hbm(window)],
                outputs: vec![Slice::OnChip(out)],
                requires: vec![Cond::Cmp(Relation::Ne, n(), Expr::Int(13))],
                cost: n(),
                computation: Computation {
                    stmts: vec![
                        stmt(
                            "x",
                            SymOp::Parameter(0),
                            &[],
                            ElemType::U8,
                            vec![Expr::Mul(n().into(), Expr::Int(128).into())],
                        ),
                        stmt("a", SymOp::Reshape, &[0], ElemType::U8, vec![n(), Expr::Int(64), Expr::Int(2)]),
                        stmt("b", SymOp::BitcastConvert, &[1], ElemType::BF16, vec![n(), Expr::Int(64)]),
                        stmt("y", SymOp::Unary(Unary::Exp), &[2], ElemType::BF16, vec![n(), Expr::Int(64)]),
                    ],
                    roots: vec![3],
                },
                ..Instr::default()
            }],
            ..Isa::default()
        }
    }

    #[test]
    fn load_rm_of_the_paper() {
        let isa = isa();
        let graph = isa.instrs[0].instantiate(&isa, &[AttrVal::Int(4)]).unwrap();
        assert_eq!(graph.params().len(), 1);
        assert_eq!(graph.shape(graph.params()[0]).to_string(), "u8[512]");
        assert_eq!(graph.roots().len(), 1);
        assert_eq!(graph.shape(graph.roots()[0]).to_string(), "bf16[4,64]");
        assert_eq!(graph.node(graph.roots()[0]).name, "y");
    }

    #[test]
    fn attributes_outside_the_description_are_refused() {
        let isa = isa();
        let instr = &isa.instrs[0];
        let errors = [
            instr.instantiate(&isa, &[]).unwrap_err(),
            instr.instantiate(&isa, &[AttrVal::Int(129)]).unwrap_err(),
            instr.instantiate(&isa, &[AttrVal::F32(0)]).unwrap_err(),
            instr.instantiate(&isa, &[AttrVal::Int(13)]).unwrap_err(),
        ];
        assert!(matches!(errors[0], InstantiateError::AlphaCount { expected: 1, got: 0, .. }));
        assert!(matches!(errors[1], InstantiateError::AlphaRange { value: 129, min: 1, max: 128, .. }));
        assert!(matches!(errors[2], InstantiateError::AlphaKind { .. }));
        assert!(matches!(errors[3], InstantiateError::Requirement { index: 0 }));
    }

    #[test]
    fn roots_have_the_type_of_their_slice() {
        let mut isa = isa();
        isa.instrs[0].computation.roots = vec![1];
        let error = isa.instrs[0].instantiate(&isa, &[AttrVal::Int(4)]).unwrap_err();
        assert!(matches!(error, InstantiateError::Mismatch { place: Position::Output(0), .. }), "{error}");
        isa.instrs[0].computation.roots = vec![3, 3];
        let error = isa.instrs[0].instantiate(&isa, &[AttrVal::Int(4)]).unwrap_err();
        assert!(matches!(error, InstantiateError::RootCount { outputs: 1, roots: 2 }));
    }

    #[test]
    fn a_parameter_is_declared_as_its_slice() {
        let mut isa = isa();
        isa.instrs[0].computation.stmts[0].elem = ElemType::S8;
        let error = isa.instrs[0].instantiate(&isa, &[AttrVal::Int(4)]).unwrap_err();
        assert!(matches!(error, InstantiateError::Mismatch { place: Position::Stmt(0), .. }), "{error}");
    }

    #[test]
    fn constants_take_the_type_of_their_statement() {
        let mut isa = isa();
        let constant = |value: i64| SymOp::Constant(SymConst::Int(Expr::Int(value)));
        isa.instrs[0].computation.stmts.push(stmt("c", constant(127), &[], ElemType::S8, vec![]));
        assert!(isa.instrs[0].instantiate(&isa, &[AttrVal::Int(4)]).is_ok());
        isa.instrs[0].computation.stmts[4].op = constant(128);
        let error = isa.instrs[0].instantiate(&isa, &[AttrVal::Int(4)]).unwrap_err();
        assert!(matches!(error, InstantiateError::Constant { place: Position::Stmt(4), .. }), "{error}");
    }
}
