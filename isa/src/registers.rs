//! Control registers: which of them change while a program runs, and which instructions depend on those. Knows nothing
//! of how values are kept: that is the oracle's.

use crate::control::ControlError;
use crate::expr::Expr;
use crate::model::{Instr, InstrId, Isa, Slice, SymConst};
use act_hlo::OpKind;
use std::collections::BTreeSet;

/// Why a compiler that chooses instructions by the values they compute must leave one alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSelectable {
    #[error("it changes register `{register}`")]
    ChangesRegister { register: String },
    #[error("its slices or semantics depend on register `{register}`, which `{by}` changes")]
    DependsOnRegister { register: String, by: String },
    #[error("a `repeat` counts to something of which the attributes allow too many values")]
    OpenCount,
    #[error("its semantics have more than {limit} paths")]
    TooManyPaths { limit: usize },
    #[error("its semantics: {error}")]
    Control { error: ControlError },
}

impl Isa {
    /// Values of the control registers before the first instruction, for [`crate::Env`].
    pub fn register_values(&self) -> Vec<i64> {
        self.registers.iter().map(|(_, value)| *value).collect()
    }

    /// Registers that some instruction changes, by position. The others are constants.
    pub fn mutable_registers(&self) -> BTreeSet<u16> {
        self.instrs.iter().flat_map(|i| i.updates.iter().map(|(register, _)| *register)).collect()
    }

    /// Why a compiler must not choose the instruction by its value; `None` when it may.
    pub fn not_selectable(&self, id: InstrId) -> Option<NotSelectable> {
        let name = |k: u16| self.registers.get(usize::from(k)).map_or_else(String::new, |r| r.0.clone());
        let instr = self.instrs.get(usize::from(id.0))?;
        if let Some((register, _)) = instr.updates.first() {
            return Some(NotSelectable::ChangesRegister { register: name(*register) });
        }
        let meaning = instr.registers_of_meaning();
        self.instrs.iter().find_map(|by| {
            let (register, _) = by.updates.iter().find(|(register, _)| meaning.contains(register))?;
            Some(NotSelectable::DependsOnRegister { register: name(*register), by: by.name.clone() })
        })
    }

    /// Instructions that change a register, or whose slices or semantics depend on one that any instruction changes:
    /// what they do is not a matter of their attributes alone.
    pub fn stateful_instrs(&self) -> Vec<InstrId> {
        self.instr_ids().filter(|&id| self.not_selectable(id).is_some()).collect()
    }
}

impl Instr {
    /// Registers that the slices or the semantics mention.
    pub fn registers_of_meaning(&self) -> BTreeSet<u16> {
        let mut found = BTreeSet::new();
        self.for_each_meaning(&mut |e| registers(e, &mut found));
        found
    }

    /// Registers that occur anywhere: in the meaning, the requirements, the cost, the updates.
    pub fn registers_mentioned(&self) -> BTreeSet<u16> {
        let mut found = self.registers_of_meaning();
        registers(&self.cost, &mut found);
        self.updates.iter().for_each(|(_, value)| registers(value, &mut found));
        self.requires.iter().for_each(|cond| cond.for_each_leaf(&mut |leaf| registers(leaf, &mut found)));
        found
    }

    /// Calls `visit` for every expression of the slices and the semantics.
    pub(crate) fn for_each_meaning(&self, visit: &mut dyn FnMut(&Expr)) {
        for slice in self.inputs.iter().chain(&self.outputs) {
            match slice {
                Slice::Hbm(window) => {
                    visit(&window.start);
                    window.dims.iter().for_each(|(len, stride)| {
                        visit(len);
                        visit(stride);
                    });
                }
                Slice::OnChip(slice) => slice.start.iter().chain(&slice.len).for_each(&mut *visit),
            }
        }
        for stmt in &self.computation.stmts {
            stmt.for_each_expr(visit);
        }
        if let Some(structured) = &self.structured {
            structured.for_each_expr(visit);
        }
    }
}

impl crate::model::Stmt {
    /// Calls `visit` for every size, operator attribute and constant that is an expression.
    pub fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        self.dims.iter().for_each(&mut *visit);
        match &self.op {
            OpKind::Constant(SymConst::Int(e)) => visit(e),
            OpKind::Slice { start, limit, stride } => {
                start.iter().chain(limit).chain(stride).for_each(&mut *visit);
            }
            OpKind::DynamicSlice { sizes } => sizes.iter().for_each(&mut *visit),
            OpKind::Pad { low, high, interior } => {
                low.iter().chain(high).chain(interior).for_each(&mut *visit);
            }
            _ => {}
        }
    }
}

/// Adds the registers that occur in `e`.
pub(crate) fn registers(e: &Expr, found: &mut BTreeSet<u16>) {
    e.for_each_leaf(&mut |leaf| {
        if let Expr::Register(k) = leaf {
            found.insert(*k);
        }
    });
}
