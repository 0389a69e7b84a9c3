//! Code that stores the results of a computation into their slices: whole elements where the computation ends in bytes,
//! whole runs where it only moves data.

use super::index::{Index, VarId, linear};
use super::scalar::Result;
use super::tensor::{Memory, Tensors, free_variable};
use act_hlo::{NodeId, OpKind};

impl Tensors<'_> {
    /// Stores a root into its slice. Reshapes and splits into bytes at the end of the computation are undone in the
    /// address, so that whole elements are stored.
    pub(crate) fn store_root(&mut self, root: NodeId, memory: &Memory) -> Result<()> {
        let mut chain = self.ending(root);
        // The longest part of the chain that has an affine address.
        while chain.len() > 1 && !self.pushes(&chain, memory) {
            chain.pop();
        }
        let Some(&domain) = chain.last() else { return Ok(()) };
        if self.copy_root(domain, &chain, memory) {
            return Ok(());
        }
        let elem = self.elem(domain);
        self.nest(self.dims(domain), |this, index| {
            let Some(offset) = this.push(&chain, memory, index) else { return Err(free_variable(elem)) };
            let value = this.pull(domain, index)?;
            this.store_at(memory, &offset, elem, value, 1)
        })
    }

    /// `root`, then the operands that it is made of by reshapes and splits into bytes alone, up to the tensor whose elements
    /// the computation ends with, or to one that lies in memory.
    pub(crate) fn ending(&self, root: NodeId) -> Vec<NodeId> {
        let mut chain = vec![root];
        while let Some(&last) = chain.last() {
            let node = self.graph.node(last);
            let peels = match node.op {
                OpKind::Reshape | OpKind::Copy => true,
                OpKind::BitcastConvert => {
                    let (from, to) = (self.elem(node.operands[0]), self.elem(last));
                    from.bytes() >= to.bytes() && from.bits() != 4 && to.bits() != 4
                }
                _ => false,
            };
            if !peels || self.memory(last).is_some() {
                break;
            }
            chain.push(node.operands[0]);
        }
        chain
    }

    /// Moves the tensor run by run where it is data in memory already; gives whether it is.
    fn copy_root(&mut self, domain: NodeId, chain: &[NodeId], memory: &Memory) -> bool {
        let elem = self.elem(domain);
        let Some(source) = self.strided(domain).filter(|source| source.elem.bytes() == elem.bytes()) else {
            return false;
        };
        let vars: Vec<_> = self.dims(domain).iter().map(|&d| self.vars.free(d as i64)).collect();
        let index: Vec<Index> = vars.iter().map(|v| v.1.clone()).collect();
        let Some(mut first) = self.push(chain, memory, &index) else { return false };
        let mut dims: Vec<(u64, i64, i64)> = Vec::new();
        for ((&len, &(var, _)), &from) in self.dims(domain).iter().zip(&vars).zip(&source.strides) {
            if len != 1 {
                dims.push((len, from, first.coefficient(var)));
            }
            first = first.without(var);
        }
        let mut run = elem.bytes() as i64;
        while let Some(&(len, from, to)) = dims.last()
            && from == run
            && to == run
        {
            run *= len as i64;
            dims.pop();
        }
        if run == elem.bytes() as i64 {
            return false;
        }
        let Some(target) = self.pointer(memory.base, &first) else { return false };
        let lens: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let nested = self.nest(&lens, |this, index| {
            let (mut from, mut to) = (Index::constant(0), Index::constant(0));
            for (i, &(_, source_step, target_step)) in index.iter().zip(&dims) {
                (from, to) = (from.plus(source_step, i), to.plus(target_step, i));
            }
            if let (Some(from), Some(to)) = (this.pointer(source.base, &from), this.pointer(target, &to)) {
                let bytes = this.code.const_i64(run);
                this.code.line(format_args!(
                    "\"llvm.intr.memmove\"({to}, {from}, {bytes}) <{{isVolatile = false}}> : \
                     (!llvm.ptr, !llvm.ptr, i64) -> ()"
                ));
            }
            Ok(())
        });
        nested.is_ok()
    }

    fn pushes(&mut self, chain: &[NodeId], memory: &Memory) -> bool {
        let Some(&domain) = chain.last() else { return false };
        let index: Vec<Index> = self.dims(domain).iter().map(|&d| self.vars.free(d as i64).1).collect();
        self.push(chain, memory, &index).is_some()
    }

    /// Byte offset in `memory` (of `chain`'s first node) at which the element `index` of its last node lies.
    fn push(&mut self, chain: &[NodeId], memory: &Memory, index: &[Index]) -> Option<Index> {
        let mut at = index.to_vec();
        let mut parts: Vec<(VarId, i64)> = Vec::new();
        for pair in chain.windows(2).rev() {
            let (node, operand) = (pair[0], pair[1]);
            match self.graph.node(node).op {
                OpKind::Reshape => {
                    let mut rest = linear(&at, self.dims(operand));
                    let dims = self.dims(node);
                    let mut outer = vec![Index::default(); dims.len()];
                    for d in (0..dims.len()).rev() {
                        if d == 0 {
                            outer[0] = rest.clone();
                        } else {
                            (rest, outer[d]) = self.vars.split_exact(&rest, i64::try_from(dims[d]).ok()?)?;
                        }
                    }
                    at = outer;
                }
                OpKind::BitcastConvert => {
                    let (from, to) = (self.elem(operand), self.elem(node));
                    if from.bytes() > to.bytes() {
                        let (var, part) = self.vars.free((from.bytes() / to.bytes()) as i64);
                        parts.push((var, to.bytes() as i64));
                        at.push(part);
                    }
                }
                _ => {}
            }
        }
        let mut offset = Self::offset(memory, &at);
        for (var, step) in parts {
            if offset.coefficient(var) != step {
                return None;
            }
            offset = offset.without(var);
        }
        Some(offset)
    }
}
