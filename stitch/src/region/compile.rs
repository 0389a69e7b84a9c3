//! Compiling a tile plan: every kernel, the accumulator's slot shared by prologue, body and epilogue, and all of it laid
//! out as one loop program with its scratch memory and constants.

use super::kernel::{KernelCode, KernelCompiler, KernelRecord, KernelRefusal};
use crate::tile::{Nest, PlannedKernel, Segments, TilePlan};
use act_isa::{Affine, BetaVal, LoopProgram, Phase, Place, Program, Space, TiledKernel, View};

/// Alignment of a kernel's part of the scratch and constant segments, in bytes.
const PART_ALIGN: u64 = 64;

/// A plan whose kernels are compiled.
pub struct CompiledPlan {
    pub program: LoopProgram,
    pub kernels: Vec<KernelRecord>,
}

/// Where a kernel's own segments begin in those of the region.
#[derive(Clone, Copy)]
struct Bases {
    scratch: u64,
    consts: u64,
}

/// Compiles all kernels of a plan. `operands` and `results` are the byte sizes of the region's segments.
///
/// # Errors
/// The refusal of the first kernel that has no code.
pub fn compile_plan(
    compiler: &dyn KernelCompiler,
    plan: &TilePlan,
    segments: Segments,
    operands: &[u64],
    results: &[u64],
) -> Result<CompiledPlan, KernelRefusal> {
    let mut slots: Vec<Option<Vec<i64>>> = vec![None; plan.groups];
    let mut codes: Vec<Option<KernelRecord>> = vec![None; plan.kernels.len()];
    // The body decides the accumulator's slot: it has the most values beside it, and runs most often.
    let bodies = |k: &usize| plan.kernels[*k].kernel.phase != Phase::Body;
    let mut order: Vec<usize> = (0..plan.kernels.len()).collect();
    order.sort_by_key(bodies);
    for k in order {
        let PlannedKernel { kernel, group } = &plan.kernels[k];
        let mut kernel = kernel.clone();
        if let Some(slot) = group.and_then(|g| slots[g].as_ref()) {
            pin(&mut kernel, slot);
        }
        let code = compiler.compile(&kernel)?;
        if let Some(group) = *group {
            slots[group] = slots[group].take().or_else(|| on_chip_slot(&kernel, &code));
        }
        codes[k] = Some(KernelRecord { kernel, code });
    }
    let kernels: Vec<KernelRecord> = codes.into_iter().flatten().collect();

    let mut program = LoopProgram {
        body: Program::Seq(Vec::new()),
        operands: operands.to_vec(),
        results: results.to_vec(),
        scratch_bytes: plan.packed_bytes,
        consts: plan.consts.clone(),
    };
    let mut bases = Vec::with_capacity(kernels.len());
    for record in &kernels {
        let assembly = &record.code.assembly;
        let scratch = program.scratch_bytes.next_multiple_of(PART_ALIGN);
        program.scratch_bytes = scratch + assembly.scratch_bytes;
        if !assembly.consts.is_empty() {
            program.consts.resize((program.consts.len() as u64).next_multiple_of(PART_ALIGN) as usize, 0);
        }
        bases.push(Bases { scratch, consts: program.consts.len() as u64 });
        program.consts.extend_from_slice(&assembly.consts);
    }
    let layout = Layout { segments, kernels: &kernels, bases: &bases };
    program.body = layout.place(&plan.nest);
    Ok(CompiledPlan { program, kernels })
}

/// Puts every on-chip place of the kernel at `slot`: it has one, the accumulator.
fn pin(kernel: &mut TiledKernel, slot: &[i64]) {
    for place in kernel.ins.iter_mut().chain(&mut kernel.outs) {
        if let Place::OnChip { slot: own, .. } = place {
            *own = Some(slot.to_vec());
        }
    }
}

fn on_chip_slot(kernel: &TiledKernel, code: &KernelCode) -> Option<Vec<i64>> {
    let ins = kernel.ins.iter().zip(&code.in_slots);
    let outs = kernel.outs.iter().zip(&code.out_slots);
    ins.chain(outs)
        .find(|(place, _)| matches!(place, Place::OnChip { .. }))
        .and_then(|(_, slot)| slot.clone())
}

struct Layout<'a> {
    segments: Segments,
    kernels: &'a [KernelRecord],
    bases: &'a [Bases],
}

impl Layout<'_> {
    fn place(&self, nest: &Nest) -> Program {
        match nest {
            Nest::Seq(parts) => Program::Seq(parts.iter().map(|part| self.place(part)).collect()),
            Nest::For { iv, trip, parallel, body } => Program::For {
                iv: *iv,
                trip: *trip,
                // Iterations that spill would share the memory they spill to.
                parallel: *parallel && !self.spills(body),
                body: Box::new(self.place(body)),
            },
            Nest::HostCopy { from, to } => Program::HostCopy { from: self.view(from), to: self.view(to) },
            Nest::Kernel(k) => {
                let assembly = &self.kernels[*k].code.assembly;
                let instrs = assembly.instrs.iter().map(|instr| Program::Instr {
                    op: instr.op,
                    alpha: instr.alpha.clone(),
                    beta: instr.beta.iter().map(|beta| self.beta(beta, self.bases[*k])).collect(),
                });
                Program::Seq(instrs.collect())
            }
        }
    }

    fn spills(&self, nest: &Nest) -> bool {
        match nest {
            Nest::Seq(parts) => parts.iter().any(|part| self.spills(part)),
            Nest::For { body, .. } => self.spills(body),
            Nest::HostCopy { .. } => true,
            Nest::Kernel(k) => self.kernels[*k].code.assembly.scratch_bytes > 0,
        }
    }

    fn beta(&self, beta: &BetaVal, bases: Bases) -> BetaVal {
        match beta {
            BetaVal::Int(value) => BetaVal::Int(value.clone()),
            BetaVal::Hbm(Space::Scratch, at) => BetaVal::Hbm(Space::Scratch, shifted(at, bases.scratch)),
            BetaVal::Hbm(Space::Consts, at) => BetaVal::Hbm(Space::Consts, shifted(at, bases.consts)),
            BetaVal::Hbm(space, at) => BetaVal::Hbm(self.space(*space), at.clone()),
        }
    }

    fn view(&self, view: &View) -> View {
        View { space: self.space(view.space), ..view.clone() }
    }

    /// The region's own constants and packed tensors stand first in their segments.
    fn space(&self, space: Space) -> Space {
        if space == self.segments.consts() {
            Space::Consts
        } else if space == self.segments.packed() {
            Space::Scratch
        } else {
            space
        }
    }
}

fn shifted(at: &Affine, base: u64) -> Affine {
    Affine { c0: at.c0.saturating_add(i64::try_from(base).unwrap_or(i64::MAX)), ivs: at.ivs.clone() }
}
