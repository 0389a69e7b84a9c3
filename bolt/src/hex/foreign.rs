//! Functions of elements that an operator of HLO defines: what `= hlo ".."` computes in concrete runs. Knows scalars only.

use super::syntax::{Function, Names, Type};
use act_hlo::{ElemType, Literal, Op, Shape, binary_f32, eval_op, parse_graph};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

/// An operator on scalars, made ready.
#[derive(Clone, Debug)]
pub(super) struct Foreign {
    op: Op,
    operands: Vec<ElemType>,
    result: ElemType,
    /// The evaluator's own function, where it gives one away.
    direct: Option<fn(f32, f32) -> f32>,
    /// Results so far of a function of one short operand.
    table: RefCell<HashMap<i64, i64>>,
}

impl Foreign {
    /// Reads the operator: its operands are the function's parameters, and all types have the names of HLO's.
    ///
    /// # Errors
    /// Why the text is no operator that takes these parameters in their order.
    pub(super) fn new(function: &Function, text: &str, names: &Names) -> Result<Foreign, String> {
        let elem = |ty: Type| match ty {
            Type::Elem(sym) => {
                let name = names.text(sym);
                let known = ElemType::ALL.into_iter().find(|elem| elem.name() == name);
                known
                    .filter(|elem| !elem.is_complex() && elem.bits() != 4)
                    .ok_or_else(|| format!("`{name}` is no type of HLO whose elements are integers"))
            }
            _ => Err("an operator of HLO takes elements".to_owned()),
        };
        let result = elem(function.result)?;
        let mut operands = Vec::new();
        let mut module = String::from("HloModule function\nENTRY main {\n");
        for (k, (name, ty)) in function.params.iter().enumerate() {
            let ty = elem(*ty)?;
            operands.push(ty);
            // Writing to a String cannot fail.
            let _ = writeln!(module, "  {} = {ty}[] parameter({k})", names.text(*name));
        }
        let _ = writeln!(module, "  ROOT result_of_it = {result}[] {text}\n}}");
        let graph = parse_graph(&module).map_err(|error| format!("no operator of HLO: {error}"))?;
        let root = graph.roots().first().map(|&id| graph.node(id)).ok_or("no operator of HLO")?;
        if root.operands != graph.params() || graph.nodes().len() != operands.len() + 1 {
            return Err("the operator takes the function's parameters in their order".to_owned());
        }
        let direct = match root.op {
            Op::Binary(op) if result == ElemType::F32 => binary_f32(op),
            _ => None,
        };
        Ok(Foreign { op: root.op.clone(), operands, result, direct, table: RefCell::default() })
    }

    /// What it computes on values as they are kept: integers, and the bit patterns of floats. The low bits of the result
    /// are its value.
    #[must_use]
    pub(super) fn apply(&self, arguments: &[i64]) -> i64 {
        if let (Some(direct), [a, b]) = (self.direct, arguments) {
            let float = |bits: i64| f32::from_bits(bits as u32);
            return direct(float(*a), float(*b)).to_bits().into();
        }
        match (self.operands.as_slice(), arguments) {
            ([elem], [a]) if elem.bits() <= 16 => {
                if let Some(known) = self.table.borrow().get(a) {
                    return *known;
                }
                let result = self.evaluate(arguments);
                self.table.borrow_mut().insert(*a, result);
                result
            }
            _ => self.evaluate(arguments),
        }
    }

    fn evaluate(&self, arguments: &[i64]) -> i64 {
        let scalar = |(elem, value): (&ElemType, &i64)| {
            let shape = Shape::scalar(*elem);
            let mut bytes = value.to_le_bytes()[..elem.bytes() as usize].to_vec();
            if *elem == ElemType::Pred {
                bytes[0] &= 1;
            }
            Literal::from_bytes(shape.clone(), bytes).unwrap_or_else(|_| Literal::zeros(shape))
        };
        let literals: Vec<Literal> = self.operands.iter().zip(arguments).map(scalar).collect();
        let operands: Vec<&Literal> = literals.iter().collect();
        let Ok(result) = eval_op(&self.op, &operands, &Shape::scalar(self.result)) else { return 0 };
        let mut bytes = [0; 8];
        bytes[..result.bytes().len()].copy_from_slice(result.bytes());
        i64::from_le_bytes(bytes)
    }
}
